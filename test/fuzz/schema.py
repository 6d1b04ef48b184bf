"""
schema.py - the tables that the generated queries run on.

Every table has the same columns, so that any query shape fits any table; what differs
is how the table is stored and what has happened to it:

  vis       vacuumed: all pages all-visible, index-only scans stay out of the heap
  mixed     vacuumed, then a tenth updated: visible and other pages alternate
  dead      a third deleted, a third updated, never vacuumed: dead index entries
  dups      the same with posting lists, and long ones
  frag      rows inserted in random order, index pages nearly empty: many leaf pages
  unl       unlogged, with dead entries (pins are kept on its leaf pages)
  part      range partitions over a, one of them with hash sub-partitions
  small     80 rows: a scan ends on the first leaf page
  long      w has up to 12 kB in most rows, in all the ways in which values are stored
  tmp       temporary, made by each session itself
  copy1, copy2   identical; DML runs on copy1 with look-ahead off and on copy2 with it on
  child1, child2   refer to copy1 and copy2 with ON DELETE CASCADE
  filler    one row on a page: to read it takes all other tables from shared buffers

Backward scans return the entries of one posting list in ascending order, so their order
changes when a page is deduplicated.  Indexes of tables that are written to between two
runs therefore have deduplication off; before_writers() does that for all the others, too.

Contents are a function of the seed: all randomness in SQL comes from rnd(i, salt, n), a
hash, so that every server version gets the same rows.
"""

COLUMNS = """
    id int not null,
    a int not null,          -- about four rows for each value
    b int,                   -- ten values and nulls: long runs of duplicates
    c int,                   -- a tenth null
    t text,                  -- 150 values, some of them 200 characters long
    u uuid not null,         -- unique, random
    ts timestamp not null,   -- correlated with id, with jumps
    n numeric,               -- decimals, a fifth null
    f bool,
    w text,                  -- now and then 6 kB, stored out of line
    p point not null,
    r int4range not null
"""

# name -> (rows, index fillfactors to choose from)
TABLES = {
    "vis": (7000, (10, 50, 90)),
    "mixed": (7000, (10, 50, 90)),
    "dead": (7000, (10, 90)),
    "dups": (7000, (30, 90)),
    "frag": (9000, (10,)),
    "unl": (6000, (10, 90)),
    "part": (8000, (10, 90)),
    "small": (80, (90,)),
    "long": (1200, (50, 90)),
    "tmp": (4000, (10, 90)),
    "copy1": (4000, (10, 90)),
    "copy2": (4000, (10, 90)),
}

# What a query may read.  The copies change while the test runs; both runs of a query
# still see the same rows, as DML is a step of its own.
READABLE = ("vis", "mixed", "dead", "dups", "frag", "unl", "part", "small", "long", "tmp")
# tables that cases of kind "inside" and "currentof" change, and roll back
CHANGED = ("mixed", "dead", "unl", "part", "small", "tmp")

# (columns, further clauses).  {ff} is replaced by storage parameters.
INDEXES = [
    ("(id)", "unique"),
    ("(a, b)", ""),
    ("(b)", ""),
    ("(b, id)", ""),
    ("(b desc nulls first, a)", ""),
    ("(c desc nulls last, b)", ""),
    ("(c nulls first)", ""),
    ("(t, id)", ""),
    ('(t collate "C" desc)', ""),
    ("(u)", ""),
    ("(ts, b)", ""),
    ("(n nulls first, c)", ""),
    ("((a % 100), id)", ""),
    ("(lower(t), a)", ""),
    ("(a)", "include (b, c, id)"),
    ("(b, c)", "include (t)"),
    ("(id)", "include (t) where c is null"),
    ("(b, a, c)", "where f"),
    ("(f, b, id)", ""),
]
# Access methods other than btree: whatever look-ahead does with them must be exact.
# Their order is not defined, so only tables that nobody writes to have some.
KEYS = "array[a % 10, 100 + b % 50, 1000 + id % 700]"  # for GIN: some frequent, some rare
OTHER_INDEXES = [
    "using gist (p)", "using gist (r)", "using spgist (t)", "using hash (a)", "using hash (b)",
    "using hash (t)", "using spgist (p)", "using spgist (r)", "using gist (r, p)",
    "using gist (p) include (id, a)", "using spgist (p kd_point_ops)",
    f"using gin (({KEYS})) with (fastupdate = off)", f"using gin (({KEYS}))",
]
OTHER_TABLES = ("vis", "dups", "frag")
# On the copies they serve statements of their own, whose rows are compared as a set.
COPY_INDEXES = ["using gist (p)", "using gist (r)", "using spgist (p)", "using hash ((id % 50))"]

# Is contrib there?  Then these are made, too.
have_btree_gist = False
BTREE_GIST_INDEXES = ["using gist (a, r)", "using gist (ts, p)", "using gist (a)"]


def other_indexes():
    return OTHER_INDEXES + (BTREE_GIST_INDEXES if have_btree_gist else [])


FUNCTIONS = """
create function rnd(i bigint, salt int, n int) returns int
language sql immutable parallel safe as
$$ select ((hashint8extended(i, salt) & 9007199254740991) % n)::int $$;

-- Runs a query in a loop and leaves it after so many rows, as applications do.
create function looped(q text, stop_after int) returns setof text
language plpgsql as $$
declare r record; n int := 0;
begin
    for r in execute q loop
        n := n + 1;
        return next r::text;
        exit when n >= stop_after;
    end loop;
end $$;

-- For every row of the outer query runs the inner one, which sees it as $1; an
-- inner error is caught, and the rows that went before it are gone.
create function nested(outer_q text, inner_q text) returns setof text
language plpgsql as $$
declare r int; s text;
begin
    for r in execute outer_q loop
        begin
            for s in execute inner_q using r loop
                return next s;
                if length(s) % 7 = 3 then exit; end if;
            end loop;
        exception when division_by_zero then
            return next 'caught ' || sqlerrm;
        end;
    end loop;
end $$;

-- Steps through a cursor, forward and backward, 0 being its end
create function stepped(q text, how int[]) returns setof text
language plpgsql as $$
declare cur refcursor; k int; r record;
begin
    open cur scroll for execute q;
    foreach k in array how loop
        if k = 0 then fetch last from cur into r;
        else fetch relative k from cur into r;
        end if;
        return next coalesce(r::text, 'none');
    end loop;
    close cur;
end $$;
"""


def value(s):
    """w: now and then out of line."""
    return (f"case when rnd(i, {s + 11}, 60) = 0 then repeat(md5(i::text), 190) "
            f"when rnd(i, {s + 11}, 3) = 0 then 'short' || i end")


def long_value(s):
    """w: null, short, compressed within the row, or of 2 to 12 kB out of line, compressed or not.

    Every second row gets it before the column is compressed (create_table()).
    """
    digits = f"(select string_agg(md5(i || '.' || j), '') from generate_series(1, 64 + rnd(i, {s + 21}, 320)) j)"
    return (f"case rnd(i, {s + 20}, 10) when 0 then null when 1 then 'short' || i when 2 then repeat('x', 3000 + i) "
            f"when 3 then {digits} || repeat('y', 4000) when 4 then json_build_object('k', {digits}, 'n', i)::text "
            f"else {digits} end")


def row_query(seed, rows, shuffled, w=value, which="true"):
    """SELECT that makes the rows of a table."""
    s = seed % 1000
    order = f"order by rnd(i, {s + 90}, 1000000)" if shuffled else ""
    return f"""
    select i, rnd(i, {s + 1}, {max(rows // 4, 1)}),
        nullif(rnd(i, {s + 2}, 11), 10),
        case when rnd(i, {s + 3}, 10) > 0 then rnd(i, {s + 4}, {max(rows // 2, 1)}) end,
        case when rnd(i, {s + 5}, 12) > 0 then
            case when rnd(i, {s + 6}, 150) % 7 = 0
                then repeat(chr(97 + rnd(i, {s + 6}, 150) % 26), 190)
                else '' end || 'T' || rnd(i, {s + 6}, 150) end,
        md5(i::text || '{s}')::uuid,
        timestamp '2020-01-01' + (i / 3 + rnd(i, {s + 7}, 40)) * interval '1 minute',
        case when rnd(i, {s + 8}, 5) > 0 then rnd(i, {s + 9}, 50000) / 100.0 end,
        case when rnd(i, {s + 10}, 6) > 0 then rnd(i, {s + 10}, 2) = 0 end,
        {w(s)},
        -- no two alike: the order of equal distances is nobody's
        point(rnd(i, {s + 12}, 1000) + i / 1e5, rnd(i, {s + 13}, 1000) + i / 1e6),
        int4range(rnd(i, {s + 14}, 900), rnd(i, {s + 14}, 900) + 1 + rnd(i, {s + 15}, 60))
    from generate_series(1, {rows}) i where {which} {order}"""


def index_statements(rng, table, choose):
    """CREATE INDEX statements; with choose, a random two thirds of the list."""
    ffs = TABLES[table][1]
    out = []
    for i, (cols, extra) in enumerate(INDEXES):
        if choose and i > 0 and rng.random() > 0.67:
            continue
        unique = "unique" if extra == "unique" and table != "part" else ""
        extra = "" if extra == "unique" else extra
        tail = extra.split("where")
        storage = f"with (fillfactor = {rng.choice(ffs)}" + (
            ", deduplicate_items = off)" if table in CHANGED + ("copy1", "copy2") else ")")
        where = f"where {tail[1]}" if len(tail) > 1 else ""
        out.append(f"create {unique} index {table}_i{i} on {table} {cols} "
                   f"{tail[0]} {storage} {where}")
    if table in OTHER_TABLES:
        # not all of them: the planner is to find uses for each
        out += [f"create index {table}_o{i} on {table} {how}"
                for i, how in enumerate(other_indexes()) if rng.random() < 0.6]
    if table in ("copy1", "copy2"):
        out += [f"create index {table}_o{i} on {table} {how}" for i, how in enumerate(COPY_INDEXES)]
    return out


def create_table(table, seed):
    """CREATE TABLE and its contents, without indexes."""
    rows = TABLES[table][0]
    kind = {"unl": "unlogged", "tmp": "temporary"}.get(table, "")
    out = []
    if table == "part":
        step = rows // 4 // 5
        out.append(f"create table part ({COLUMNS}) partition by range (a)")
        for k in range(4):
            sub = "partition by hash (id)" if k == 2 else ""
            out.append(f"create table part_{k} partition of part for values "
                       f"from ({k * step}) to ({(k + 1) * step}) {sub}")
        for k in range(2):
            out.append(f"create table part_2_{k} partition of part_2 for values "
                       f"with (modulus 2, remainder {k})")
        out.append("create table part_d partition of part default")
    else:
        out.append(f"create {kind} table {table} ({COLUMNS}) "
                   f"with (fillfactor = {60 if table in ('mixed', 'dead') else 100})")
    if table != "part":
        out.append(f"alter table {table} alter w set storage external")
    # copies have the same contents
    base = seed + (0 if table.startswith("copy") else len(table) * 7)
    if table == "long":
        out.append(f"insert into long{row_query(base, rows, True, long_value, 'i % 2 = 0')}")
        out.append("alter table long alter w set storage extended")
        out.append(f"insert into long{row_query(base, rows, True, long_value, 'i % 2 = 1')}")
        return out
    out.append(f"insert into {table}" + row_query(base, rows, table in ("frag", "dead", "dups", "small")))
    return out


def wear(table):
    """What happens to a table once it has its indexes."""
    if table == "vis":
        return ["vacuum (freeze, analyze) vis"]
    if table == "mixed":
        return ["vacuum (analyze) mixed",
                "update mixed set b = (b + 1) % 10 where rnd(id, 5, 10) = 0",
                "update mixed set w = 'w' where rnd(id, 6, 40) = 0"]
    if table in ("dead", "dups", "unl"):
        return [f"delete from {table} where rnd(id, 7, 3) = 0",
                f"update {table} set c = c + 1, a = a + 1 where rnd(id, 8, 3) = 0",
                f"update {table} set b = null where rnd(id, 9, 30) = 0",
                f"analyze {table}"]
    if table == "part":
        return ["delete from part where rnd(id, 7, 5) = 0", "analyze part"]
    if table == "small":
        return ["vacuum (analyze) small"]
    if table == "long":
        return ["update long set w = w || 'z' where rnd(id, 7, 9) = 0", "analyze long"]
    return [f"analyze {table}"]


def create_all(rng, seed):
    """Statements that make the permanent tables, in order."""
    out = ["create extension if not exists amcheck"]
    if have_btree_gist:
        out.append("create extension if not exists btree_gist")
    out += [s for s in FUNCTIONS.split("\n\n") if s.strip()]
    for table in TABLES:
        if table == "tmp":
            continue
        out += create_table(table, seed)
        if table == "copy2":
            # the same indexes as copy1 has, storage parameters included
            out += [s.replace("copy1", "copy2") for s in copy_indexes]
        else:
            stmts = index_statements(rng, table, choose=table not in ("vis", "frag"))
            if table == "copy1":
                copy_indexes = stmts
            out += stmts
        out += wear(table)
    for k in "12":
        out += [f"create table child{k} (id int not null, pid int "
                f"references copy{k} (id) on delete cascade on update cascade, v int)",
                f"insert into child{k} select i, 1 + rnd(i, 33, 4000), rnd(i, 34, 100) "
                "from generate_series(1, 6000) i",
                f"create index child{k}_pid on child{k} (pid) with "
                "(fillfactor = 10, deduplicate_items = off)",
                f"create index child{k}_v on child{k} (v) with (deduplicate_items = off)",
                f"create index copy{k}_order on copy{k} (id, u)",
                f"create index child{k}_order on child{k} (id, v, pid)",
                f"analyze child{k}"]
    return out + FILLER


# by one block after the other, since a sequential scan keeps to a few buffers
FILLER = ["create table filler (id int, w text)", "alter table filler alter w set storage plain",
          "insert into filler select i, repeat('w', 6000) from generate_series(1, 1200) i",
          "create index filler_id on filler (id)", "vacuum (freeze, analyze) filler"]
READ_FILLER = "select count((select w from filler where ctid = ('(' || i || ',1)')::tid)) from generate_series(0, 1199) i"


def before_writers(indexes):
    """Statements for tables that will be written to; indexes are their btree indexes."""
    return [f"drop index if exists {t}_o{i}" for t in OTHER_TABLES
            for i in range(len(other_indexes()))] + [f"alter index {i} set (deduplicate_items = off)" for i in indexes] + [
        f"reindex index {i}" for i in indexes]


def create_temporary(rng, seed):
    return (create_table("tmp", seed) + index_statements(rng, "tmp", True)
            + ["delete from tmp where rnd(id, 3, 6) = 0"] + wear("tmp"))
