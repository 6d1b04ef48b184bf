--
-- share - answers, and how far scans look ahead, with a limit of the tablespace.
--
-- t/037_share.pl has more than one session.
--
\set ECHO none
\getenv src PG_ABS_SRCDIR
\set helper :src '/sql/scans.inc'
\set schema la_share
\i :helper
set enable_sort = off;
set enable_hashjoin = off;
set enable_mergejoin = off;
set enable_material = off;
set enable_memoize = off;
create table t (id int, a int, b int, w text);
insert into t select i, (i::bigint * 7919 % 10007)::int, i % 10, repeat('w', 300) from generate_series(1, 10006) i;
create index t_a on t (a) with (fillfactor = 20);
create index t_b on t (b, a) with (fillfactor = 20);
create index t_h on t using hash (a);
create index t_g on t using gin ((array[a % 100, b]));
create temp table s as select * from t;
create index s_a on s (a) with (fillfactor = 20);
vacuum analyze t;
vacuum analyze s;

-- all kinds of scans
create function pg_temp.all_the_same(out kind text, out identical bool, out looked_ahead bool) returns setof record language plpgsql as $$
declare q text[]; r record;
begin
    foreach q slice 1 in array array[
        array['index scan', 'select id, w from t where a between 100 and 3000 order by a'],
        array['backward', 'select id, w from t where a < 3000 order by a desc limit 500'],
        array['index-only scan', 'select b, a from t where b = 3 order by b, a'],
        array['list', 'select id from t where b = 3 and a in (select generate_series(1, 5000, 50)) order by a'],
        array['hash index', 'select w from t where a = 777'],
        array['nested loop', 'select x.id, y.w from t x, t y where x.a between 5 and 900 and y.a = x.id % 10007 order by x.a'],
        array['temporary table', 'select id, w from s where a between 100 and 3000 order by a']] loop
        select * from pg_temp.compare(q[2]) into r;
        kind := q[1];
        identical := r.identical;
        looked_ahead := r.looked_ahead;
        return next;
    end loop;
    perform set_config('enable_bitmapscan', 'on', true), set_config('enable_indexscan', 'off', true);
    foreach q slice 1 in array array[
        array['bitmap scan', 'select id from t where a between 100 and 3000'],
        array['gin', 'select id from t where array[a % 100, b] && array[3, 5, 77]']] loop
        select * from pg_temp.compare(q[2]) into r;
        kind := q[1];
        identical := r.identical;
        looked_ahead := r.looked_ahead;
        return next;
    end loop;
    perform set_config('enable_bitmapscan', 'off', true), set_config('enable_indexscan', 'on', true);
end $$;

set pg_lookahead.tablespace_max_in_flight = 1;
select * from pg_temp.all_the_same();
set pg_lookahead.tablespace_max_in_flight = 2;
select * from pg_temp.all_the_same();
set pg_lookahead.tablespace_max_in_flight = 1000;
select * from pg_temp.all_the_same();

-- one session has the limit for itself, less the read that it waits for (in the order of need)
set pg_lookahead.enable = on;
set pg_lookahead.force = on;
select count(w) from (select w from t where a between 100 and 3000 order by a offset 0) x;
select kind, index, capacity from pg_lookahead_last_statement();
set pg_lookahead.tablespace_max_in_flight = 10;
set pg_lookahead.max_distance = 15;
select count(w) from (select w from t where a between 100 and 3000 order by a offset 0) x;
select kind, index, capacity, max_distance <= 9 as at_most from pg_lookahead_last_statement();
-- a join's windows have parts of it; one has all until the other has started reads
select count(y.w) from (select x.id, y.w from t x, t y where x.a between 5 and 900 and y.a = x.id % 10007 order by x.a offset 0) y;
select max(capacity) <= 9 as at_most from pg_lookahead_last_statement();
-- max_distance is still one
set pg_lookahead.max_distance = 4;
select count(w) from (select w from t where a between 100 and 3000 order by a offset 0) x;
select kind, index, capacity from pg_lookahead_last_statement();
reset pg_lookahead.max_distance;
-- bitmap scans of index pages
set enable_bitmapscan = on;
set enable_indexscan = off;
select count(*) from (select id from t where array[a % 100, b] && array[3, 5, 77] offset 0) x;
select kind, capacity, max_distance <= 9 as at_most from pg_lookahead_last_statement() where kind = 'bitmap index scan';
set enable_bitmapscan = off;
set enable_indexscan = on;

reset pg_lookahead.tablespace_max_in_flight;
select count(w) from (select w from t where a between 100 and 3000 order by a offset 0) x;
select kind, index, capacity from pg_lookahead_last_statement();
