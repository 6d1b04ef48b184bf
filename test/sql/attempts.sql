--
-- attempts - what may fail is done early, and errors stay where they belong.
--
-- Keys, partitions and rows to come are computed by expressions that may fail.  An error of a key is
-- forgotten, and one of a row is kept until its turn.  So each statement ends as in stock: with the
-- same rows, or with the same one of several errors, and nothing stays held.
--
set client_min_messages = warning;
create extension if not exists pg_lookahead;
create schema la_attempts;
set search_path = la_attempts, public;
set max_parallel_workers_per_gather = 0;
set enable_hashjoin = off;
set enable_mergejoin = off;
set enable_memoize = off;
set jit = off;
set timezone = 'UTC';
create type mood as enum ('sad', 'ok', 'happy');
create domain positive as int check (value > 0);
create table parent (id int primary key, n int, s text, j jsonb, ts timestamptz, m text, t text);
insert into parent select i, i * 7919 % 499 + 1, (i * 7919 % 499 + 1)::text, jsonb_build_object('id', i * 7919 % 499 + 1),
        timestamptz '2026-01-01' + i * interval '1 hour', 'happy', '2026-01-0' || i % 9 + 1
    from generate_series(1, 600) i;
create table child (id int primary key, p int, d date, m mood, v int, filler text);
insert into child select i, i * 31 % 499 + 1, date '2026-01-01' + i % 30, 'happy', i, repeat('f', 100) from generate_series(1, 1000) i;
create index on child (p);
create index on child (d);
create index on child (m, p);
create table parts (p int, v int) partition by hash (p);
create table parts_0 partition of parts for values with (modulus 2, remainder 0);
create table parts_1 partition of parts for values with (modulus 2, remainder 1);
insert into parts select p, v from child;
create table kept (zone text, v int, d date);
create index on parts (p);
vacuum analyze;

-- how a statement ends that is run to its end, or fetched in parts
create function ending(statement text, how text) returns text language plpgsql as $$
declare r record; n int := 0; h bigint := 0;
begin
    if how = 'run' then
        execute statement;
        get diagnostics n = row_count;
    else
        for r in execute statement loop
            n := n + 1;
            h := h + hashtext(r::text);
        end loop;
    end if;
    return format('%s rows, %s', n, h);
exception when others then
    return format('%s rows, %s, then %s: %s', n, h, sqlstate, sqlerrm);
end $$;

create function endings(statement text, how text) returns text language plpgsql as $$
declare stock text; ours text; kept text := ''; way text;
begin
    perform set_config('pg_lookahead.enable', 'off', true);
    stock := ending(statement, how);
    perform set_config('pg_lookahead.enable', 'on', true);
    foreach way in array '{force,slow}'::text[] loop
        perform set_config('pg_lookahead.force', (way = 'force')::text, true),
            set_config('pg_lookahead.miss_threshold', '0', true), set_config('pg_lookahead.min_read_time', '0', true),
            set_config('pg_lookahead.attach_threshold', '0', true), set_config('pg_lookahead.cache_prefetch_threshold', '0', true);
        ours := ending(statement, how);
        if ours is distinct from stock then
            return format('%s: %s, STOCK: %s', way, ours, stock);
        end if;
    end loop;
    return regexp_replace(stock, ', -?\d+', '');
end $$;

create function x_of(int) returns int language sql as 'select $1 / 1';

create table shape (n serial, statement text);
insert into shape (statement) values
-- keys that fail for some rows
('select (select count(c.v) from child c where c.p = (case when x.id = 300 then ''x'' else x.s end)::int) from parent x'),
('select (select count(c.v) from child c where c.p = 1000 / (x.id - 300)) from parent x'),
('select (select count(c.v) from child c where c.p = (x.j->>''id'')::int) from parent x'),
('select (select count(c.v) from child c where c.d = (case when x.id = 300 then ''no date'' else x.t end)::date) from parent x'),
('select (select count(c.v) from child c where c.m = (case when x.id = 300 then ''no mood'' else x.m end)::mood and c.p = x.n) from parent x'),
('select (select count(c.v) from child c where c.p = (x.n - (x.id = 300)::int * 1000)::positive) from parent x'),
('select (select count(c.v) from parts c where c.p = 1000 / (x.id - 300)) from parent x'),
('select (select count(c.v) from parts c where c.p = (x.j->>''id'')::int) from parent x'),
('select x.id, c.v from parent x join child c on c.p = 1000 / (x.id - 300)'),
('select x.id, c.v from parent x join child c on c.p = (x.j->>''id'')::int'),
('select x.id, c.v from parent x join parts c on c.p = 1000 / (x.id - 300)'),
('select x.id, c.v from parent x left join child c on c.d = (case when x.id = 300 then ''no date'' else x.t end)::date'),
-- keys that only rows have which are left out
('select (select count(c.v) from child c where c.p = 1000 / (x.id - 300)) from parent x where x.id <> 300'),
('select case when x.id <> 300 then (select count(c.v) from child c where c.p = 1000 / (x.id - 300)) end from parent x'),
('select (select count(c.v) from child c where c.p = 1000 / (x.id - 300)) from parent x limit 100'),
('select x.id, c.v from parent x join child c on c.p = 1000 / (x.id - 300) limit 50'),
-- rows that fail
('select (select count(c.v) from child c where c.p = x.p) from (select 1000 / (id - 300) as p from parent offset 0) x'),
('select x.p, c.v from (select 1000 / (id - 300) as p from parent offset 0) x join child c on c.p = x.p'),
('select x.p, c.v from (select 1000 / (id - 300) as p from parent offset 0) x left join child c on c.p = x.p limit 50'),
('select (select count(c.v) from child c where c.p = x.p) from (select 1 + hashint8(i) % 100 / (i - 300) as p from generate_series(1, 600) i offset 0) x'),
('select sum((select count(c.v) from child c where c.p = x.p)) from (select 1000 / (id - 300) as p from parent offset 0) x'),
('select x.p, c.v from parent o cross join lateral (select 1000 / (id - 300) as p from parent where id > o.id + 290 offset 0) x join child c on c.p = x.p limit 200'),
('with x as materialized (select 1000 / (id - 300) as p from parent) select (select count(c.v) from child c where c.p = x.p) from x'),
-- plans that the rest of the statement executes, too: not again after an error
('with x as materialized (select id, 1000 / (id - 300) as p from parent) select (select count(*) from x y where y.id > x.id), c.v from x join child c on c.id = x.id + x.p % 2'),
('with x as materialized (select id, 1000 / (id - 300) as p from parent) select (select sum(y.id) from x y), c.v from x join child c on c.id = x.id + x.p % 2 where x.id < 4'),
('with x as materialized (select id, 1000 / (id - 25) as p from parent) select (select count(c.v) from child c where c.p = y.id), case when y.id in (20, 24) then (select count(*) from x) end from (select id, p from x offset 0) y where y.p is not null'),
('select * from ((select 1 as m, p.id, p.n, c.v from parent p join child c on c.id = p.n order by p.id) union all (select 2, p.id, p.n, c.v from parent p join child c on c.id = p.n + 1 order by p.id)) u where u.n < 200 or u.n > (select sum(1000 / (id - 500)) from parent)'),
('insert into kept select x.id, c.v from parent x join child c on c.p = x.n where x.n > (select min(1000 / (id - 500)) from parent) returning v, (select max(id) from parent)'),
('insert into kept select x.id, c.v from parent x join child c on c.p = x.n where x.n > (select min(1000 / (id - 500)) from parent) returning v, x_of((select max(1000 / (id - 601)) from parent))'),
('with y as materialized (select min(1000 / (id - 500)) as m from parent) insert into kept select x.id, c.v from parent x join child c on c.p = x.n where x.n > (select m from y) returning v, (select m from y)'),
('merge into kept k using (select x.id, c.v from parent x join child c on c.p = x.n where x.n > (select min(1000 / (id - 500)) from parent)) s on k.v = s.v when not matched then insert (v) values (s.v)'),
('select x.id, c.v from parent x join child c on c.p = x.n where x.n > (select min(1000 / (id - 500)) from parent) order by x.id for update of x'),
-- rows of arrays that are to be one array, and parts of arrays
('select x.a, c.v from (select q.n, array(select array[p.id, p.n] || (case when q.id = 300 and p.id = 299 then array[1] end) from parent p where p.id between q.id - 1 and q.id) as a from parent q offset 0) x join child c on c.p = x.n'),
('select (select count(c.v) from child c where c.p = ((array[x.s, ''x'']::varchar[])[1 + (x.id = 300)::int])::int) from parent x'),
-- the first of several errors
('select 1 / (x.id - 20), c.v from (select id, has_database_privilege(case when id = 25 then ''nosuch'' else current_database() end, ''connect'') as ok from parent offset 0) x join child c on c.id = x.id where ok'),
('select x.p, 1 / (c.v - c.v + x.id - 20) from (select id, (case when id = 25 then ''x'' else ''1'' end)::int as p from parent offset 0) x join child c on c.id = x.id'),
('select 1 / (x.id - 20), (select count(c.v) from child c where c.p = x.p) from (select id, (case when id = 25 then ''x'' else ''1'' end)::int as p from parent offset 0) x'),
('select (select 1 / (count(c.v) - 2 + x.id - 20) from child c where c.p = x.n) from (select id, n, (case when id = 25 then ''x'' else ''1'' end)::int as p from parent offset 0) x where x.p < 5000'),
('insert into kept select x.id, 1 / (x.id - 20) from (select id, (case when id = 25 then ''x'' else ''1'' end)::int as p from parent offset 0) x join child c on c.p = x.p'),
-- functions of rows
('select (select json_agg(q) from (select c.id, c.m from child c where c.p = x.n) q) from parent x'),
('select (select json_agg(q) from (select c.id, 1 / (c.id - 500) from child c where c.p = x.n) q) from parent x'),
('select (select row_to_json(q) from (select c.id, c.v::positive from child c where c.p = x.n order by c.v limit 1) q) from parent x');
\pset format unaligned
\pset tuples_only on
select n, endings(statement, 'run') from shape order by n;
select n, endings(statement, 'parts') from shape order by n;

-- settings that are changed between rows count from the next row on
create function retime(n int) returns text language sql as
    $$ select set_config('timezone', case when n % 7 = 0 then 'Asia/Tokyo' else 'America/Lima' end, true) $$;
begin;
select n, endings(statement, 'run') from (values
    (1, 'select retime(x.id), (select count(c.v) from child c where c.d = x.ts::date) from parent x'),
    (2, 'select retime(x.id), c.v from parent x join child c on c.d = x.ts::date'),
    (3, 'insert into kept select retime(x.id), c.v, c.d from parent x join child c on c.d = x.ts::date')) s (n, statement);
rollback;
-- an enum's label that this transaction has added
begin;
alter type mood add value 'new';
select endings('select (select count(c.v) from child c where c.m = (case when x.id = 300 then ''new'' else x.m end)::mood and c.p = x.n) from parent x', 'run');
rollback;
-- an error that was kept is raised with the context, and by the settings, of its turn
\pset tuples_only off
create function of_query() returns int language plpgsql as $$
declare r record; n int := 0;
begin
    for r in select x.p, c.v from (select 1000 / (id - 300) as p from parent offset 0) x join child c on c.p = x.p loop
        n := n + 1;
    end loop;
    return n;
end $$;
create function of_write() returns int language plpgsql as $$
begin
    insert into kept (v) select c.v from (select 1000 / (id - 300) as p from parent offset 0) x join child c on c.p = x.p;
    return 1;
end $$;
set pg_lookahead.force = on;
select of_query();
select of_write();
reset pg_lookahead.force;
-- nothing is early that a rewound cursor would execute again
begin;
declare c scroll cursor for select (select count(c.v) from child c where c.p = x.p) from (select 1000 / (id - 100) as p from parent offset 0) x;
move 50 in c;
move backward all in c;
move 60 in c;
rollback;
-- errors of parallel workers come at any time, and not in a row's turn
create table wide as select i as id, repeat('x', 100) as f from generate_series(1, 20000) i;
create table many (id int primary key, v int);
insert into many select i, i from generate_series(1, 20000) i;
analyze wide, many;
set max_parallel_workers_per_gather = 2;
set min_parallel_table_scan_size = 0;
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set enable_parallel_append = off;
set parallel_leader_participation = off;
set synchronize_seqscans = off;
set pg_lookahead.force = on;
select c.v, o.id, pg_sleep(0.002) from (select id, n::numeric from parent where id < 50
        union all (select id, 1000 / (3000 - id)::numeric from wide where f like '%x%' and 1000 / (3000 - id) < 50000 offset 0)) o (id, p)
    join many c on c.id = o.id % 20000;
reset pg_lookahead.force;
set max_parallel_workers_per_gather = 0;
drop schema la_attempts cascade;
