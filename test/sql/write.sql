--
-- write - statements that write rows do the same with and without look-ahead.
--
-- Each statement runs with look-ahead off, and then in several ways with it.  Compared are: the
-- error, the number of rows, the rows of all tables, what triggers and functions have noted, in
-- the order in which they did, and the values of sequences.  Everything is rolled back in between.
-- "same" must be true; the other columns tell what stock does.  After an error, look-ahead may have
-- taken more values from a sequence (docs/safety.md).
--
\set ECHO none
set client_min_messages = warning;
create extension if not exists pg_lookahead;
drop schema if exists la_write cascade;
create schema la_write;
set search_path = la_write, public;
set synchronous_commit = off;

create sequence seq;
create sequence other;
create domain even as int check (value % 2 = 0);

-- what triggers and functions have seen
create function note(text) returns void language plpgsql as $$
begin
    perform set_config('la.trace', coalesce(current_setting('la.trace', true), '') || $1 || ' ', true);
end $$;
create function noted(int) returns int language plpgsql as $$
begin
    if $1 % 100 = 0 then perform note('f' || $1); end if;
    return $1;
end $$;

create function tables() returns text language plpgsql as $$
declare r record; h text; out text := '';
begin
    for r in select oid::regclass t from pg_class
        where relnamespace = 'la_write'::regnamespace and relkind = 'r' and relname <> 'src'
        order by relname loop
        execute format('select count(*) || '' '' || sum(hashtextextended(t::text, 0)) from %s t', r.t) into h;
        out := out || coalesce(h, '-') || ' ';
    end loop;
    return out;
end $$;

create function outcome(statement text, ahead text[], out error text, out rows bigint, out result text, out sequences text)
language plpgsql as $$
declare s text; parts text[];
begin
    perform setval('seq', 1), setval('other', 1);
    begin
        foreach s in array ahead loop
            execute 'set local ' || s;
        end loop;
        perform set_config('la.trace', '', true);
        error := '';
        begin
            execute statement;
            get diagnostics rows = row_count;
            set constraints all immediate;
        exception when others then
            error := sqlstate || ' ' || sqlerrm;
        end;
        set local pg_lookahead.enable = off;
        result := tables() || '|' || current_setting('la.trace');
        raise exception using errcode = 'LA001';
    exception when sqlstate 'LA001' then
        null;
    end;
    select (select last_value from seq) || ' ' || (select last_value from other) into sequences;
end $$;

create function activated() returns bigint language sql as
    $$ select scans_activated from pg_stat_lookahead where kind = 'index insert' $$;

create function write(statement text, out same bool, out ahead bool, out rows bigint, out error text)
language plpgsql as $$
declare stock record; ours record; way text[]; before bigint;
begin
    stock := outcome(statement, array['pg_lookahead.enable = off']);
    same := true;
    before := activated();
    foreach way slice 1 in array array[
        array['pg_lookahead.force = on', 'pg_lookahead.scan_memory = 512', 'pg_lookahead.enable = on'],
        array['pg_lookahead.force = on', 'pg_lookahead.max_distance = 1', 'pg_lookahead.enable_btree_insert = on'],
        array['pg_lookahead.miss_threshold = 0', 'pg_lookahead.min_read_time = 0', 'pg_lookahead.enable = on']] loop
        ours := outcome(statement, way);
        if (ours.error, ours.rows, ours.result) is distinct from (stock.error, stock.rows, stock.result)
            or (stock.error = '' and ours.sequences is distinct from stock.sequences) then
            same := false;
            raise warning '% %', way, ours;
            raise warning 'stock %', stock;
        end if;
    end loop;
    ahead := activated() > before;
    rows := stock.rows;
    error := stock.error;
end $$;

create table src (i int, k int, s text);
insert into src select i, (i * 7919) % 100003, case when i % 10 > 0 then 's' || i end from generate_series(1, 1500) i;
create table t (id int primary key, k int, u uuid default gen_random_uuid(), s text, n bigint);
create index on t (k);
create index on t (s collate "C" desc, k);
create index on t ((k / 2)) where k % 3 = 0;
create index on t (k) include (s);
create index on t using hash (k);
create index on t using brin (k);
create unique index on t (n) where n > 0;
insert into t select i + 1000000, i, null, 'old' || i, null from generate_series(1, 3000) i;
alter table t alter u drop default;
vacuum analyze t, src;

\pset format unaligned
\pset tuples_only
-- 1. rows of all kinds
select * from write('insert into t (id, k, s) select i, k, s from src');
select * from write('insert into t (id, k, s) select i, k, s from src order by k desc');
select * from write('insert into t (id, k, s) select i, null, null from src');
select * from write('insert into t (id, k, s) values (1, 2, ''a''), (2, 3, ''b''), (3, null, ''c'')');
select * from write('insert into t (id, k, n) select i, 7, i from src');
select * from write('insert into t (id, k, s) select id + 1, k, repeat(s, 100) from t where id % 7 = 0 on conflict do nothing');
select * from write('insert into t select id + 5000, k, u, s from t');
-- 2. rows that fail when they are written
select * from write('insert into t (id, k) select i % 1000, k from src');
select * from write('insert into t (id, k) select nullif(i, 900), k from src');
select * from write('insert into t (id, n) select i, i % 700 from src');
-- 3. rows that fail in the plan: before, at and after a row that fails when it is written
select * from write('insert into t (id, k) select i, 1 / (700 - i) from src');
select * from write('insert into t (id, k) select i % 690, 1 / (700 - i) from src');
select * from write('insert into t (id, k) select i % 710, 1 / (700 - i) from src');
select * from write('insert into t (id, k) select case i when 699 then 1 else i end, 1 / (700 - i) from src');
select * from write('insert into t (id, k) select i, case when i < 700 then i else ''x''::text::int + i end from src');
select * from write('insert into t (id, k) select i, (case when i < 700 then 2 * i else i end)::even from src');
select * from write('insert into t (id, k) select i, (select i from src s2 where s2.i <= greatest(src.i - 698, 1)) from src');
select * from write('insert into t (id, k) select i % 690, case when case when i < 700 then ''$'' else ''$['' end::jsonpath is null then 1 end from src');
select * from write('insert into t (id, k) select i, case when case when i < 700 then ''src'' else ''none.src'' end::regclass = 0 then 1 end from src');
select * from write('insert into t (id, k) select i % 690, nextval(case when i < 700 then ''other'' else ''src'' end::regclass) from src');
-- 4. triggers that see rows, fail, change them, leave them out
create function trg() returns trigger language plpgsql as $$
begin
    if new.id % 100 = 0 then perform note(tg_when || new.id); end if;
    if new.id = 650 then new.k := -1; end if;
    if new.id = 651 then return null; end if;
    if new.id = coalesce(nullif(current_setting('la.fail', true), ''), '0')::int then raise exception 'at %', new.id; end if;
    return new;
end $$;
create trigger b before insert or update on t for each row execute function trg();
create trigger a after insert or update on t for each row execute function trg();
select * from write('insert into t (id, k, s) select i, k, s from src');
select * from write('insert into t (id, k, s) select i, 1 / (700 - i), s from src');
select * from write('with x as (select set_config(''la.fail'', ''777'', true)) insert into t (id, k) select i, k from src, x');
select * from write('insert into t (id, k) select noted(i), k from src');
-- what a trigger changes, and the plan reads
set la.seen = '';
create function setter() returns trigger language plpgsql as $$
begin
    perform set_config('la.seen', new.id::text, true);
    return new;
end $$;
create trigger c before insert on t for each row execute function setter();
select * from write('insert into t (id, k, s) select i, k, current_setting(''la.seen'', true) from src');
select * from write('insert into t (id, k, s) select nextval(''seq''), k, s from src');
drop trigger c on t;
create function drawer() returns trigger language plpgsql as $$
begin
    new.n := nextval('seq');
    return new;
end $$;
create trigger c before insert on t for each row execute function drawer();
select * from write('insert into t (id, k, s) select nextval(''seq''), k, s from src');
drop trigger a on t;
drop trigger b on t;
drop trigger c on t;
-- ... and those of a MERGE that deletes
create function gone() returns trigger language plpgsql as $$
begin
    perform note('d' || old.id);
    return old;
end $$;
create trigger d before delete on t for each row execute function gone();
select * from write('merge into t using src on t.id = src.i + 150 when matched and t.id % 50 = 0 then delete when matched then do nothing when not matched then insert (id, k, s) values (i + 150, src.k, src.s)');
drop trigger d on t;
-- 5. values that are drawn, and state that is read
select * from write('insert into t (id, k, s) select nextval(''seq''), k, s from src');
select * from write('insert into t (id, k, s) select nextval(''seq''), 1 / (700 - i), s from src');
select * from write('insert into t (id, k, n) select nextval(''seq''), k, nextval(''seq'') from src');
select * from write('insert into t (id, k, s) select i, k, (now() at time zone ''utc'')::text || s from src');
select * from write('insert into t (id, k, n) select i, k, currval(''seq'') + i from src');
select * from write('insert into t (id, k, s) select i, k, pg_current_xact_id_if_assigned()::text is null from src');
select * from write('insert into t (id, k, s) select i, k, clock_timestamp()::text is null from src');
-- ... by what the write evaluates between two rows
create function noted_row() returns trigger language plpgsql as $$ begin perform note(new.id::text); return null; end $$;
create trigger w after insert on t for each row when (nextval('seq') > 0) execute function noted_row();
select * from write('insert into t (id, k, s) select nextval(''seq''), k, s from src where i <= 200');
drop trigger w on t;
create trigger w after insert on t for each row when (new.id = currval('seq')) execute function noted_row();
select * from write('insert into t (id, k, s) select nextval(''seq''), k, s from src where i <= 200');
drop trigger w on t;
select * from write('insert into t (id, k, s) select i + case when i % 2 = 0 then 1000000 else 0 end, nextval(''seq''), s from src on conflict (id) do update set k = (select nextval(''seq'')), s = excluded.s');
select * from write('with x as (insert into t (id, k, s) select i, nextval(''seq''), s from src returning case when id = 700 then (select last_value from seq) end v) select note(sum(v)::text) from x');
select * from write('merge into t using src on t.id = src.i + 999500 when matched and src.i = 800 and (select nextval(''seq'')) > 0 then delete when not matched then insert (id, k) values (src.i, nextval(''seq''))');
-- 6. ON CONFLICT
select * from write('insert into t (id, k, s) select i + case when i % 2 = 0 then 1000000 else 0 end, k, s from src on conflict (id) do update set k = t.k + 1, s = excluded.s');
select * from write('insert into t (id, k, s) select i + 999000, k, s from src on conflict do nothing');
select * from write('insert into t (id, k, s) select i % 900, k, s from src on conflict (id) do update set k = 1');
select * from write('insert into t (id, k, s) select i + 999000, k, s from src on conflict (id) do update set id = t.id + 1 where t.k > 100');
select * from write('insert into t (id, k, n) select i, k, i / 2 from src on conflict (n) where n > 0 do update set s = ''twice'' where t.n <> 50');
-- several arbiters, of which the first one finds a row
create table m (a int, b text collate "C", c int);
create unique index on m (b, a);
create unique index on m ((nullif(a, 5)));
create unique index on m (c);
insert into m select i, i % 7, i from generate_series(10, 1000) i;
select * from write('insert into m select i, i % 7, i from generate_series(500, 1300) i on conflict do nothing');
select * from write('insert into m select i, i % 7, 5000 + i from generate_series(500, 1300) i on conflict do nothing');
select * from write('insert into m select i, i % 7 + 1, i from generate_series(500, 1300) i on conflict do nothing');
drop table m;
-- 7. UPDATE
select * from write('update t set k = k + 1');
select * from write('update t set s = s || ''x'' where id % 3 = 0');
select * from write('update t set u = gen_random_uuid()::text::uuid where false');
select * from write('update t set n = 5 where id in (1000001, 1000002)');
select * from write('update t set id = id + 1');
select * from write('update t set id = id + 5000, n = id');
select * from write('update t set k = src.k from src where src.i % 1000 = t.k % 1000');
select * from write('update t set k = 1 / (t.k - 500) from src where src.i = t.k');
set enable_hashjoin = off;
set enable_nestloop = off;
select * from write('insert into t (id, k, s) select x.id + 5000, src.k, src.s from src join t x on x.id = src.i + 1000000');
select * from write('update t set k = src.k from src where src.i + 1000000 = t.id');
reset enable_hashjoin;
reset enable_nestloop;
-- 8. constraints, generated and wide columns, other expressions of the write
create table g (id int, k int check (k < 100000), d int generated always as (k / 2) stored, w text, p point, a int[], e even);
create index on g (d);
create index on g (lower(w));
create index on g using gist (p);
create index on g using gin (a);
create index on g (a);
create index on g (e, w);
select * from write('insert into g (id, k, w, p, a, e) select i, k % 1000, repeat(s, 60), point(i, k), array[i, k], 2 * i from src');
select * from write('insert into g (id, k, w, a) select i, case i when 800 then 100000 else k % 1000 end, s, array[i, k] from src');
select * from write('insert into g (id, w) select i, string_agg(md5((i * 1000 + j)::text), '''') from src, generate_series(1, 100) j where i < 200 group by i');
select * from write('insert into g (id, w) select id, w from g union all select i, repeat(s, 1000) from src');
select * from write('insert into g (id, w) select i, repeat(md5(i::text), 100) from src');
-- indexes whose expressions and predicates fail for rows that are written, or that are not
create table f (id int primary key, k int, w text, h text);
create index on f ((1000000 / (k - 700)));
create index on f (id) where 100 / (id - 800) > 0;
create index on f ((left(w, k)::int));
create index on f using hash (h);
create index on f using hash ((w || h));
select * from write('insert into f select i, 0, null, s from src where i < 800');
select * from write('insert into f select i, case i when 650 then 700 else 1 end, null, s from src where i < 800');
select * from write('insert into f select i, 0, null, s from src');
select * from write('insert into f select i, 0, case when i > 500 then ''x'' end, s from src where i < 800');
select * from write('insert into f select i, case when i > 500 then 700 else 1 end, ''5'', s from src where i < 800 on conflict do nothing');
select * from write('insert into f select i % 600, case when i > 600 then 700 else 1 end, ''5'', s from src on conflict do nothing');
select * from write('insert into f select i % 600, case i when 550 then 700 else 1 end, ''5'' || repeat(s, 1000), repeat(s, 1000) from src on conflict do nothing');
drop table f;
-- 9. partitions
create table p (id int, k int, s text) partition by range (k);
create table p0 partition of p for values from (minvalue) to (30000);
create table p1 (s text, gone int, k int, id int);
alter table p1 drop column gone;
alter table p attach partition p1 for values from (30000) to (60000);
create table p2 partition of p for values from (60000) to (100000) partition by hash (id);
create table p2a partition of p2 for values with (modulus 2, remainder 0);
create table p2b partition of p2 for values with (modulus 2, remainder 1);
create unique index on p (id, k);
create index on p (s);
create table l (id int, k text) partition by list (lower(k));
create table l0 partition of l for values in ('a', null);
create table l1 partition of l default;
create index on l (k, id);
create table h (id int, k text) partition by hash (k, id);
create table h0 partition of h for values with (modulus 2, remainder 0);
create table h1 partition of h for values with (modulus 2, remainder 1);
create index on h (k, id);
create table e (id int, k text) partition by list ((id % 3));
create table e0 partition of e for values in (0, null);
create table e1 partition of e default;
create index on e (k, id);
insert into e select nullif(i, 7), 'e' || i from generate_series(1, 900) i;
insert into p select -i, i * 37 % 90000, 'old' || i from generate_series(1, 1000) i;
select * from write('insert into p select i, k, s from src');
select * from write('insert into p select i, k + case when i > 1400 then 90000 else 0 end, s from src');
select * from write('insert into p select i - 1000, (i - 1000) * -37 % 90000, s from src on conflict (id, k) do update set s = excluded.s');
select * from write('insert into l select i, case i % 5 when 0 then ''A'' when 1 then null else ''b'' || i end from src');
select * from write('insert into h select i, s from src');
select * from write('insert into e select nullif(i, 7), s from src');
select * from write('update e set id = id + 1');
select * from write('update e set k = k || ''x'' where id % 2 = 0');
select * from write('update p set s = ''x'' || id');
select * from write('update p set k = (k + 20000) % 90000 where id % 2 = 0');
select * from write('insert into p1 (id, k, s) select i, i + 29000 + i / 1100 * 40000, s from src');
create trigger pt before insert on p1 for each row execute function trg();
select * from write('insert into p select i, k, s from src');
create table m (k numeric, i int) partition by hash (k);
create table m0 partition of m for values with (modulus 1, remainder 0);
create index on m (i);
create function check_memory() returns trigger language plpgsql as $$
begin
    if (select sum(used_bytes) from pg_backend_memory_contexts where name = 'ExecutorState') > 1000000 then
        raise exception 'what was needed for rows before is still there';
    end if;
    return new;
end $$;
create trigger mt before insert on m0 for each row when (new.i = 59999) execute function check_memory();
create table numbers as select i::numeric k, i from generate_series(1, 60000) i;
select * from write('insert into m select * from numbers');
drop table m, numbers;
-- 10. views, policies, RETURNING, CTEs, functions, other triggers
create view v as select id, k, s from t where k < 90000 with check option;
create view w as select id, k from t;
create function instead() returns trigger language plpgsql as $$
begin
    if new.id % 100 = 0 then perform note('v' || new.id); end if;
    insert into t (id, k) values (new.id, new.k);
    return new;
end $$;
create trigger i instead of insert on w for each row execute function instead();
select * from write('insert into v select i, k % 90000, s from src');
select * from write('insert into v select i, k + i * 60 from src');
select * from write('insert into w select i, k from src');
select * from write('with x as (insert into t (id, k) select i, k from src returning id, noted(id)) select count(*) from x where id % 2 = 0');
select * from write('with x as (insert into t (id, k) select i, k from src returning id) insert into g (id, w) select id, ''w'' || id from x');
select * from write('with x as (update t set k = k + 1 returning id) insert into g (id, w) select i, s from src where exists (select from x where x.id = 1000000 + i)');
select * from write('merge into t using src on t.id = src.i + 1000000 - 500 when matched then update set k = src.k when not matched then insert (id, k) values (i, src.k)');
-- writes in a CTE, and what comes between their rows
select * from write('with x as (insert into t (id, k) select i, k from src) select 1');
select * from write('with x as (insert into t (id, k) select i, k from src returning id) select id from x limit 3');
select * from write('with x as (insert into t (id, k) select i, k from src returning id) insert into g (id, k) select id, case id when 700 then 100000 else noted(id) end from x');
select * from write('with x as (insert into t (id, k) select i, 1 / (700 - i) from src returning id) insert into g (id, k) select id, case id when 600 then 100000 else noted(id) end from x');
select * from write('with x as (insert into t (id, k) select i, 1 / (700 - i) from src returning id), y as (insert into g (id, k) select id, noted(id) from x) select 1');
select * from write('with x as (insert into t (id, k) select nullif(i, 800), 1 / (700 - i) from src returning id), y as (update t set k = 1 / (k - 600) where k > 500 returning k) select count(*) from x, y');
select * from write('with x as (insert into t (id, s) select i, current_setting(''la.seen'', true) from src returning id) select count(set_config(''la.seen'', id::text, true)) from x');
select * from write('with x as (insert into t (id, n) select i, nextval(''seq'') from src returning id) select count(nextval(''seq'')) from x');
select * from write('with s as materialized (select i, k from src), x as (insert into t (id, k) select i, k from s returning id) select count(*) from x, s where x.id = s.i');
select * from write('with s as materialized (select i, k from src) insert into t (id, k) select i, k from s returning exists (select from s where s.i = t.id + 250)');
select * from write('with s as materialized (select i, k from src) insert into t (id, k) select i, k from s returning id');
select * from write('with x as (update t set k = k + 1 where id % 2 = 0 returning id) update t set n = id where id % 2 = 1 and id not in (select id + 1 from x where id % 3 = 0)');
select * from write('with x as (delete from t where id % 2 = 0 returning *) insert into t select id + 5000, k, u, s from x');
select * from write('with x as (insert into p select i, k % 90000, s from src returning *), y as (delete from t where k < 500 returning id) insert into g (id, k, w) select id, k % 1000, s from x');
create function fill() returns int language sql as $$ insert into la_write.t (id, k) select i, k from la_write.src returning id $$;
select * from write('select fill() from src where i < 2');
select * from write('do $d$ declare c cursor for select * from la_write.t where k < 500 for update; begin for r in c loop update la_write.t set k = k + 1 where current of c; end loop; end $d$');
create function transition() returns trigger language plpgsql as $$
begin
    perform note(tg_when || tg_op || coalesce((select sum(k)::text || max(id) from n), ''));
    return null;
end $$;
create trigger s after insert on t referencing new table as n for each statement execute function transition();
select * from write('insert into t (id, k, s) select nextval(''seq''), k, s from src');
drop trigger s on t;
-- 11. MERGE
select current_setting('server_version_num')::int >= 170000 as by_source \gset
-- all actions, and the first whose condition holds
select * from write('merge into t using src on t.id = src.i + 999500 when matched then delete when not matched then insert (id, k, s) values (src.i, src.k, src.s)');
select * from write('merge into t using src on t.id = src.i + 999500 when matched and src.i % 5 = 0 then delete when matched and t.k % 3 = 0 then do nothing when matched and src.k > 500 then update set k = t.k + src.i, s = src.s when matched then update set n = src.i when not matched and src.i % 7 = 0 then do nothing when not matched then insert (id, k, s, n) values (src.i, src.k, src.s, src.i)');
select * from write('merge into t using src on t.id = src.i + 1000000 when matched then update set k = t.k, s = t.s');
select * from write('merge into t using src on t.id = src.i + 1000000 when matched then do nothing');
select * from write('merge into t using src on t.id = src.i + 1000000 when matched and t.tableoid = ''t''::regclass and t.n is null and t.id % 2 = 0 then delete when matched then update set id = t.id + 5000, k = default');
select * from write('merge into t using src on false when not matched then insert values (src.i, src.k, null, src.s, src.i)');
select * from write('merge into t using t x on t.id = x.id + 1500 when matched then update set k = x.k, s = x.s || t.s when not matched then insert (id, k) values (x.id - 1000000, x.k)');
-- conditions and values that fail, in a row that comes to them or not
select * from write('merge into t using src on t.id = src.i + 999500 when matched and 1000 / (src.i - 700) > 1 then update set k = 1 when not matched then insert (id, k) values (i, src.k)');
select * from write('merge into t using src on t.id = src.i + 999500 when matched and src.i <> 700 and 1000 / (src.i - 700) > 1 then update set k = src.i when not matched then insert (id, k) values (i, src.k)');
select * from write('merge into t using src on t.id = src.i + 999500 when matched then update set k = 10000 / (src.i - 700) when not matched then insert (id, k) values (i, src.k)');
select * from write('merge into t using src on t.id = src.i + 999500 when not matched then insert (id, k) values (i, 1 / (300 - i))');
select * from write('merge into t using src on t.id = src.i + 999500 when matched then delete when not matched then insert (id, k) values (i, 1 / (700 - i))');
select * from write('merge into t using src on t.id = src.i + 999500 when not matched then insert (id, n) values (i, (2 * i)::even)');
select * from write('merge into t using src on t.id = src.i + 999500 when not matched then insert (id, n) values (i, (i / 10)::even)');
-- the plan fails: before, at and after a row that fails when it is written
select * from write('merge into t using (select i, 1 / (i - 400) d from src) src on t.id = src.i + 999500 when not matched then insert (id, k) values (nullif(i, 410), d)');
select * from write('merge into t using (select i, 1 / (i - 400) d from src) src on t.id = src.i + 999500 when not matched then insert (id, k) values (nullif(i, 400), d)');
select * from write('merge into t using (select i, 1 / (i - 400) d from src) src on t.id = src.i + 999500 when not matched then insert (id, k) values (nullif(i, 390), d)');
-- conditions and values that have effects, draw values or read state
select * from write('merge into t using src on t.id = src.i + 999500 when matched and noted(src.i) % 3 = 0 then update set k = noted(src.i) when matched then delete when not matched and noted(src.i) > 0 then insert (id, k) values (noted(i), src.k)');
select * from write('merge into t using src on t.id = src.i + 999500 when matched then update set n = nextval(''seq''), k = src.k when not matched then insert (id, k, n) values (nextval(''seq''), src.k, nextval(''other''))');
select * from write('merge into t using (select i, k, nextval(''seq'') q from src) src on t.id = src.i + 999500 when matched then delete when not matched then insert (id, k, n) values (i, src.k, q)');
select * from write('merge into t using (select i, k, nextval(''seq'') q from src) src on t.id = src.i + 999500 when matched then delete when not matched then insert (id, k, n) values (i, nextval(''seq''), q)');
select * from write('merge into t using (select i, current_setting(''la.seen'', true) c from src) src on t.id = src.i + 999500 when not matched and set_config(''la.seen'', i::text, true) <> '''' then insert (id, s) values (i, c)');
select * from write('merge into t using src on t.id = src.i + 999500 when matched then update set s = src.s || current_date::text, k = src.k when not matched then insert (id, k, s) values (i, src.k, current_date::text || src.s)');
select * from write('merge into t using src on t.id = src.i + 999500 when matched and current_setting(''la.seen'', true) is null then delete when matched then update set k = src.k');
select * from write('merge into t using src on t.id = src.i + 999500 when matched then update set k = (select max(k) from src) when not matched then insert (id, k, n) values (i, (select min(k) from src), (select s2.i from src s2 where s2.i = src.i))');
-- rows that fail when they are written
select * from write('merge into t using src on t.id = src.i + 999500 when matched then update set k = 0 when not matched then insert (id, k) values (nullif(i, 450), src.k)');
select * from write('merge into t using src on t.id = src.i + 999500 when matched then update set id = 1000000 + src.i % 800 when not matched then insert (id, k) values (i, src.k)');
-- more than one row of the source matches a row, in the middle
select * from write('merge into t using (select case i when 901 then 640 else i end i, k from src) src on t.id = src.i + 1000000 when matched then update set k = src.k + 1');
select * from write('merge into t using (select case i when 901 then 640 else i end i, k from src) src on t.id = src.i + 1000000 when matched then delete');
select * from write('merge into t using (select case i when 901 then 640 else i end i, k from src) src on t.id = src.i + 1000000 when matched and src.i <> 640 then update set k = src.k + 1');
-- triggers
create trigger b before insert or update on t for each row execute function trg();
create trigger a after insert or update on t for each row execute function trg();
create trigger x after insert on t referencing new table as n for each statement execute function transition();
create trigger y after update on t referencing new table as n for each statement execute function transition();
select * from write('merge into t using src on t.id = src.i + 999500 when matched and src.i % 5 = 0 then delete when matched then update set k = src.k when not matched then insert (id, k, s) values (i, src.k, src.s)');
select * from write('merge into t using (select case i when 901 then 640 else i end i, k from src) src on t.id = src.i + 1000000 when matched then update set k = src.k + 1');
drop trigger a on t;
drop trigger b on t;
drop trigger x on t;
drop trigger y on t;
-- partitions, of which some are opened for inserts, some for updates; a trigger is on one
select * from write('merge into p using src on p.id = 600 - src.i when matched and src.i % 3 = 0 then delete when matched then update set s = ''m'' || src.i when not matched then insert values (src.i, src.k % 90000, src.s)');
select * from write('merge into p using src on p.id = 600 - src.i when matched then update set k = (p.k + 20000) % 90000 when not matched then insert (k, id) values (src.k % 90000, src.i)');
select * from write('merge into p using src on p.id = 600 - src.i and p.k < 30000 when matched then update set s = src.s when not matched then insert values (src.i, src.k % 90000, src.s)');
alter table p1 disable trigger pt;
select * from write('merge into p using src on p.id = 600 - src.i when matched then update set s = src.s when not matched then insert values (src.i, src.k % 90000, src.s)');
select * from write('merge into p using src on p.id = 600 - src.i when matched then delete when not matched then insert values (nextval(''seq''), src.k % 90000, src.s || (clock_timestamp() is null))');
select * from write('merge into p using src on p.id = 600 - src.i when matched then delete when not matched then insert values (src.i, nextval(''seq'') * 37, src.s)');
select * from write('merge into p using src on p.id = 600 - src.i when not matched then insert values (src.i, src.k, src.s)');
select * from write('merge into p using src on false when not matched then insert values (src.i, src.k % 90000, src.s)');
select * from write('merge into l using src on l.id = src.i when not matched then insert values (src.i, case i % 5 when 0 then ''A'' when 1 then null else ''b'' || i end)');
-- inheritance, generated columns, other indexes
create table heir (extra int) inherits (g);
create index on heir (id);
create index on g (id);
insert into g (id, k, w, a) select i, k % 1000, s, array[i] from src where i <= 500;
insert into heir (id, k, w, extra) select i, k % 1000, s, i from src where i > 500 and i <= 1000;
select * from write('merge into g using src on g.id = src.i + 100 when matched and g.k < 300 then delete when matched then update set k = src.k % 1000, w = src.s, a = g.a || src.i when not matched then insert (id, k, w, e) values (src.i, src.k % 1000, repeat(src.s, 60), 2 * src.i)');
select * from write('merge into only g using src on g.id = src.i + 100 when matched then update set w = src.s || g.d, p = point(src.i, src.k) when not matched then insert (id, k, w, e) values (src.i, src.k % 1000, src.s, 2 * src.i)');
drop table heir;
truncate g;
alter table p1 enable trigger pt;
-- Params
create function merges(int, text) returns void language plpgsql as $$
declare r src;
begin
    r.i := $1;
    merge into t using src on t.id = src.i + 999500 when matched and src.i > $1 then update set k = r.i + src.i, s = $2
        when not matched and r.i < src.i then insert (id, k, s) values (src.i, r.i, $2 || src.s);
end $$;
create function merge_often() returns void language plpgsql as $$
begin
    for i in 1..7 loop
        perform merges(i * 100, 'm' || i);
        delete from t where id < 1000000;
    end loop;
end $$;
prepare m(int, text) as merge into t using src on t.id = src.i + 999500 when matched and src.i > $1 then update set k = $1 + src.i, s = $2
    when not matched then insert (id, k, s) values (src.i, src.k, $2 || src.s);
create function merge_prepared() returns void language plpgsql as $$ begin execute 'execute m(600, ''text'')'; end $$;
select * from write('do $d$ begin perform la_write.merge_often(); end $d$');
set plan_cache_mode = force_generic_plan;
select * from write('do $d$ begin perform la_write.merge_prepared(); end $d$');
select * from write('do $d$ begin perform la_write.merge_often(); end $d$');
reset plan_cache_mode;
deallocate m;
\if :by_source
select * from write('merge into t using src on t.id = src.i + 1000000 when matched and src.i % 2 = 0 then update set k = src.k when not matched by source and t.k % 3 = 0 then delete when not matched by source then update set k = t.k + 1, s = ''gone'' when not matched then insert (id, k) values (src.i, src.k)');
select * from write('merge into t using src on t.id = src.i + 999500 and noted(src.i) > 0 when matched then update set k = src.k when not matched by source and t.id < 1002000 then update set n = t.id when not matched then insert (id, k) values (src.i, src.k)');
select * from write('merge into t using src on t.id = src.i + 1000000 and 1000 / (src.i - 700) <> 0 when matched then update set k = src.k when not matched by source then delete');
select * from write('merge into p using src on p.id = 600 - src.i when matched then update set s = ''m'' || src.i when not matched by source then update set s = ''gone'' when not matched then insert values (src.i, src.k % 90000, src.s)');
select * from write('do $d$ declare r record; begin for r in merge into la_write.t using la_write.src on t.id = src.i + 999500 when matched and src.i % 5 = 0 then delete when matched then update set k = src.k when not matched then insert (id, k) values (src.i, src.k) returning merge_action() m, t.* loop if r.id % 100 = 0 then perform la_write.note(r.m || r.id || ''.'' || r.k); end if; end loop; end $d$');
select * from write('merge into t using (select i, k, nextval(''seq'') q from src) src on t.id = src.i + 999500 when matched then update set n = q when not matched then insert (id, k, n) values (i, src.k, q) returning merge_action(), t.id, q');
select * from write('with x as (merge into t using src on t.id = src.i + 999500 when matched then update set k = src.k when not matched then insert (id, k) values (src.i, src.k) returning merge_action() m, id, noted(src.i)) insert into g (id, w) select id, m from x');
select * from write('merge into v using src on v.id = src.i + 999500 when matched then update set k = src.k % 90000 when not matched then insert values (src.i, src.k % 90000, src.s)');
\else
\echo 't|t|2250|'
\echo 't|f|2499|'
\echo 't|f||22012 division by zero'
\echo 't|t|1600|'
\echo 't|t|0|'
\echo 't|t|1500|'
\echo 't|t|1500|'
\echo 't|t|1500|'
\endif
-- 12. foreign keys, and constraints that are checked at the end
create table c (id int primary key, o int unique deferrable initially deferred, t int references t deferrable initially deferred, parent int references c);
select * from write('insert into c select i, i, 1000000 + i, i from src');
select * from write('insert into c select i, i, 1000000 + i, i + 1 from src');
select * from write('insert into c select i, i % 1400, 1000000 + i, null from src');
select * from write('insert into c select i, i, i + 1001600, null from src');
-- 13. COPY
select current_setting('data_directory') || '/la_write.copy' as file \gset
copy (select i, k, s from src) to :'file';
select * from write(format('copy t (id, k, s) from %L', :'file'));
select * from write(format('copy t (k, id, s) from %L', :'file'));
select * from write(format('copy t (id, n, s) from %L where n < 50000', :'file'));
select * from write(format('copy p from %L', :'file'));
select * from write(format('copy g (id, k, w) from %L', :'file'));
copy (select i, case i when 1200 then 'x' else k::text end, s from src) to :'file';
select * from write(format('copy t (id, k, s) from %L', :'file'));
copy (select i % 1300, k, s from src) to :'file';
select * from write(format('copy t (id, k, s) from %L', :'file'));
create trigger b before insert or update on t for each row execute function trg();
copy (select i, k, s from src) to :'file';
select * from write(format('copy t (id, k, s) from %L', :'file'));
drop trigger b on t;
create trigger b before insert on t for each statement execute function transition();
\set VERBOSITY terse
begin;
copy (select i, i::text from src) to :'file';
create temp table tt (id int primary key, s text);
set local pg_lookahead.force = on;
copy tt from :'file';
insert into tt select i + 2000, s from src;
savepoint a;
copy tt from :'file';
rollback to a;
select count(*) from tt;
rollback;
-- 14. isolation levels
begin isolation level serializable;
set local pg_lookahead.force = on;
drop trigger b on t;
insert into t (id, k, s) select i, k, s from src;
update t set k = k + 1 where id < 1000;
select count(*), sum(k) from t;
rollback;
-- predicate locks of rows that are then written
create table so (id int primary key, v int);
insert into so select i, i from generate_series(1, 5000) i;
create view predicate_locks as
    select string_agg(format('%s %s %s', relation::regclass, locktype, n), ', ' order by relation::regclass::text, locktype) l
    from (select relation, locktype, count(*) n from pg_locks where mode = 'SIReadLock' and pid = pg_backend_pid() group by 1, 2) s;
\set make 'drop table if exists sl; create table sl (id int primary key, k int) with (fillfactor = 50); insert into sl select i, i from generate_series(1, 5000) i; create index on sl (k) with (fillfactor = 30); analyze sl, so;'
\set one 'update sl set k = k + 1 where k between 100 and 400;'
\set two 'update sl set k = k + v from so where k between 100 and 400 and so.id = sl.id;'
set enable_seqscan = off;
set enable_bitmapscan = off;
set enable_hashjoin = off;
set enable_mergejoin = off;
set enable_material = off;
set enable_memoize = off;
set pg_lookahead.force = on;
set pg_lookahead.enable = off;
:make
begin isolation level serializable;
:one
select l as stock_one from predicate_locks \gset
rollback;
:make
begin isolation level serializable;
:two
select l as stock_two from predicate_locks \gset
rollback;
set pg_lookahead.enable = on;
:make
begin isolation level serializable;
:one
select l = :'stock_one' same, l <> '' from predicate_locks;
rollback;
:make
begin isolation level serializable;
:two
select l = :'stock_two' same, l <> '' from predicate_locks;
rollback;
reset all;
set search_path = la_write, public;
set client_min_messages = warning;
drop view predicate_locks;
drop table sl, so;
-- 15. why not
set pg_lookahead.force = on;
drop trigger b on t;
create trigger b before insert on t for each row execute function setter();
begin;
insert into t (id, k) select nextval('seq') - 1000000, k from src;
select kind, relation, reason from pg_lookahead_last_statement();
rollback;
begin;
insert into t (id, k) select noted(i), k from src;
select kind, relation, reason from pg_lookahead_last_statement();
rollback;
-- what is known of MERGE's rows: all indexes, those of some columns, none
begin;
merge into t using src on t.id = src.i + 999500 when matched then delete when not matched then insert (id, k, s) values (src.i, src.k, src.s);
select kind, blocks_foreseen > 2500 from pg_lookahead_last_statement() where kind = 'index insert';
rollback;
begin;
merge into t using src on t.id = src.i + 999500 when matched then update set k = src.k when not matched then do nothing;
select kind, blocks_foreseen > 5000 from pg_lookahead_last_statement() where kind = 'index insert';
rollback;
begin;
merge into t using src on t.id = src.i + 999500 when matched then update set k = src.k, s = clock_timestamp()::text when not matched then do nothing;
select kind, blocks_foreseen between 2500 and 3500 from pg_lookahead_last_statement() where kind = 'index insert';
rollback;
begin;
merge into t using src on t.id = src.i + 999500 when matched and noted(src.i) > 0 then update set k = src.k when not matched then do nothing;
select kind, blocks_foreseen from pg_lookahead_last_statement() where kind = 'index insert';
rollback;
begin;
merge into p using src on p.id = 600 - src.i when matched then update set k = p.k when not matched then insert (k, s, id) values (src.k % 90000, src.s, src.i);
select kind, blocks_foreseen > 1000 from pg_lookahead_last_statement() where kind = 'index insert';
rollback;
begin;
merge into p using src on p.id = 600 - src.i when not matched then insert values (src.i, nextval('seq') * 30, src.s);
select kind, blocks_foreseen from pg_lookahead_last_statement() where kind = 'index insert';
rollback;
begin;
insert into t (id, k) select row_number() over (), c.reltuples from pg_class c;
select kind, relation, reason from pg_lookahead_last_statement() where kind = 'index insert';
rollback;
begin;
create function fails(int, int) returns int language internal immutable strict as 'int4div';
insert into t (id, k) select i, fails(i, 2) from src;
select kind, relation, reason from pg_lookahead_last_statement();
rollback;
-- 15. notices: how often, and between which rows
drop trigger b on t;
create function shout() returns trigger language plpgsql as $$
begin
    if new.i between 298 and 302 then raise notice 'row %', new.i; end if;
    return new;
end $$;
create table words as select i, case i when 301 then repeat('x', 3000) else 'w' || i end as s from generate_series(1, 600) i;
create table queries as select i, case i when 301 then '' else 'w' || i end as s from generate_series(1, 600) i;
create table n (i int, s text, primary key (i));
create index on n (length(to_tsvector('simple', s)));
create table o (i int primary key, n int);
create trigger o before insert on o for each row execute function shout();
set client_min_messages = notice;
set pg_lookahead.enable = off;
insert into n select * from words;
insert into o select i, length(to_tsvector('simple', s)) from words;
delete from o;
insert into o select 1 + i % 500, numnode(to_tsquery('simple', s)) from queries;
delete from n;
set pg_lookahead.enable = on;
insert into n select * from words;
select bool_or(scans_activated > 0) from pg_lookahead_last_statement();
insert into o select i, length(to_tsvector('simple', s)) from words;
select kind, relation, reason from pg_lookahead_last_statement();
delete from o;
insert into o select 1 + i % 500, numnode(to_tsquery('simple', s)) from queries;
drop trigger o on o;
insert into o select 1 + i % 200, numnode(s::tsquery) from queries;
set client_min_messages = warning;
reset pg_lookahead.force;
drop schema la_write cascade;
