"""Replay of changes: crash recovery, a logical subscriber that catches up, and a standby that is promoted.

cells      what is measured: cells, their sizes, variants with their settings
servers    a server whose data directory is a copy, made anew for each sample
crashes    data directories as a crash left them, and the time that redo takes
streams    a publisher with changes to be applied, and the time until a subscriber has them
promotions the delay of a promotion, and of a restart after a crash
runner     the schedule; started by bench/replay
"""
