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

-- functions that assign a transaction ID
select count(t.w) from (select * from o where w <> pg_current_xact_id()::text offset 0) o join t on t.id = o.id;
select * from reasons();

-- types that are not the server's: polymorphic functions, conversions, subscripts
create type span as range (subtype = int4);
create table spans as select i as id, span(i, i + 1) as s, array[span(i, i + 1)] as a from generate_series(1, 500) i;
select count(t.w) from (select * from spans where lower(s) > 10 offset 0) o join t on t.id = o.id;
select * from reasons();
select count(t.w) from (select * from spans where s::text <> '' offset 0) o join t on t.id = o.id;
select * from reasons();
select count(t.w) from (select * from spans where a[1] is not null offset 0) o join t on t.id = o.id;
select * from reasons();

-- a kind of expression that nothing is said of (and that not each server can evaluate)
select count(t.w) from (select * from o where case when f >= 0 then w <> '' else w::xml is document end offset 0) o join t on t.id = o.id;
select * from reasons();

-- a sampling method that is not the server's
create function sample(internal) returns tsm_handler language internal as 'tsm_system_handler';
select count(t.w) >= 0 from (select * from o tablesample sample (50) repeatable (1)) o join t on t.id = o.id;
select * from reasons();

-- an access method that is not the server's, in what is taken ahead
create access method la_reasons_gist type index handler gisthandler;
create operator class box_ops default for type box using la_reasons_gist as operator 3 &&,
    function 1 gist_box_consistent(internal, box, smallint, oid, internal), function 2 gist_box_union(internal, internal),
    function 5 gist_box_penalty(internal, internal, internal), function 6 gist_box_picksplit(internal, internal),
    function 7 gist_box_same(box, box, internal);
create table boxes as select i as id, box(point(i, i), point(i, i)) as b from generate_series(1, 500) i;
create index on boxes using la_reasons_gist (b);
analyze boxes;
set enable_seqscan = off;
set enable_bitmapscan = off;
select count(t.w) from boxes o join t on t.id = o.id where o.b && '(7,7),(200,200)';
select * from reasons();
reset enable_seqscan;
reset enable_bitmapscan;
drop table boxes;
drop access method la_reasons_gist cascade;

-- many values are looked up by their hash, for NOT IN by the negator's function: no reason
select count(t.w) from (select * from o where f in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10) offset 0) o join t on t.id = o.id;
select count(t.w) from (select * from o where f not in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10) offset 0) o join t on t.id = o.id;
select * from reasons();

-- what is dropped after the cursor was opened: an operator's hash function, a function, an operator, an aggregate
create function opened(statement text, dropping text) returns setof text language plpgsql as $$
declare c refcursor; r record; n int := 0;
begin
    perform from reasons();
    open c for execute statement;
    execute dropping;
    loop
        fetch c into r;
        exit when not found;
        n := n + 1;
    end loop;
    close c;
    return next n;
    return query select reasons();
end $$;
create function same(int, int) returns bool language internal immutable strict leakproof as 'int4eq';
create function less(int, int) returns bool language internal immutable strict leakproof as 'int4lt';
create operator === (function = same, leftarg = int, rightarg = int, commutator = ===, hashes);
create operator <<< (function = less, leftarg = int, rightarg = int);
create operator class same_ops for type int using hash as operator 1 ===, function 1 hashint4(int);
create operator class less_ops for type int using btree as operator 1 <<<, function 1 btint4cmp(int, int);
create aggregate greatest_of(int) (sfunc = int4larger, stype = int);
select opened('select t.w from (select * from o where f === any (''{1,2,3,4,5,6,7,8,9,10}'') offset 0) o join t on t.id = o.id', 'drop operator class same_ops using hash');
select opened('select t.w from (select * from o where same(f, 7) offset 0) o join t on t.id = o.id', 'drop function same cascade');
select opened('select t.w from (select * from o where (f, id) operator(la_reasons.<<<) (7, 3) offset 0) o join t on t.id = o.id',
    'drop operator class less_ops using btree; drop operator <<< (int, int)');
select opened('select t.w from (select greatest_of(id) as id from o group by f) o join t on t.id = o.id', 'drop aggregate greatest_of(int)');

\pset tuples_only off
\pset format aligned
drop schema la_reasons cascade;
