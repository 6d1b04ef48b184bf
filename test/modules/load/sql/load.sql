--
-- load - indexes written by src/indexbuild/load.c are, byte for byte, those of the server.
--
-- Each index is built by the server, and a second one of the same definition is loaded with
-- the rows of the first.
--
\set ECHO none
\getenv library LA_TEST_LOAD
create schema la_load;
create extension pageinspect schema la_load;
create extension amcheck schema la_load;
set search_path = la_load, public;
set client_min_messages = warning;
-- lz4 from 19 on, where the server has it
set default_toast_compression = pglz;
create function la_test_load(source regclass, target regclass, padding int default 0, out tuples bigint, out ms float8)
    as :'library' language c strict;
create function la_test_difference(source regclass, target regclass) returns text
    as :'library' language c strict;

-- what follows "create index on t"; level: that of the root
create function try(definition text, uniqueness text default '', out tuples bigint, out level bigint,
    out difference text) language plpgsql as $$
begin
    execute format('create %s index stock on t %s', uniqueness, definition);
    execute format('create %s index ours on t %s', uniqueness, definition);
    tuples := (select l.tuples from la_test_load('stock', 'ours') l);
    difference := coalesce(la_test_difference('stock', 'ours'), 'none');
    level := (select m.level from bt_metap('ours') m);
    perform bt_index_parent_check('ours', true, true);
    drop index stock, ours;
end $$;
\set ECHO queries

-- nothing, one row, about as much as a page can hold
create table t (a int, b int, c text, d text, e text);
select * from try('(a)');
insert into t values (1, 1, 'a', 'b', 'c');
select * from try('(a)');
select * from try('(c, d, e)');
create procedure fill(n int) language sql as $$
    truncate t; insert into t select i, i % 7, 'c', 'd', 'e' from generate_series(1, n) i; $$;
call fill(366);
select * from try('(a)');
call fill(367);
select * from try('(a)');
call fill(368);
select * from try('(a)');
do $$
declare
    r record;
begin
    for n in 401..413 loop
        call fill(n);
        for r in select * from try('(a) with (fillfactor = 100)') loop
            if r.difference <> 'none' or r.tuples <> n then
                raise '% rows: %', n, r;
            end if;
        end loop;
    end loop;
end $$;

-- unique and duplicate keys, one column and several
truncate t;
insert into t
    select i, i % 100, 'county ' || i % 11, case when i % 13 <> 0 then 'town ' || i % 1300 end,
        case when i % 3 = 0 then md5(i::text) end
    from generate_series(1, 100000) i;
select * from try('(a)');
select * from try('(a)', 'unique');
select * from try('(b)');
select * from try('(b desc nulls first, a)');
select * from try('(c, d)');
select * from try('(c, d, e)');
select * from try('(d nulls first)');
select * from try('(e)');
select * from try('(e)', 'unique');
select * from try('(e, d, c, b, a)', 'unique');
select * from try('((null::int))');
select * from try('((null::int))', 'unique');
select * from try('(b) where b < 2');

-- settings
select * from try('(b) with (deduplicate_items = off)');
select * from try('(c, d) with (deduplicate_items = off)');
select * from try('(a) with (fillfactor = 10)');
select * from try('(b) with (fillfactor = 10)');
select * from try('(a) with (fillfactor = 50)');
select * from try('(b) with (fillfactor = 50)');
select * from try('(a) with (fillfactor = 100)');
select * from try('(b) with (fillfactor = 100)');
select * from try('(c, d, e) with (fillfactor = 100)');
select * from try('(c, d) with (fillfactor = 97)');
-- what is left after 92 rows is exactly what the fill factor asks for
select * from try('((a::int8), (b::int8), (a::int8 + 1), (b::int8 + 1)) with (fillfactor = 50)');

-- columns that are not part of the key; keys that are equal and yet different
select * from try('(b) include (a)');
select * from try('(c, d) include (e)');
select * from try('(a) include (c, d)', 'unique');
select * from try('((b::numeric / 10))');
select * from try('((b::float8))');
select * from try('((array[b, b % 10]))');
select * from try('((b % 2 = 0), (chr(65 + b % 50)), (b::name))');

-- keys so large that pages hold few of them, levels many
truncate t;
insert into t
    select i, i % 5, (select string_agg(md5(i || ' ' || j), '') from generate_series(1, 82) j), md5(i::text)
    from generate_series(1, 3000) i;
alter table t alter c set storage external;
select * from try('(c)');
select * from try('(c, a)', 'unique');
select * from try('(b, c) with (fillfactor = 100)');
select * from try('((left(c, 1000 + a % 1600)))');
select * from try('((left(c, 1000)), b)');
select * from try('(c) with (fillfactor = 10)');
select * from try('((left(c, 1400))) with (fillfactor = 30)');
select * from try('(b, (left(c, 10)), (right(c, 1500)))');
insert into t select a, b, c from t;
select * from try('(c)');
select * from try('(b) include (c)');
select * from try('((left(c, 300))) with (fillfactor = 70)');
select * from try('((c || repeat(''x'', 64)))');

-- the largest row that is allowed, and the first that is not, as the server says it
create index stock on t (a) where a <= 100;
create index ours on t (a) where a <= 100;
select tuples from la_test_load('stock', 'ours', 2688);
select bt_index_parent_check('ours', false, false);
select tuples from la_test_load('stock', 'ours', 2696);
drop index stock, ours;
create index ours on t ((c || repeat('x', 72))) where a <= 100;

-- values that are compressed
truncate t;
insert into t select i, i % 3, repeat('x' || i % 500, 3000) from generate_series(1, 5000) i;
alter table t alter c set storage extended;
select * from try('(c)');
select * from try('(c, a)');

-- tables that are not logged
create unlogged table u as
    select i as a, i % 1000 as b, i::text as c, i::text as d, i::text as e from generate_series(1, 100000) i;
create temp table p as table u;
drop table t;
alter table u rename to t;
select * from try('(a)');
select * from try('(b)');
select * from try('(c, d, e)');
drop table t;
alter table p rename to t;
select * from try('(a)');
select * from try('(b)');
select * from try('(c, d, e)');
drop table t;

-- a new file in its own transaction
create table t as select i as a, i % 1000 as b from generate_series(1, 120000) i;
select * from try('(a)');
select * from try('(b, a)');
select * from try('(b)');
begin;
create table n as table t;
create index stock on n (b, a);
create index ours on n (b, a);
select tuples, coalesce(la_test_difference('stock', 'ours'), 'none') from la_test_load('stock', 'ours');
commit;
select bt_index_parent_check('ours', true, true);

\set ECHO none
set client_min_messages = error;
drop schema la_load cascade;
