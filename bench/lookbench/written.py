"""Tables that the workload `write` writes to.

bench_write_four      four indexes of random integers
bench_write_uuid      a unique index of random UUIDs
bench_write_kinds     an index of each kind: a random integer, UUIDs of version 4 and of version 7, both
                      unique, a text, a composite one, a partial one of half of the rows, and a hash index
bench_write_parts     PARTITIONS hash partitions with three indexes: two of integers, one of UUIDs
bench_write_parent    rows that others refer to, and
bench_write_child     those others, CHILDREN for each, with an index on the reference
bench_write_parent_N  the same with N children each, which
bench_write_child_N   are anywhere in their table
bench_write_refs_N    no rows, and nothing but references to the first N of
bench_write_referred_N, to which nobody else refers: without an index on a reference, who deletes what it
                      refers to would have to read the whole table
bench_write_single    no rows; four indexes as in bench_write_four
bench_write_flush     one row, whose UPDATE makes the log that was written before it durable

The indexes of four, uuid, parent and child are a tenth full, and the tables of parents a fifth, so that with
eight million rows they have as many pages as with eighty million: a write that is measured cold is to
meet pages that nobody has read, in an index of which a few percent of the pages are wanted.

Scripts know {table}, {rows} and {children}; the rows of a table of parents and of its children are
those of the parents.  Indexes, and brin indexes by which ranges of id are found, have names.
"""

from __future__ import annotations

from typing import Mapping, Sequence

CHILDREN = 5  # of a row of bench_write_parent
PARTITIONS = 16
# children of a parent -> parents, of 1,000 rows that bench_write_four has
PARENTS: Mapping[int, float] = {1: 200, 10: 40, 1000: 0.4}
REFERRED: Sequence[str] = tuple(f"bench_write_referred_{n}" for n in (1, 2, 3))
FOUR = "abcd"  # columns, and names of indexes
KINDS = ("int", "uuid4", "uuid7", "text", "composite", "partial", "hash")  # indexes of bench_write_kinds


def random_integers(number: str, names: Sequence[str], seed: int = 1) -> str:
    """SQL for random integers that belong to a number, in columns of these names."""
    return ", ".join(f"hashint8extended({number}, {seed + n})::bit(32)::integer as {name}" for n, name in enumerate(names))


def time_uuid(moment: str, text: str) -> str:
    """SQL for a UUID of version 7: the moment, less than 2^48, then what is in the hash of a text."""
    return f"(lpad(to_hex({moment}), 12, '0') || '7' || substr(md5({text}), 1, 3) || '8' || substr(md5({text}), 4, 15))::uuid"


SPARSE = "with (fillfactor = 10)"
FIRST_MOMENT = 170_000_000_000_000  # in bench_write_kinds; hundredths of milliseconds

_FOUR = f"""
create table {{table}} (id bigint, a integer, b integer, c integer, d integer, t text);
insert into {{table}} select i, hashint4(i), {random_integers('i', 'bcd')}, repeat('x', 60)
from generate_series(0, {{rows}} - 1) i;
create index on {{table}} (a) {SPARSE};
create index on {{table}} (b) {SPARSE};
create index on {{table}} (c) {SPARSE};
create index on {{table}} (d) {SPARSE};
create index on {{table}} using brin (id)
"""

_UUID = f"""
create table {{table}} as select md5(i::text)::uuid as u, i as v from generate_series(0, {{rows}} - 1) i;
create unique index on {{table}} (u) {SPARSE}
"""

_KINDS = f"""
create table {{table}} (id bigint, i integer, g integer, k integer, p integer, u uuid, s uuid, t text);
insert into {{table}}
select n, hashint4(n), hashint4(n) & 1023, {random_integers('n', 'kp')}, md5(n::text)::uuid, {time_uuid(f'{FIRST_MOMENT} + n', 'n::text')}, md5('t' || n)
from generate_series(0, {{rows}} - 1) n;
create index {{table}}_int on {{table}} (i);
create unique index {{table}}_uuid4 on {{table}} (u);
create unique index {{table}}_uuid7 on {{table}} (s);
create index {{table}}_text on {{table}} (t);
create index {{table}}_composite on {{table}} (g, k);
create index {{table}}_partial on {{table}} (p) where g < 512;
create index {{table}}_hash on {{table}} using hash (k);
create index {{table}}_brin on {{table}} using brin (id)
"""

_PARTS = f"""
create table {{table}} (id bigint, a integer, b integer, u uuid) partition by hash (id);
do $$ begin for i in 0 .. {PARTITIONS} - 1 loop execute format('create table {{table}}_%s partition of {{table}} for values with (modulus {PARTITIONS}, remainder %s)', i, i); end loop; end $$;
insert into {{table}} select i, hashint4(i), {random_integers('i', 'b')}, md5(i::text)::uuid from generate_series(0, {{rows}} - 1) i;
create index {{table}}_a on {{table}} (a);
create index {{table}}_b on {{table}} (b);
create index {{table}}_u on {{table}} (u)
"""

# two numbers may have the same hash
_PARENT = """
create table {table} (id integer, t text) with (fillfactor = 20);
insert into {table}
select h, repeat('y', %d) from (select hashint4(i) as h, min(i) as i from generate_series(1, {rows}) i group by 1) s order by i;
alter table {table} add primary key (id) with (fillfactor = 10)
"""

_CHILD = """
create table {table} (id bigint, parent integer);
insert into {table} select i, hashint4((i %% {rows} + 1)::integer) from generate_series(1, {rows} * %(children)s) i;
create index on {table} (parent) with (fillfactor = 10);
alter table {table} add foreign key (parent) references %(parent)s on delete cascade
"""

_SINGLE = """
create table {table} (id bigint, a integer, b integer, c integer, d integer, t text);
create index on {table} (a);
create index on {table} (b);
create index on {table} (c);
create index on {table} (d)
"""

_FLUSH = """
create table {table} (n bigint);
insert into {table} values (0)
"""


def _refs(count: int) -> str:
    columns = ", ".join(f"r{n} integer references {parent}" for n, parent in enumerate(REFERRED[:count], 1))
    return f"create table {{table}} (id bigint, {columns})\n"


def _family(number: int) -> dict[str, str]:
    parent = f"bench_write_parent_{number}"
    return {parent: _PARENT % 20, f"bench_write_child_{number}": _CHILD % {"children": number, "parent": parent}}


SCRIPTS: Mapping[str, str] = {
    "bench_write_four": _FOUR,
    "bench_write_uuid": _UUID,
    "bench_write_kinds": _KINDS,
    "bench_write_parts": _PARTS,
    "bench_write_parent": _PARENT % 100,
    "bench_write_child": _CHILD % {"children": CHILDREN, "parent": "bench_write_parent"},
    "bench_write_single": _SINGLE,
    "bench_write_flush": _FLUSH,
} | {table: _PARENT % 40 for table in REFERRED} | {f"bench_write_refs_{n}": _refs(n) for n in range(1, len(REFERRED) + 1)} | {
    table: script for number in PARENTS for table, script in _family(number).items()
}


def referring(table: str) -> list[str]:
    """The tables that refer to one, which go before it does."""
    if table in REFERRED:
        return [f"bench_write_refs_{n}" for n in range(REFERRED.index(table) + 1, len(REFERRED) + 1)]
    return [table.replace("parent", "child")] if table.startswith("bench_write_parent") else []
