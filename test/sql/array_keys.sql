--
-- array_keys - IN lists, = ANY, IS NULL, row comparisons, and columns left out.
--
-- A scan with a list runs as one primitive scan per element or, from 17 on, as few as
-- the index allows; from 18 on it can also skip over a column without a condition.  What
-- the access method remembers between two leaf pages has to be right whenever a scan
-- returns to a page: on a change of direction, for a mark, after look-ahead has stopped.
--
\set ECHO none
\getenv src PG_ABS_SRCDIR
\set helper :src '/sql/scans.inc'
\set schema la_array
\i :helper
set enable_sort = off;

create table t (a int, b int, c int, id int, w text);
insert into t select i % 20, i * 31 % 53, case when i % 10 > 0 then (i::bigint * 7919 % 10007)::int end,
        i, repeat('w', 30)
    from generate_series(1, 10006) i;
create index t_abc on t (a, b, c) with (fillfactor = 10);
create index t_c on t (c) include (id) with (fillfactor = 10);
create index t_ba on t (b desc, a nulls first) with (fillfactor = 10);
vacuum analyze t;

-- one column
select * from pg_temp.compare('select * from t where c in (17, 4000, 4001, 9999, 17, -1)');
select * from pg_temp.compare('select * from t where c in (17, 4000, 4001, 9999, null) order by c');
select * from pg_temp.compare('select * from t where c in (17, 4000, 4001, 9999) order by c desc');
select * from pg_temp.compare('select c, id from t where c in (17, 4000, 4001, 9999) order by c desc');
select * from pg_temp.compare('select * from t where c = any (array(select n * 7 from generate_series(1, 900) n))');
select * from pg_temp.compare('select c, id from t where c = any (array(select n * 7 from generate_series(1, 900) n))');
select * from pg_temp.compare('select * from t where c = any (''{}''::int[])');
select * from pg_temp.compare('select * from t where c = any (array[null, null]::int[])');
select * from pg_temp.compare('select * from t where c < any (array[300, 700])');
select * from pg_temp.compare('select * from t where c is null');
select * from pg_temp.compare('select * from t where c is not null and c < 2000 order by c desc');
-- long runs: an element's entries cover many leaf pages
select * from pg_temp.compare('select * from t where a in (1, 5, 6, 19)');
select * from pg_temp.compare('select * from t where a in (1, 5, 6, 19) order by a desc, b desc, c desc');
select * from pg_temp.compare('select a, b, c from t where a in (1, 5, 6, 19) order by a, b, c');
-- two and three columns
select * from pg_temp.compare('select * from t where a in (1, 5, 6) and b in (0, 7, 50, 52)');
select * from pg_temp.compare('select * from t where a in (1, 5, 6) and b in (0, 7, 50, 52) order by a desc, b desc, c desc');
select * from pg_temp.compare('select * from t where a in (1, 5, 6) and b between 10 and 30');
select * from pg_temp.compare('select * from t where a in (1, 5, 6) and b between 10 and 30 order by a desc, b desc, c desc');
select * from pg_temp.compare('select * from t where a between 3 and 9 and b in (0, 7, 50, 52)');
select * from pg_temp.compare('select * from t where a in (1, 5, 6) and b in (3, 4) and c > 5000');
select * from pg_temp.compare('select a, b, c from t where a in (0, 10) and b in (3, 4) and c is null');
select * from pg_temp.compare('select * from t where a in (2, 3) and c in (17, 4000, 4001)');
select * from pg_temp.compare('select * from t where b in (10, 11, 12) and a in (3, 7) order by b desc, a nulls first');
select * from pg_temp.compare('select * from t where b in (10, 11, 12) and a in (3, 7) order by b, a desc nulls last');
-- a column left out
select * from pg_temp.compare('select * from t where b = 10 and a < 10');
select * from pg_temp.compare('select a, b, c from t where b in (10, 40)');
select * from pg_temp.compare('select a, b, c from t where b between 10 and 11 order by a desc, b desc, c desc');
select * from pg_temp.compare('select a, b, c from t where c > 9000 order by a, b, c');
-- row comparisons
select * from pg_temp.compare('select * from t where (a, b) > (17, 40) order by a, b, c');
select * from pg_temp.compare('select * from t where (a, b) <= (3, 10) order by a desc, b desc, c desc');
select * from pg_temp.compare('select * from t where (a, b, c) >= (3, 10, 500) and (a, b) < (6, 1) order by a, b, c');
select * from pg_temp.compare('select * from t where (a, b) > (3, 10) and b in (5, 30, 44) order by a, b, c');
-- limits
select * from pg_temp.compare('select * from t where a in (1, 5, 6) order by a, b, c limit 3');
select * from pg_temp.compare('select * from t where a in (1, 5, 6) order by a, b, c limit 300 offset 700');
select * from pg_temp.compare('select * from t where a in (1, 5, 6) order by a desc, b desc, c desc limit 600');

-- lists that come from outside, again and again
prepare p(int, int) as select * from t where a in ($1, $2, $1 + 7) and b in ($2, $1 * 2);
set plan_cache_mode = force_generic_plan;
select * from pg_temp.compare('execute p(1, 5)');
select * from pg_temp.compare('execute p(12, 12)');
select * from pg_temp.compare('execute p(null, 5)');
deallocate p;
set enable_hashjoin = off;
set enable_mergejoin = off;
set enable_material = off;
set enable_memoize = off;
select * from pg_temp.compare('select o.id, t.* from (select * from t where c < 100 order by c) o, lateral
    (select * from t x where x.a in (o.a, o.a + 1) and x.b in (o.b, o.b + 2, 3) order by a, b, c) t');
select * from pg_temp.compare('select o.id, t.* from (select * from t where c < 300 order by c) o, lateral
    (select * from t x where x.a in (o.a, o.a + 1, 4) order by a desc, b desc, c desc limit 25) t');

-- scroll cursors: back into an element that was left
\set motions 'n n n p p n m40 p n w20 n n l p p n n n f n a-5 p n a-400 n p e p n p s n n a250 r-1 r2 r-30 r70 p a0 n a-1 n p l l n p'
select * from pg_temp.play('select * from t where a in (1, 5, 6, 19) order by a, b, c', :'motions');
select * from pg_temp.play('select * from t where a in (1, 5, 6, 19) order by a desc, b desc, c desc', :'motions');
select * from pg_temp.play('select * from t where a in (1, 5, 6) and b in (0, 7, 50, 52) order by a, b, c', :'motions');
select * from pg_temp.play('select a, b, c from t where a in (1, 5, 6) and b between 10 and 30 order by a desc, b desc, c desc', :'motions');
select * from pg_temp.play('select * from t where a between 3 and 9 and b in (0, 7, 50) order by a, b, c', :'motions');
select * from pg_temp.play('select c, id from t where c = any (array(select n * 7 from generate_series(1, 900) n)) order by c', :'motions');
select * from pg_temp.play('select a, b, c from t where b in (10, 40) order by a, b, c', :'motions');
select * from pg_temp.play('select * from t where (a, b) > (3, 10) and b in (5, 30, 44) order by a, b, c', :'motions');
select * from pg_temp.play('select * from t where a in (1, 5, 6, 19) order by a, b, c',
    (select string_agg(format('m%s p p n n', i % 12 + 1), ' ') from generate_series(1, 250) i));

-- dead entries
delete from t where id % 3 = 0;
select * from pg_temp.compare('select * from t where a in (1, 5, 6, 19) order by a, b, c');
select * from pg_temp.compare('select a, b, c from t where a in (1, 5, 6) and b in (0, 7, 50, 52)');
select * from pg_temp.play('select * from t where a in (1, 5, 6, 19) order by a, b, c', :'motions');

set client_min_messages = warning;
drop schema la_array cascade;
