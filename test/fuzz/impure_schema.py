"""
impure_schema.py - tables and functions of the comparison of impure statements (impure.py).

Every relation has the columns (id int, k int, v int, t text), so that any shape of a query fits
any of them; they are tiny, so that a statement takes a millisecond.  What differs is how rows
are stored and reached:

  ta, tb, tc   60, 90 and 150 rows; indexes on id, k, (k, v), (v, id)
  te           5 rows, no index
  tp           range partitions over k, indexes on id and k
  tu           unlogged, index on id
  tt           temporary, made by each session itself
  tr           row-level security, by a policy whose functions have effects
  td           columns of domains
  tn           an index whose operator class is of PL/pgSQL functions
  vb, vs, vf, vj   views: security_barrier, with a stable function, with a failing
               expression, a join
  w0 ... w3    what statements write to: plain; row triggers; statement triggers and a unique
               index; partitions and a column of a domain.  w0 and w1 refer to wk, and w5 to w4 to w2

Functions leave traces in three ways: a digest of their calls in the sequence "trail" (which no
rollback undoes), notices, and rows in "log".  Their labels do not always tell the truth, as users'
do not.
"""

# name -> rows
TABLES = {"ta": 60, "tb": 90, "tc": 150, "te": 5, "tp": 90, "tu": 90, "tt": 70, "tr": 80, "td": 60, "tn": 60}
TARGETS = ("w0", "w1", "w2", "w3")

COLUMNS = "id int not null, k int, v int, t text"


def rows_of(salt, n):
    """id 1 ... n, k like id in another order and now and then null or twice, v from 0 to 9, t mostly a number."""
    return f"""select i, case when i % 17 <> 5 then 1 + (i * 37 + {salt}) % {max(n - n // 8, 1)} end,
    case when i % 13 <> 6 then (i * 7 + {salt}) % 10 end,
    case when i % 19 = 4 then 'x' || i when i % 11 <> 3 then (i % 25)::text end
    from generate_series(1, {n}) i"""


EFFECTS = """
create sequence sq;
create sequence trail;
create sequence logseq;
create table log (n bigint default nextval('logseq'), x int);

-- into the digest: what, and in which order
create function eff(i int) returns int language plpgsql volatile as $$
begin
    perform setval('public.trail', ((currval('public.trail') * 31 + coalesce(i, -1)) & 1073741823) + 1);
    return i;
end $$;
create function eff2(i int) returns int language plpgsql volatile cost 1 as $$
begin
    perform setval('public.trail', ((currval('public.trail') * 37 + coalesce(i, -2)) & 1073741823) + 1);
    return i + 1;
end $$;
create function eff_text(x text) returns text language plpgsql volatile as $$
begin
    perform setval('public.trail', ((currval('public.trail') * 41 + coalesce(length(x), -1)) & 1073741823) + 1);
    return x;
end $$;
create function eff_bool(b bool) returns bool language plpgsql volatile as $$
begin
    perform setval('public.trail', ((currval('public.trail') * 43 + coalesce(b::int, -1)) & 1073741823) + 1);
    return b;
end $$;
create function put(i int) returns int language plpgsql volatile as $$
begin
    if i % 3 = 0 then insert into log (x) values (i); end if;
    return i;
end $$;
create function put_sql(i int) returns int language sql volatile as $$
    insert into log (x) values (i) returning x $$;
create function tell(i int) returns int language plpgsql volatile as $$
begin
    if i % 5 = 2 then raise notice 'tell %', i; end if;
    return i;
end $$;
create function off_to(i int) returns int language plpgsql volatile as $$
begin
    if i % 4 = 1 then perform set_config('my.off', (i % 5)::text, false); end if;
    return i;
end $$;
create function off_to_sql(i int) returns int language sql volatile as $$
    select length(set_config('my.off', (abs(i) % 5)::text, true)) + i $$;
create function random_to(n int) returns int language sql volatile as $$ select (random() * n)::int $$;
create function vol_inlined(i int) returns int language sql volatile as $$ select eff(i) $$;
create function vol_sql(i int) returns int language sql volatile as $$ select eff(i) from te limit 1 $$;
create function log_count() returns int language plpgsql volatile as $$
begin return (select count(*) from log); end $$;

-- effects behind labels that deny them
create function stable_tell(i int) returns int language plpgsql stable as $$
begin
    if i % 5 = 3 then raise notice 'stable %', i; end if;
    return i;
end $$;
create function stable_eff(i int) returns int language plpgsql stable as $$
begin
    perform setval('public.trail', ((currval('public.trail') * 47 + coalesce(i, -1)) & 1073741823) + 1);
    return i;
end $$;
create function imm_tell(i int) returns int language plpgsql immutable as $$
begin
    if i % 5 = 4 then raise notice 'immutable %', i; end if;
    return i;
end $$;
create function imm_eff(i int) returns int language plpgsql immutable as $$
begin
    perform setval('public.trail', ((currval('public.trail') * 53 + coalesce(i, -1)) & 1073741823) + 1);
    return i;
end $$;
create function peek(i int) returns bool language plpgsql immutable cost 0.0001 as $$
begin
    perform setval('public.trail', ((currval('public.trail') * 59 + coalesce(i, -1)) & 1073741823) + 1);
    return i is null or i % 7 <> 6;
end $$;
create function peek_tell(i int) returns bool language plpgsql stable cost 0.0001 as $$
begin
    if i % 9 = 1 then raise notice 'peek %', i; end if;
    return true;
end $$;
create function peek_fail(i int) returns bool language plpgsql immutable cost 0.0001 as $$
begin
    if i = 31 then raise exception 'peek at %', i; end if;
    return true;
end $$;

-- stable by their label, and another value a moment later
create function off() returns int language sql stable as $$ select current_setting('my.off')::int $$;
create function off_pl() returns int language plpgsql stable as $$ begin return current_setting('my.off'); end $$;
create function off_plus(i int) returns int language sql stable as $$ select i + current_setting('my.off')::int $$;
create function drawn() returns int language plpgsql stable as $$ begin return (select last_value % 5 from sq); end $$;
create function drawn_sql() returns int language sql stable as $$ select (currval('sq') % 5)::int $$;
create function log_stable() returns int language plpgsql stable as $$
begin return (select count(*) from log); end $$;
create function log_stable_sql() returns int language sql stable as $$ select count(*)::int from log $$;

-- failing ones
create function boom(i int) returns int language plpgsql immutable as $$
begin
    if i = 23 then raise exception 'boom %', i; end if;
    return i;
end $$;
create function boom_stable(i int) returns int language plpgsql stable as $$
begin
    if i = 29 then raise exception using errcode = 'LA002', message = 'stable boom', detail = i::text; end if;
    return i;
end $$;
create function boom_sql(i int) returns int language sql immutable as $$ select 60 / (i - 19) $$;
create function strict_boom(i int) returns int language plpgsql immutable strict as $$
begin return 40 / (i - 11); end $$;
create function harmless(i int) returns int language plpgsql immutable parallel safe as $$ begin return i + 1; end $$;
create function harmless_sql(i int) returns int language sql immutable parallel safe as $$ select i + 2 $$;

-- sets
create function set_eff(n int) returns setof int language plpgsql volatile rows 3 as $$
begin
    for i in 1 .. least(n, 3) loop return next eff(i); end loop;
end $$;
create function set_boom(n int) returns setof int language plpgsql immutable rows 2 as $$
begin
    return next n;
    if n = 17 then raise exception 'set %', n; end if;
    return next 2;
end $$;
create function set_sql(n int) returns setof int language sql stable as $$ select generate_series(1, least(n, 3)) + off() $$;
create function some_rows(n int) returns table (id int, k int, v int, t text) language plpgsql volatile rows 3 as $$
begin
    for i in 1 .. least(n, 3) loop id := i; k := eff(n); v := i + n; t := i::text; return next; end loop;
end $$;

-- domains
create domain dom_eff as int check (eff(value) is not distinct from value);
create domain dom_fail as int check (value is null or value <> 37);
create domain dom_off as int check (current_setting('my.off') <> '3');
create domain dom_put as int check (put(value) is not distinct from value);
create domain dom_text as text check (eff_text(value) is not distinct from value);
create domain dom_dom as dom_eff check (value is null or value > -1000);
create type pair as (p dom_eff, q dom_fail);

-- aggregates
create function add_eff(s int, i int) returns int language plpgsql volatile as $$ begin return s + coalesce(eff(i), 0); end $$;
create function add_boom(s int, i int) returns int language plpgsql immutable as $$ begin return s + coalesce(60 / (i - 13), 0); end $$;
create function add_off(s int, i int) returns int language plpgsql stable as $$
begin return s + coalesce(i, 0) * current_setting('my.off')::int; end $$;
create function add_pure(s int, i int) returns int language sql immutable as $$ select s + coalesce(i, 0) $$;
create function end_tell(s int) returns int language plpgsql immutable as $$
begin
    if s % 3 = 1 then raise notice 'end %', s; end if;
    return s;
end $$;
create aggregate sum_eff (int) (sfunc = add_eff, stype = int, initcond = '0');
create aggregate sum_boom (int) (sfunc = add_boom, stype = int, initcond = '0');
create aggregate sum_off (int) (sfunc = add_off, stype = int, initcond = '0');
create aggregate sum_tell (int) (sfunc = add_pure, finalfunc = end_tell, stype = int, initcond = '0');

-- operators, whose functions leave traces, and others that fail
create function eq_eff(p int, q int) returns bool language plpgsql immutable as $$ begin perform public.eff(p); return p = q; end $$;
create function lt_eff(p int, q int) returns bool language plpgsql immutable as $$ begin perform public.eff(p); return p < q; end $$;
create function gt_eff(p int, q int) returns bool language plpgsql immutable as $$ begin perform public.eff(p); return p > q; end $$;
create function cmp_eff(p int, q int) returns int language plpgsql immutable as $$ begin perform public.eff(q); return sign(p - q); end $$;
create function hash_eff(p int) returns int language plpgsql immutable as $$ begin perform public.eff(p); return hashint4(p); end $$;
create operator ==== (leftarg = int, rightarg = int, function = eq_eff, commutator = ====, hashes, merges);
create operator <<<< (leftarg = int, rightarg = int, function = lt_eff, commutator = >>>>, restrict = scalarltsel);
create operator >>>> (leftarg = int, rightarg = int, function = gt_eff, commutator = <<<<, restrict = scalargtsel);
create operator class eff_ops for type int using btree as operator 1 <<<<, operator 3 ====, operator 5 >>>>, function 1 cmp_eff(int, int);
create operator class eff_hash for type int using hash as operator 1 ====, function 1 hash_eff(int);
create function eq_boom(p int, q int) returns bool language plpgsql immutable as $$
begin if p = 27 then raise exception 'eq %', p; end if; return p = q; end $$;
create function lt_boom(p int, q int) returns bool language plpgsql immutable as $$ begin return p < q; end $$;
create function cmp_boom(p int, q int) returns int language plpgsql immutable as $$
begin if p = 27 or q = 27 then raise exception 'cmp % %', p, q; end if; return sign(p - q); end $$;
create function hash_boom(p int) returns int language plpgsql immutable as $$
begin if p = 27 then raise exception 'hash %', p; end if; return hashint4(p); end $$;
create operator =!= (leftarg = int, rightarg = int, function = eq_boom, commutator = =!=, hashes, merges);
create operator <!< (leftarg = int, rightarg = int, function = lt_boom);
create operator class boom_ops for type int using btree as operator 1 <!<, operator 3 =!=, function 1 cmp_boom(int, int);
create operator class boom_hash for type int using hash as operator 1 =!=, function 1 hash_boom(int);
"""

LOOPS = """
-- queries in loops, that are left early, whose errors are caught, one in another
create function looped(q text, stop_after int) returns setof text language plpgsql as $$
declare r record; n int := 0;
begin
    for r in execute q loop
        n := n + 1;
        return next r::text;
        exit when n >= stop_after;
    end loop;
end $$;
create function caught(q text) returns setof text language plpgsql as $$
declare r record;
begin
    begin
        for r in execute q loop
            return next r::text;
        end loop;
    exception when others then
        return next sqlstate || ' ' || sqlerrm;
    end;
    return next current_setting('my.off') || ' ' || currval('public.trail');
end $$;
create function taken(q text) returns setof text language plpgsql as $$
begin
    return query execute format('select whole_row::text from (%s) whole_row', q);
exception when others then
    return next sqlstate || ' ' || sqlerrm;
end $$;
create function nested(outer_q text, inner_q text) returns setof text language plpgsql as $$
declare r record; s record;
begin
    for r in execute outer_q loop
        begin
            for s in execute inner_q loop
                return next r.id || ' ' || s::text;
                exit when s.id % 3 = 0;
            end loop;
        exception when others then
            return next 'caught ' || sqlerrm;
        end;
    end loop;
end $$;
create function stepped(q text, how int[]) returns setof text language plpgsql as $$
declare c refcursor; n int; r record;
begin
    open c no scroll for execute q;
    foreach n in array how loop
        if n < 0 then
            perform set_config('my.off', (-n)::text, false), nextval('sq');
        elsif n > 1 then
            move forward n from c;
        else
            fetch next from c into r;
            return next coalesce(r::text, 'none');
        end if;
    end loop;
end $$;
create function counted(q text) returns int language plpgsql as $$
declare n int;
begin
    execute format('select count(*) from (%s) whole_row', q) into n;
    return n;
end $$;
"""

VIEWS = """
create view vb with (security_barrier) as select id, k, v, t from tb where v <> 3 and (k > off() or peek(k));
create view vs as select id, k + off() as k, v, t from tc where id < 90;
create view vf as select id, 600 / (id - 47) as k, v, t from ta;
create view vj as select ta.id, tb.k, ta.v, tb.t from ta left join tb on tb.id = ta.k;
alter table tr enable row level security;
create policy visible on tr using (v <> 4 and peek_tell(id) and k <> off());
create policy seen on tr for select using (peek(id));
"""

WRITTEN = """
create table w0 (id int not null, k int, v int, t text);
create table w1 (id int not null, k int, v int, t text);
create table w2 (id int not null, k int, v int, t text);
create unique index on w2 (id);
create index on w1 (k);
-- what w0 and w1 refer to, the latter deferred, and what refers to w2, at two levels
create table wk (k int primary key);
create table w4 (id int primary key, w int references w2 (id) on delete cascade on update set null);
create index on w4 (w);
create table w5 (id int, w bigint references w4 (id) on delete set null);
create index on w5 (w);
create table w3 (id int not null, k int, v dom_put, t text) partition by range (k);
create table w3_0 partition of w3 for values from (minvalue) to (30);
create table w3_1 partition of w3 for values from (30) to (60);
create table w3_2 partition of w3 default;
create index on w3 (id);

create function before_row() returns trigger language plpgsql as $$
begin
    if new.id % 7 = 3 then perform set_config('my.off', (new.id % 5)::text, false); end if;
    new.v := eff(new.v);
    if new.id % 29 = 11 then return null; end if;
    return new;
end $$;
create function after_row() returns trigger language plpgsql as $$
begin
    perform tell(coalesce(new.id, old.id)), put(coalesce(new.k, old.k));
    if new.k = 71 then raise exception 'row %', new.id; end if;
    return null;
end $$;
create function before_delete() returns trigger language plpgsql as $$
begin
    perform eff(old.id);
    if old.id % 11 = 5 then return null; end if;
    return old;
end $$;
create function after_statement() returns trigger language plpgsql as $$
begin
    perform eff(count(*)::int), eff(sum(id)::int) from seen;
    return null;
end $$;
create trigger a before insert or update on w1 for each row execute function before_row();
create trigger b after insert or update or delete on w1 for each row execute function after_row();
create trigger c before delete on w1 for each row execute function before_delete();
create trigger a after insert on w2 referencing new table as seen for each statement execute function after_statement();
create trigger b after update on w2 referencing new table as seen for each statement execute function after_statement();
create trigger c after delete on w2 referencing old table as seen for each statement execute function after_statement();
create trigger d before insert on w3 for each row when (new.id % 2 = 0) execute function before_row();
"""

# a notice at the beginning of each run
MARK = "create function mark() returns void language plpgsql as $$ begin raise notice 'run begins'; end $$"


def split(script):
    """Statements of a script whose bodies are in $$ (of one line, or with lines that end in ;)."""
    out, held, inside = [], [], False
    for line in script.splitlines():
        if not held and (not line.strip() or line.startswith("--")):
            continue
        held.append(line)
        inside ^= line.count("$$") % 2 == 1
        if line.endswith(";") and not inside:
            out.append("\n".join(held)[:-1])
            held = []
    return out


def create_table(name, salt):
    n = TABLES[name]
    kind = {"tu": "unlogged", "tt": "temporary"}.get(name, "")
    columns = COLUMNS if name != "td" else "id dom_fail not null, k dom_eff, v int, t dom_text"
    if name == "tp":
        out = [f"create table tp ({COLUMNS}) partition by range (k)"]
        out += [f"create table tp_{i} partition of tp for values from ({lo}) to ({hi})"
                for i, (lo, hi) in enumerate([("minvalue", 30), (30, 60), (60, 90)])]
        out.append("create table tp_d partition of tp default")
    else:
        out = [f"create {kind} table {name} ({columns}) with (fillfactor = 10)"]
    # in an order that is not that of an index; several pages
    kept = {"td": "where id <> 37", "tn": "where k is distinct from 27"}.get(name, "")
    out.append(f"insert into {name} select * from ({rows_of(salt, n)}) s (id, k, v, t) {kept} order by (id * 53) % {n + 1}")
    if name not in ("te", "tn"):
        out.append(f"create {'unique ' if name != 'tp' else ''}index {name}_id on {name} (id) with (fillfactor = 10)")
    if name in ("ta", "tb", "tc", "tt", "tp", "tr"):
        out.append(f"create index {name}_k on {name} (k) with (fillfactor = 10)")
    if name in ("tb", "tc"):
        out.append(f"create index {name}_kv on {name} (k, v)")
    if name in ("ta", "tc"):
        out.append(f"create index {name}_v on {name} (v, id) with (fillfactor = 10)")
        out.append(f"create index {name}_t on {name} (t, id)")
    if name == "tn":
        out += ["create index tn_id on tn (id eff_ops)", "create index tn_k on tn (k boom_ops)"]
    if name != "tt":
        out.append(f"vacuum analyze {name}")
    else:
        out.append("analyze tt")
    return out


def create_all():
    out = split(EFFECTS)
    # functions read them
    out.insert(0, f"create table te ({COLUMNS})")
    # the digest has a value before the first call
    out += ["select setval('trail', 1)", "select setval('sq', 1)", "select set_config('my.off', '0', false)"]
    for salt, name in enumerate(TABLES):
        if name == "tt":
            continue
        stmts = create_table(name, salt)
        out += stmts[1:] if name == "te" else stmts
    out += split(LOOPS) + split(VIEWS) + split(WRITTEN)
    for salt, name in enumerate(TARGETS):
        out.append(f"insert into {name} select * from ({rows_of(salt, 60)}) s where not (i = 11 or i % 29 = 11)")
        out.append(f"analyze {name}")
    out += ["insert into wk select generate_series(-300, 3000)", "alter table w0 add foreign key (k) references wk",
            "alter table w1 add foreign key (k) references wk deferrable initially deferred",
            "insert into w4 select row_number() over (), id from w2 union all select 1000 + row_number() over (), id from w2 where id % 2 = 0",
            "insert into w5 select id, id from w4", "analyze wk", "analyze w4", "analyze w5"]
    out += ["do $$ begin create role reader; exception when duplicate_object then null; end $$",
            "grant all on all tables in schema public to reader", "grant all on all sequences in schema public to reader",
            "truncate log", "vacuum analyze log"]
    return out


def create_temporary():
    return create_table("tt", 77) + ["grant all on tt to reader"]


def print_script():
    """All of it, for psql in an empty database."""
    print("set client_min_messages = warning;")
    for sql in create_all() + [MARK] + create_temporary():
        print(f"{sql};")
