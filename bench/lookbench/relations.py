"""What a table consists of, for those who warm, count or place its blocks.

A root is a table or an index by name; partitioned ones stand for all of their
partitions, and a table brings its TOAST table and that one's index along.
"""

from __future__ import annotations

from typing import Sequence

import psycopg

# pg_partition_tree has no rows for what is not partitioned
_TREE = """
    with roots as (select to_regclass(name)::oid as oid from unnest(%s::text[]) name),
         tree as (select oid from roots
                  union select relid from roots, pg_partition_tree(roots.oid))
"""

_STORAGE = _TREE + """,
         parts as (select oid from tree
                   union select reltoastrelid from pg_class join tree using (oid)
                   union select indexrelid from pg_class c join tree using (oid) join pg_index i on indrelid = reltoastrelid)
    select oid::regclass::text from pg_class join parts using (oid)
    where relkind in ('r', 'i', 't') order by pg_relation_size(oid) desc, oid
"""

_READS = _TREE + """
    select coalesce(sum(heap_blks_read + case when %s then coalesce(idx_blks_read, 0) else 0 end
                        + coalesce(toast_blks_read, 0) + coalesce(tidx_blks_read, 0)), 0)
    from pg_statio_user_tables join tree on oid = relid
"""

_SIZE = _TREE + "select sum(pg_total_relation_size(oid)) from tree"


def storage(connection: psycopg.Connection, roots: Sequence[str]) -> list[str]:
    """The relations that have blocks, largest first."""
    return [row[0] for row in connection.execute(_STORAGE, (list(roots),))]


def total_size(connection: psycopg.Connection, tables: Sequence[str]) -> int:
    """Bytes of tables with everything that belongs to them."""
    row = connection.execute(_SIZE, (list(tables),)).fetchone()
    assert row is not None
    return int(row[0])


def blocks_read(connection: psycopg.Connection, tables: Sequence[str], indexes: bool = True) -> int:
    """Blocks of the tables, and of their indexes, that had to be read into shared_buffers."""
    connection.execute("select pg_stat_force_next_flush()")
    row = connection.execute(_READS, (list(tables), indexes)).fetchone()
    return int(row[0]) if row else 0


def prewarm(connection: psycopg.Connection, roots: Sequence[str], with_indexes: bool = False) -> None:
    """Load them into shared_buffers."""
    if with_indexes:
        found = connection.execute(
            "select indexrelid::regclass::text from pg_index where indrelid = any (%s::regclass[])", (list(roots),)
        )
        roots = [*roots, *(row[0] for row in found)]
    connection.execute(
        "select sum(pg_prewarm(name::regclass, 'buffer')) from unnest(%s::text[]) name", (storage(connection, roots),)
    )


FILLER = "bench_filler"


def occupy_buffers(connection: psycopg.Connection) -> None:
    """Fill all of shared_buffers with pages of a table that nobody measures.

    The kernel clears a page of shared memory when it is first touched.  On a server that
    has just started that costs as much as a tenth of a random read, whoever reads first;
    on one that has run for a minute it costs nothing.  Without pg_prewarm nothing is filled.
    """
    if connection.execute("select 1 from pg_available_extensions where name = 'pg_prewarm'").fetchone() is None:
        return
    connection.execute("create extension if not exists pg_prewarm")
    row = connection.execute("select setting::integer from pg_settings where name = 'shared_buffers'").fetchone()
    assert row is not None
    wanted = int(row[0])
    connection.execute(f"create table if not exists {FILLER} (payload text)")
    connection.execute(f"alter table {FILLER} alter payload set storage plain")
    row = connection.execute(f"select pg_relation_size('{FILLER}') / current_setting('block_size')::integer").fetchone()
    assert row is not None
    if row[0] < wanted:
        # one row to a page
        connection.execute(
            f"insert into {FILLER} select repeat('x', 7900) from generate_series(1, %s)", (wanted - int(row[0]),)
        )
        connection.execute("checkpoint")
    connection.execute("select pg_prewarm(%s::regclass, 'buffer', 'main', 0, %s)", (FILLER, wanted - 1))
