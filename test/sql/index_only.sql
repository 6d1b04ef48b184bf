--
-- index_only - index-only scans, on visible pages, on others, and on both in turn.
--
-- The executor decides entry by entry, by the visibility map, whether to visit the
-- heap, and look-ahead foresees just those visits.  The rows, and how many heap fetches
-- EXPLAIN (ANALYZE) reports, must be stock's.
--
\set ECHO none
\getenv src PG_ABS_SRCDIR
\set helper :src '/sql/scans.inc'
\set schema la_ios
\i :helper
set enable_sort = off;

create table t (id int, a int, b int, n name, w text) with (fillfactor = 70);
insert into t select i, (i::bigint * 7919 % 10007)::int, i % 11, 'n' || i % 700, repeat('w', 60)
    from generate_series(1, 10006) i;
create index t_a on t (a) include (id, b) with (fillfactor = 10);
create index t_ba on t (b desc, a) with (fillfactor = 10);
create index t_n on t (n, a) with (fillfactor = 10);
create index t_p on t (a, id) with (fillfactor = 10) where b = 3;

-- "Heap Fetches" with look-ahead off, and whether it is the same with it on.  The
-- first run settles which dead entries are marked in the index.
create function pg_temp.heap_fetches(q text, out fetches int, out same bool, out looked_ahead bool)
language plpgsql as $$
declare line text; found int[] := '{}'; n int; before bigint := pg_temp.activated();
begin
    for k in 0 .. 2 loop
        perform pg_temp.set_ahead(case when k = 2 then (true, 3, 64, 0, 0)::pg_temp.ahead end);
        n := 0;
        for line in execute 'explain (analyze, costs off, timing off, summary off) ' || q loop
            n := n + coalesce(substring(line from 'Heap Fetches: (\d+)')::int, 0);
        end loop;
        found := found || n;
    end loop;
    fetches := found[2];
    same := found[2] = found[3];
    looked_ahead := pg_temp.activated() > before;
end $$;

create function pg_temp.all_shapes(out identical bool, out n int, out looked_ahead bool)
returns setof record language sql as $$
    select c.* from unnest(array[
        'select a, id from t where a between 100 and 7000 order by a',
        'select a, b from t order by a desc',
        'select b, a from t where b in (2, 3, 7) order by b desc, a',
        'select b, a from t where b < 5 order by b, a desc',
        'select n, a from t where n >= ''n5'' order by n, a',
        'select a, id from t where b = 3 and a > 500 order by a, id',
        'select count(*), sum(a) from t where a > 3000',
        'select min(a), max(a) from t where b = 4',
        'select a, id from t where a > 100 order by a limit 5',
        'select a, id from t where a > 100 order by a offset 8000 limit 50'
    ]) q, pg_temp.compare(q) c;
$$;

-- no page all-visible: every entry visits the heap
explain (costs off) select a, id from t where a between 100 and 7000 order by a;
select * from pg_temp.all_shapes();
select * from pg_temp.heap_fetches('select a, id from t where a between 100 and 7000 order by a');
-- all pages all-visible: none does; forced look-ahead still reads leaf pages ahead
vacuum analyze t;
select * from pg_temp.all_shapes();
select * from pg_temp.heap_fetches('select a, id from t where a between 100 and 7000 order by a');
-- some pages: visits come and go.  Until the end of the transaction the server cannot make
-- them all-visible again while it reads them, as it does from 19 on.
begin;
update t set w = 'changed' where id % 301 < 20;
select * from pg_temp.all_shapes();
select same, looked_ahead, fetches between 1 and 6000 as some
    from pg_temp.heap_fetches('select a, id from t where a between 100 and 7000 order by a');
select same, looked_ahead, fetches between 1 and 6000 as some
    from pg_temp.heap_fetches('select b, a from t where b in (2, 3, 7) order by b desc, a');
commit;
select * from pg_temp.all_shapes();
-- changed keys and deleted rows on some pages
update t set a = a + 1 where id % 301 between 50 and 60;
delete from t where id % 301 between 100 and 140;
select * from pg_temp.all_shapes();
select same, looked_ahead from pg_temp.heap_fetches('select b, a from t where b in (2, 3, 7) order by b desc, a');
-- an aborted change leaves the map cleared and the rows as they were
begin;
delete from t where id % 7 = 0;
select * from pg_temp.all_shapes();
rollback;
select * from pg_temp.all_shapes();
vacuum t;
select * from pg_temp.all_shapes();

-- vacuumed tables without a WAL: pages stay pinned meanwhile
create unlogged table u as select * from t;
create index on u (a) include (id, b) with (fillfactor = 10);
create temporary table m as select * from t;
create index on m (a) include (id, b) with (fillfactor = 10);
vacuum analyze u;
vacuum analyze m;
delete from u where id % 5 = 0;
delete from m where id % 3 = 0;
select * from pg_temp.compare('select a, id from u where a between 100 and 7000 order by a');
select * from pg_temp.compare('select a, b from u order by a desc');
select * from pg_temp.compare('select a, id from m where a between 100 and 7000 order by a');
select * from pg_temp.compare('select a, b from m order by a desc');

-- the cursor's row is found through the index-only scan
set pg_lookahead.force = on;
begin;
declare c cursor for select a, id from t where a > 5000 order by a;
fetch 3 from c;
delete from t where current of c returning id;
fetch 2 from c;
update t set b = 0 where current of c returning id;
move 300 from c;
fetch 1 from c;
delete from t where current of c returning id;
rollback;

set client_min_messages = warning;
drop schema la_ios cascade;
