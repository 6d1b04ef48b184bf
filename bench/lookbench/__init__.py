"""Measure stock PostgreSQL, bitmap scans and pg_lookahead side by side.

server      a private server: start, stop, settings, cold caches
machine     what was measured on: processor, disk, git commit, fio ceiling
variants    stock, bitmap, lookahead: session and server settings of each
datasets    tables that the workloads read
paid        the tables of index builds and inserts: prices paid for houses
documents   the table of GIN indexes
relations   what a table consists of: partitions, indexes, TOAST
residency   keep files in the page cache and prove that they are there
workloads/  one file per workload: its cells and its statements
replayed/   crash recovery and logical apply: cells, servers, schedule
tpch/       tables, queries and data of the workload tpch
records     results as CSV, one row per repetition; what is done is not done again
claims      which cells must bear out what is claimed beside bitmap scans
runner      the schedule: states, repetitions, interleaved variants, checks
summary     medians, ratios, share of the disk's ceiling
pages       the tables and the picture of README.md and docs/

The runner is started by bench/run, that of replayed/ by bench/replay, the summary by bench/summarize; dev/demo uses
server, machine and variants.
"""
