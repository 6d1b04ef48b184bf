--
-- reasons - why something runs as in stock: statements for reasons that no other test shows.
--
-- dev/coverage tells which reasons of src/ are in no expected output.
--
set client_min_messages = warning;
create extension if not exists pg_lookahead;
create schema la_reasons;
set search_path = la_reasons, public;
set enable_hashjoin = off;
set enable_mergejoin = off;
set enable_memoize = off;
set enable_material = off;
set max_parallel_workers_per_gather = 0;
set compute_query_id = on;
set pg_lookahead.enable_subplan = on;
set pg_lookahead.force = on;
create table o as select i as id, i % 50 as f, i::text as w from generate_series(1, 500) i;
create table t as select i as id, repeat('w', 50) as w from generate_series(1, 5000) i;
create index t_id on t (id);
create table s (a int, b int);
create unique index on s (a);
create index on s (b);
vacuum analyze o, t;
create type composite as (a int, b int);

-- of what has run since it was asked last
create function reasons() returns setof text language plpgsql as $$
begin
    return query select distinct unnest(l.reasons) from pg_stat_lookahead_statements l, pg_database d
        where d.oid = l.dbid and d.datname = current_database() order by 1;
    perform pg_stat_lookahead_reset();
end $$;
\pset format unaligned
\pset tuples_only on
select count(*) >= 0 from reasons();

-- a subquery in what is taken ahead
select count(t.w) from (select * from o where f = (select max(f) from o p where p.id = o.id) offset 0) o join t on t.id = o.id;
select * from reasons();

-- a CTE that the statement reads as well
with x as materialized (select id from o), y as (insert into s select id + 1000, id from x returning a) select count(*) from y, x;
select * from reasons();

-- functions of rows
insert into s select id + 2000, same from (select id, (o = o)::int as same from o offset 0) o;
select * from reasons();

-- samples
select count(t.w) >= 0 from (select * from o tablesample system (50)) o join t on t.id = o.id;
select * from reasons();
select count(t.w) >= 0 from (select * from o tablesample system (50) repeatable (1)) o join t on t.id = o.id;
select * from reasons();

-- system columns
update t set w = 'x' from (select id, xmax from o offset 0) o where t.id = o.id and o.xmax::text::int >= 0;
select * from reasons();

-- a stable function, and a cursor
do $$
declare r record;
begin
    for r in select t.id from (select id from o where w < to_char(now(), 'YYYY') offset 0) o join t on t.id = o.id loop
        exit when r.id > 100;
    end loop;
end $$;
select * from reasons();

-- predicate locks
begin isolation level serializable;
select t.id from o join t on t.id = o.id limit 3;
update s set b = 1 from o join t on t.id = o.id where s.a = o.id;
commit;
select * from reasons();

-- what may fail, of a row that stock may not come to
select t.w from (select id, 100 / f as z from o where f > 0 offset 0) o join t on t.id = o.id where z > 0 limit 1;
select * from reasons();

\pset tuples_only off
\pset format aligned
drop schema la_reasons cascade;
