--
-- leaf_pages - leaf pages read ahead where heap blocks are not visited, or are cached.
--
-- Keys come in random order, so the index's pages are split and lie scattered over its file.
-- "issued" says whether reads of leaf pages were started.  A temporary table has buffers of its
-- own, too few for the index, so that look-ahead is not only forced: there its pages have to be
-- read, and by these settings each read counts as a wait.
--
\set ECHO none
\getenv src PG_ABS_SRCDIR
\set helper :src '/sql/scans.inc'
\set schema la_leaf
set temp_buffers = 100;
\i :helper
set enable_sort = off;

create temp table t (a int, b int, c text, w text);
create index t_a on t (a) include (b, w);
create index t_ba on t (b desc, a) include (w);
create index t_ca on t (c collate "C" nulls first, a) include (w);
insert into t select (i::bigint * 7919 % 20011)::int, i % 40, case when i % 9 > 0 then 'key ' || i * 31 % 5000 end,
        repeat('w', 300)
    from generate_series(1, 20010) i;
vacuum analyze t;
-- the same with the heap's blocks to visit
create temp table h (a int, b int);
create index h_a on h (a) with (fillfactor = 10);
insert into h select i::bigint * 7919 % 20011, i from generate_series(1, 20010) i;
analyze h;

create function pg_temp.issued() returns bigint language plpgsql as $$
declare n bigint;
begin
    if current_setting('shared_preload_libraries') ~ 'pg_lookahead' then
        execute 'select sum(leaf_pages_issued) from pg_stat_lookahead' into n;
    end if;
    return n;
end $$;
create function pg_temp.leaf(call text, out identical bool, out n int, out looked_ahead bool, out issued bool)
language plpgsql as $$
declare before bigint := pg_temp.issued();
begin
    select * into identical, n, looked_ahead from pg_temp.differ(call);
    issued := pg_temp.issued() > before;
end $$;
create function pg_temp.rows(q text, out identical bool, out n int, out looked_ahead bool, out issued bool)
language sql as $$ select * from pg_temp.leaf(format('rows_of(%L)', q)) $$;
create function pg_temp.moves(q text, motions text, out identical bool, out n int, out looked_ahead bool, out issued bool)
language sql as $$ select * from pg_temp.leaf(format('cursor_rows(%L, %L)', q, motions)) $$;

-- ranges, forward and backward
explain (costs off) select a, b from t where a between 500 and 15000 order by a;
select * from pg_temp.rows('select a, b from t order by a');
select * from pg_temp.rows('select a, b from t order by a desc');
select * from pg_temp.rows('select a, b from t where a between 500 and 15000 order by a');
select * from pg_temp.rows('select a, b from t where a > 500 and a < 15000 order by a desc');
select * from pg_temp.rows('select b, a from t where b = 7 order by a');
select * from pg_temp.rows('select b, a from t where b = 7 order by a desc');
select * from pg_temp.rows('select b, a from t where b > 5 and b < 30::bigint order by b desc, a');
select * from pg_temp.rows('select b, a from t where b >= 5 order by b, a desc');
select * from pg_temp.rows('select b, a from t where a = 77');
select * from pg_temp.rows('select c, a from t where c is null order by a');
select * from pg_temp.rows('select c, a from t where c > ''key 3'' collate "C" order by c collate "C" nulls first, a');
select * from pg_temp.rows('select c, a from t where c <= ''key 3'' collate "C" order by c collate "C" desc nulls last, a desc');
select * from pg_temp.rows('select b, a from t where (b, a) <= (9, 3000) order by b, a desc');
select * from pg_temp.rows('select count(*), sum(a) from t where a > 100');
select * from pg_temp.rows('select a, b from h where a > 100 order by a');
select * from pg_temp.rows('select a, b from h where a > 100 order by a desc');
-- lists: dense, scattered, of long runs
select * from pg_temp.rows('select a, b from t where a = any (array(select 500 + n from generate_series(1, 5000) n)) order by a');
select * from pg_temp.rows('select a, b from t where a = any (array(select n * 97 from generate_series(1, 200) n)) order by a desc');
select * from pg_temp.rows('select b, a from t where b in (3, 4, 20, 39) order by b desc, a');
select * from pg_temp.rows('select b, a from t where b in (3, 4, 20, 39) and a > 10000 order by b, a desc');
-- limits, semijoins, filters
select * from pg_temp.rows('select a, b from t where a > 500 order by a limit 3');
select * from pg_temp.rows('select a, b from t where a > 500 order by a offset 3000 limit 300');
select * from pg_temp.rows('select a, b from t order by a desc limit 5000');
select * from pg_temp.rows('select a, b from t where a > 500 and b + a = 3000 order by a');
set enable_hashjoin = off;
set enable_mergejoin = off;
set enable_material = off;
set enable_memoize = off;
select * from pg_temp.rows('select x.b, t.a from (select distinct b from t where a < 10) x, lateral
    (select a from t where t.b = x.b order by a limit 200) t');
select * from pg_temp.rows('select x.b, (select sum(a) from t where t.b = x.b) from generate_series(0, 50, 5) x(b)');
-- cursors that turn, and go on elsewhere
\set motions 'n n n p p n m400 p n w200 n n l p p n n n f n a-5 p n a-4000 n p e p n p s n n a2500 r-1 r2 r-300 r700 p a0 n a-1 n p l l n p'
select * from pg_temp.moves('select a, b from t where a > 500 order by a', :'motions');
select * from pg_temp.moves('select a, b from t where a > 500 order by a desc', :'motions');
select * from pg_temp.moves('select b, a from t where b in (3, 4, 20, 39) order by b desc, a', :'motions');
select * from pg_temp.moves('select a, b from h where a > 500 order by a', :'motions');
-- no cursor but that of a loop
select * from pg_temp.leaf($$forward_rows('select a, b from t where a > 50 order by a', '{1, 1, 5, 1000, 1, 9000, 1, 40000, 1}')$$);
begin isolation level serializable;
select * from pg_temp.rows('select a, b from t where a between 500 and 15000 order by a');
select * from pg_temp.rows('select a, b from t where a > 500 order by a desc limit 1000');
commit;
-- little memory
set pg_lookahead.scan_memory = '64kB';
select identical, n from pg_temp.rows('select a, b from t where a between 500 and 15000 order by a');
set pg_lookahead.backend_memory = 0;
select * from pg_temp.rows('select a, b from t where a between 500 and 15000 order by a');
reset pg_lookahead.backend_memory;
reset pg_lookahead.scan_memory;

-- pages deleted, half empty, split again
delete from t where a between 4000 and 6000 or b in (7, 20);
vacuum t;
select * from pg_temp.rows('select a, b from t where a between 500 and 15000 order by a');
select * from pg_temp.rows('select a, b from t where a between 500 and 15000 order by a desc');
select * from pg_temp.rows('select b, a from t where b between 5 and 30 order by b desc, a');
insert into t select a + 1, b, c, w from t where a % 3 = 0;
select * from pg_temp.rows('select a, b from t where a between 500 and 15000 order by a');
select * from pg_temp.rows('select a, b from t where a between 500 and 15000 order by a desc');

-- comparison functions that are not in C are called for nothing but the scan
create sequence calls;
create function noticed(a int, b int) returns int immutable language plpgsql as
    $$begin perform nextval('la_leaf.calls'); return btint4cmp(a, b); end$$;
create operator class noticed_ops for type int using btree as
    operator 1 <, operator 2 <=, operator 3 =, operator 4 >=, operator 5 >, function 1 noticed(int, int);
create temp table n (a int, w text);
create index n_a on n (a noticed_ops) include (w);
insert into n select i * 31 % 5003, repeat('w', 500) from generate_series(1, 5002) i;
vacuum analyze n;
create function pg_temp.calls(q text) returns bigint language plpgsql as $$
declare n bigint;
begin
    perform setval('calls', 1);
    execute q into n;
    return nextval('calls');
end $$;
select * from pg_temp.rows('select pg_temp.calls(''select sum(a) from n where a > 100'')');

-- an index that others see; of a file that was just copied no page is cached
set allow_in_place_tablespaces = on;
create tablespace regress_la_leaf location '';
create table p (a int, b int, w text);
create index p_a on p (a) include (b, w);
insert into p select i::bigint * 7919 % 20011, i, repeat('w', 300) from generate_series(1, 20010) i;
vacuum analyze p;
create function pg_temp.move_index() returns void language plpgsql as $$
begin
    if (select reltablespace from pg_class where oid = 'p_a'::regclass) = 0 then
        alter index p_a set tablespace regress_la_leaf;
    else
        alter index p_a set tablespace pg_default;
    end if;
end $$;
create function pg_temp.uncached_rows(q text) returns text[] language plpgsql as $$
begin
    perform pg_temp.move_index();
    return pg_temp.rows_of(q);
end $$;
create function pg_temp.uncached(q text, out identical bool, out n int, out looked_ahead bool, out issued bool)
language sql as $$ select * from pg_temp.leaf(format('uncached_rows(%L)', q)) $$;
select * from pg_temp.uncached('select a, b from p where a > 100 order by a');
select * from pg_temp.uncached('select a, b from p where a > 100 order by a desc');
select * from pg_temp.uncached('select a, b from p where a = any (array(select 500 + n from generate_series(1, 5000) n)) order by a');
select * from pg_temp.uncached('select a, b from p where a > 500 order by a offset 3000 limit 300');
begin isolation level serializable;
select * from pg_temp.uncached('select a, b from p where a > 100 order by a limit 1000');
commit;
-- workers
set max_parallel_workers_per_gather = 2;
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set min_parallel_index_scan_size = 0;
set min_parallel_table_scan_size = 0;
explain (costs off) select count(*), sum(a), sum(b) from p where a > 100;
select * from pg_temp.uncached('select count(*), sum(a), sum(b) from p where a > 100');
-- the pages of a range, and hardly any behind it
set max_parallel_workers_per_gather = 0;
create function pg_temp.issued_by(q text) returns bigint language plpgsql as $$
declare before bigint := pg_temp.issued();
begin
    perform pg_temp.move_index();
    execute q;
    return pg_temp.issued() - before;
end $$;
set pg_lookahead.force = on;
select pg_temp.issued_by('select count(b) from p where a between 5000 and 5200') between 5 and 25 as few,
    pg_temp.issued_by('select sum(b) from (select b from p where a > 8000 order by a limit 200) s') between 5 and 25 as limited;
reset pg_lookahead.force;

set client_min_messages = warning;
drop schema la_leaf cascade;
drop tablespace regress_la_leaf;
