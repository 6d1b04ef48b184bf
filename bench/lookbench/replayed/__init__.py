"""Replay of changes: crash recovery, and a logical subscriber that catches up.

cells      what is measured: cells, their sizes, variants with their settings
servers    a server whose data directory is a copy, made anew for each sample
crashes    data directories as a crash left them, and the time that redo takes
streams    a publisher with changes to be applied, and the time until a subscriber has them
runner     the schedule; started by bench/replay
"""
