--
-- foreign_key - checks and actions of foreign keys are the same with and without look-ahead.
--
-- As in write.sql: each statement runs with look-ahead off, and then in two ways with it.  "same"
-- must be true; "ahead" says whether rows were looked ahead over.
--
\set ECHO none
set client_min_messages = warning;
create extension if not exists pg_lookahead;
drop schema if exists la_keys cascade;
create schema la_keys;
set search_path = la_keys, public;
set synchronous_commit = off;

create function tables() returns text language plpgsql as $$
declare r record; h text; out text := '';
begin
    for r in select oid::regclass t from pg_class
        where relnamespace = 'la_keys'::regnamespace and relkind = 'r' order by relname loop
        execute format('select md5(string_agg(t::text, '','' order by t::text)) from %s t', r.t) into h;
        out := out || coalesce(left(h, 8), '-') || ' ';
    end loop;
    return out;
end $$;

create function outcome(statement text, ahead text[], out error text, out rows bigint, out result text)
language plpgsql as $$
declare s text;
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
        get stacked diagnostics error = pg_exception_detail;
        error := sqlstate || ' ' || sqlerrm || ' ' || error;
    end;
    set local pg_lookahead.enable = off;
    result := tables() || '|' || current_setting('la.trace');
    raise exception using errcode = 'LA001';
exception when sqlstate 'LA001' then
    null;
end $$;

create function activated() returns bigint language sql as
    $$ select scans_activated from pg_stat_lookahead where kind = 'foreign key' $$;

create function write(statement text, out same bool, out ahead bool, out rows bigint, out error text)
language plpgsql as $$
declare stock record; ours record; way text[]; before bigint;
begin
    stock := outcome(statement, array['pg_lookahead.enable = off']);
    same := true;
    before := activated();
    foreach way slice 1 in array array[
        array['pg_lookahead.force = on', 'pg_lookahead.enable = on'],
        array['pg_lookahead.force = on', 'pg_lookahead.max_distance = 1'],
        array['pg_lookahead.miss_threshold = 0', 'pg_lookahead.min_read_time = 0']] loop
        ours := outcome(statement, way);
        if ours is distinct from stock then
            same := false;
            raise warning '% %', way, ours;
            raise warning 'stock %', stock;
        end if;
    end loop;
    ahead := activated() > before;
    rows := stock.rows;
    error := stock.error;
end $$;

create function note() returns trigger language plpgsql as $$
begin
    if old.id % 50 = 0 then
        perform set_config('la.trace', current_setting('la.trace') || tg_op || old.id || ' ', true);
    end if;
    return null;
end $$;

create table a (id int primary key, b bigint, c text, unique (c, b));
create table src (i int, k int, b bigint, c text);
insert into a select i, i * 10, 'c' || i from generate_series(1, 2000) i;
insert into src select i, (i * 7919) % 2000 + 1, 10 * ((i * 7919) % 2000 + 1), 'c' || ((i * 7919) % 2000 + 1) from generate_series(1, 1000) i;
create domain d as smallint;
create table r (id int, a int references a, a2 d references a(id), b int, c varchar, foreign key (b, c) references a (b, c));
vacuum analyze;

\pset format unaligned
\pset tuples_only
-- 1. checks
select * from write('insert into r (id, a) select i, k from src');
select * from write('insert into r (id, a, a2) select i, k, k + 1 from src where k < 2000');
select * from write('insert into r select i, k, k, b, c from src');
select * from write('insert into r select i, case when i % 3 > 0 then k end, null, b, case when i % 2 > 0 then c end from src');
select * from write('insert into r (id, a) select i, k + i / 900 * 2000 from src');
select * from write('insert into r (id, b, c) select i, b, c || case when i = 500 then ''x'' else '''' end from src');
select * from write('insert into r (id, a) select i, k from src order by k');
insert into r select i, k, k, b, c from src;
insert into r (id, a) select -i, k from src;
analyze r;
select * from write('update r set a = a % 2000 + 1');
select * from write('update r set a = case when id % 3 = 0 then a % 2000 + 1 else a end');
select * from write('update r set a = a + 2000 where id = -700');
select * from write('update r set id = id + 1');
select * from write('update r set a = s.k from src s where s.i = r.id');
select * from write('insert into r (id, a) select i, k from src returning id');
select * from write('with x as (insert into a select 5000 + i, null, null from src returning id) insert into r (id, a) select id, id from x');
-- 2. no action and restrict, without an index and with one
select * from write('delete from a where id > 1900 and not exists (select from r where a.id in (r.a, r.a2))');
create index on r (a);
create index on r (a2);
create index on r (c, b);
select * from write('delete from a where id > 1000 and not exists (select from r where a.id in (r.a, r.a2))');
select * from write('delete from a where id > 1000');
select * from write('update a set id = id + 10000 where not exists (select from r where a.id in (r.a, r.a2))');
select * from write('update a set b = b + 1 where not exists (select from r where r.c = a.c)');
select * from write('update a set b = b + 1');
-- 3. actions
create table x1 (id int, a int references a on delete cascade on update cascade, k int);
create table x2 (id int, a int references a on delete set null on update set default, n int);
create table x3 (id int primary key, a int default 1 references a on delete set default on update cascade);
create table x4 (id int, x3 int references x3 on delete cascade);
create index on x1 (a, k);
create index on x2 (a);
create index on x3 (a);
create index on x4 (x3);
alter table r drop constraint r_a_fkey, drop constraint r_a2_fkey, drop constraint r_b_c_fkey;
insert into x1 select i * 10 + j, k, j from src, generate_series(1, 5) j where i < 500;
insert into x2 select i, k, i from src;
insert into x3 select i, k from src where i % 2 = 0;
insert into x4 select i * 10 + j, i from src, generate_series(1, 3) j where i % 2 = 0;
create trigger n after delete or update on x1 for each row execute function note();
create trigger n after delete or update on x4 for each row execute function note();
analyze;
select * from write('delete from a where id between 500 and 1500');
select * from write('delete from a using src where src.k = a.id and a.id <> 1');
select * from write('delete from a where id in (select k from src order by c limit 400)');
select * from write('update a set id = id + 10000 where id > 1');
select * from write('update a set id = id + case when id % 2 = 0 then 10000 else 0 end where id > 1');
select * from write('delete from x3');
select * from write('delete from a');
select * from write('truncate a cascade');
-- 4. one table, and deferred constraints
create table t (id int primary key, parent int references t on delete cascade);
create index on t (parent);
insert into t select i, nullif(i / 3, 0) from generate_series(1, 1500) i;
analyze t;
select * from write('delete from t where id < 20');
select * from write('insert into t select i + 2000, i + 1999 + (i = 1)::int from src order by i');
select * from write('insert into t select i + 2000, i + 2001 from src order by i');
alter table x1 alter constraint x1_a_fkey deferrable initially deferred;
select * from write('insert into x1 select i, k + i / 900 * 2000, 0 from src');
select * from write('delete from a where id between 500 and 1500');
-- 5. partitions
create table pr (id int, a int references a) partition by hash (id);
create table pr0 partition of pr for values with (modulus 2, remainder 0);
create table pr1 (a int, id int);
alter table pr attach partition pr1 for values with (modulus 2, remainder 1);
create table pa (id int primary key) partition by hash (id);
create table pa0 partition of pa for values with (modulus 2, remainder 0);
create table pa1 partition of pa for values with (modulus 2, remainder 1);
create table xp (id int, pa int references pa on delete cascade);
create index on xp (pa);
insert into pa select i from generate_series(1, 2000) i;
select * from write('insert into pr select i, k from src');
select * from write('insert into pr select i, k + i / 900 * 2000 from src');
select * from write('update pr set a = a % 2000 + 1');
insert into pr select i, k from src;
create index on pr (a);
select * from write('update pr set a = a % 2000 + 1');
select * from write('delete from a where id > 1000 and id not in (select a from pr)');
select * from write('insert into xp select i, k from src');
insert into xp select i, k from src;
select * from write('delete from pa where id > 500');
-- 6. triggers that are switched off, or get in between
alter table x2 disable trigger all;
select * from write('insert into x2 select i, -k, 0 from src');
alter table x2 enable trigger all;
set session_replication_role = replica;
select * from write('insert into x2 select i, -k, 0 from src');
reset session_replication_role;
create function other() returns trigger language plpgsql as $$
begin
    insert into la_keys.a select new.id + 100000 where new.id % 100 = 0;
    delete from la_keys.a where id = new.a and new.id % 100 = 1;
    return null;
end $$;
create trigger "A" after insert on x2 for each row execute function other();
select * from write('insert into x2 select i, k, 0 from src');
select * from write('insert into x2 select i + 99999, case when i % 100 = 2 then i + 99998 else k end, 0 from src');
-- 7. locks: those of the server's queries, whose plans are there already
create table lp (id int primary key);
create table lr (id int, p int references lp, o int);
create index lr_p on lr (p);
create index lr_o on lr (o);
insert into lp select i from generate_series(1, 1000) i;
insert into lr select i, i % 100 + 1, i from generate_series(1, 1000) i;
analyze lp, lr;
create function locks(statement text, ahead bool) returns text language plpgsql as $$
declare result text; way text;
begin
    for i in 1 .. 2 loop
        begin
            perform set_config('pg_lookahead.enable', ahead::text, true);
            set local pg_lookahead.force = on;
            set local plan_cache_mode = force_generic_plan;
            set local enable_seqscan = off;
            execute statement;
            select string_agg(relation::regclass || ' ' || mode, ', ' order by relation::regclass::text, mode) into result
                from pg_locks where pid = pg_backend_pid() and locktype = 'relation' and relation::regclass::text like 'l_%';
            raise exception using errcode = 'LA001';
        exception when sqlstate 'LA001' then
            null;
        end;
    end loop;
    return result;
end $$;
create function locks_differ(statement text, out same bool, out ahead bool) language plpgsql as $$
declare before bigint := activated(); stock text := locks(statement, false); ours text := locks(statement, true);
begin
    same := ours = stock;
    if not same then raise warning '%; stock: %', ours, stock; end if;
    ahead := activated() > before;
end $$;
select * from locks_differ('delete from lp where id > 500');
select * from locks_differ('insert into lr select i, case when i > 10 then i end, i from generate_series(1, 400) i');
drop schema la_keys cascade;
