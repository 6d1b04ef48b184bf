--
-- nestloop - nested loops return the same rows in the same order.
--
-- Only the look-ahead over outer rows is on here, not the one inside index scans.  As
-- in scan.sql, each query runs with it off and on, and "looked_ahead" guards against a
-- test that tests nothing; where it is f, the test is that look-ahead stands down.
--
-- a temporary table below does not fit into them
set temp_buffers = '800kB';
\set ECHO none
\getenv src PG_ABS_SRCDIR
\set helper :src '/sql/nestloop.inc'
\set schema la_nestloop
\i :helper

create table o (id int, k int, k8 bigint, j int, s text, f float8, u uuid, w text);
insert into o
    select i, case when i % 11 > 0 then i * 7919 % 3001 end, i * 31 % 4000, i % 17,
        case when i % 13 > 0 then 's' || i % 900 end, i % 300, md5((i % 700)::text)::uuid,
        case when i % 100 = 0 then repeat('wide', 3000) else 'w' end
    from generate_series(1, 2000) i;
create table t (id int, k int, j int, s text, d timestamp, u uuid, p text) with (fillfactor = 30);
insert into t
    select i, i * 4447 % 3011, i % 23, 's' || i * 7 % 1000, 'epoch'::timestamp + i * interval '1 h',
        md5((i % 900)::text)::uuid, repeat('p', i % 90)
    from generate_series(1, 6000) i;
create unique index on t (id) with (fillfactor = 10);
create index on t (k, j) with (fillfactor = 10);
create index on t (k desc nulls last, s) with (fillfactor = 10);
create index on t (s collate "C", id) with (fillfactor = 10);
create index on t (s, k) with (fillfactor = 10);
create index on t (u) with (fillfactor = 10);
create index on t (d);
vacuum analyze t;
analyze o;
delete from t where id % 10 = 3;
set enable_seqscan = off;
alter table o set (parallel_workers = 0);

-- (18 tells which nodes are there in spite of a setting)
create function plan_of(q text) returns setof text language plpgsql as $$
declare l text;
begin
    for l in execute 'explain (costs off) ' || q loop
        if l !~ 'Disabled: true' then
            return next l;
        end if;
    end loop;
end $$;


select * from plan_of('select * from o join t on t.id = o.k');
-- one row for each outer row, several, none
select * from pg_temp.compare('select o.id, t.id from o join t on t.id = o.k');
select * from pg_temp.compare('select o.*, t.p from o join t on t.k = o.k');
select * from pg_temp.compare_all('select o.id, t.id from o join t on t.id = o.k + 100000');
-- composite keys, a range behind them, a filter, an order
select * from pg_temp.compare('select o.id, t.id from o join t on t.k = o.k and t.j = o.j');
select * from pg_temp.compare('select o.id, t.id from o join t on t.k = o.k and t.j > o.j');
select * from pg_temp.compare('select o.id, t.id from o join t on t.k = o.k and t.p like ''%ppp%''');
select * from pg_temp.compare('select o.id, t.id from o join t on t.k = o.k and t.s > o.s');
select * from pg_temp.compare('select o.id, t.id from (select * from o order by s, id) o join t on t.id = o.id');
-- types: across, text, collations, uuid, timestamps
select * from pg_temp.compare('select o.id, t.id from o join t on t.id = o.k8');
select * from pg_temp.compare('select o.id, t.id from o join t on t.s = o.s');
select * from pg_temp.compare('select o.id, t.id from o join t on t.s collate "C" = o.s');
select * from pg_temp.compare('select o.id, t.id from o join t on t.u = o.u');
select * from pg_temp.compare_all('select o.id, t.id from o join t on t.d = timestamp ''epoch'' + o.id * interval ''1 h''');
-- division by a constant cannot fail, unless it is 0 or -1
select * from pg_temp.compare('select o.id, t.id from o join t on t.id = o.k / 3');
select * from pg_temp.compare('select o.id, t.id from o join t on t.k = mod(o.k, 700)');
select * from pg_temp.compare('select o.id, t.id from o join t on t.k = o.k / (-1)');
select * from pg_temp.compare('select o.id, t.id from o join t on t.k = o.k / nullif(o.j, 5)');
-- outer, semi and anti joins; a join filter
select * from pg_temp.compare('select o.id, t.id from o left join t on t.id = o.k');
select * from pg_temp.compare('select o.id, t.id from o left join t on t.k = o.k and t.id > o.id + 1000');
select * from pg_temp.compare('select o.id from o where exists (select from t where t.k = o.k)');
select * from pg_temp.compare('select o.id from o where exists (select from t where t.k = o.k and t.id > o.id * 2)');
select * from pg_temp.compare('select o.id from o where not exists (select from t where t.k = o.k)');
-- index-only, with pages that are all-visible and others
select * from plan_of('select o.id, t.k from o join t on t.k = o.k and t.j = o.j');
select * from pg_temp.compare('select o.id, t.k from o join t on t.k = o.k and t.j = o.j');
-- chains, also under outer joins, and below a sort
select * from pg_temp.compare('select o.id, t.id, v.id from o join t on t.id = o.k join t v on v.k = t.j');
select * from pg_temp.compare('select o.id, t.id, v.id, z.id from o join t on t.id = o.k left join t v on v.id = t.k left join t z on z.id = v.j');
select * from pg_temp.compare('select o.id, sum(v.id) from o join t on t.id = o.k join t v on v.k = t.k group by o.id order by o.id');
-- rescans: correlated subqueries, lateral, recursion
select * from pg_temp.compare('select o.id, (select sum(v.id) from t join t v on v.id = t.k where t.j = o.j and t.id < 500) from o where o.id < 60');
select * from pg_temp.compare('select o.id, l.* from o, lateral (select v.id from t join t v on v.id = t.k where t.j = o.j order by t.id limit 3) l where o.id < 40');
select * from pg_temp.compare('with recursive r(n, id) as (select 0, id from o where id < 20 union all select n + 1, t.k from r join t on t.id = r.id where n < 8) select * from r');
select * from pg_temp.compare('with c as materialized (select * from o where j < 9) select c.id, t.id from c join t on t.id = c.k');
-- keys that are expressions: errors could come too early, unless all rows are taken anyway
select * from pg_temp.compare('select o.id, t.id from o join t on t.id = o.k + 1');
select * from pg_temp.compare_all('select o.id, t.id from o join t on t.id = o.k + 1');
select * from pg_temp.compare('select o.id, t.id from o join t on t.id = 1000 / (o.id - 1500)');
select * from pg_temp.compare('select o.id, t.id from (select id, 1000 / (o.id - 60) as e from o order by o.k8) o join t on t.id = o.e + 3');
-- limits: an error behind the last row wanted must not come
select * from pg_temp.compare('select o.id, t.id from o join t on t.id = o.k limit 1');
select * from pg_temp.compare('select o.id, t.id from o join t on t.id = o.k limit 10 offset 7');
select * from pg_temp.compare('select o.id, t.id from o join t on t.k = o.k limit 500');
set enable_indexscan = on;
set enable_seqscan = on;
select * from pg_temp.compare('select o.id, t.id from (select id, k, 1 / (o.id - 60) as e from o) o join t on t.id = o.k where o.e < 5 limit 20');
select * from pg_temp.compare('select o.id, t.id from (select id, k, 1 / (o.id - 60) as e from o) o join t on t.id = o.k where o.e < 5');
set enable_seqscan = off;
-- ... nor where the statement is read to its end, which is the limit's
select * from pg_temp.compare_all('select o.id, t.id from (select id, k, 1 / (o.id - 60) as e from o) o join t on t.id = o.k where o.e < 5 limit 20');
select * from pg_temp.compare_all('select o.id, t.id from (select id, k, 1 / (o.id - 60) as e from o) o join t on t.id = o.k where o.e < 5');
-- ... nor an InitPlan be run that nobody wanted
select * from pg_temp.compare('select o.id, t.id from o join t on t.id = o.k where case when o.id > 60 then (select 1 / count(*)::int from pg_class where oid = 0) else 1 end = 1 limit 40');
-- ... nor rows be read whose join turns out to be empty
set enable_hashjoin = on;
select * from pg_temp.compare_all('select * from (select o.id, t.k from (select id, k, 1 / (o.id - 60) as e from o) o join t on t.id = o.k where o.e < 5) x join (select id from o where f < -1) y on y.id = x.k');
set enable_hashjoin = off;
-- the same after an error in a nested statement of the cursor's query
create function fails(i int) returns int language plpgsql as $$
begin
    perform count(*) / (i - i) from o;
    return i;
exception when division_by_zero then
    return i;
end $$;
select * from pg_temp.compare('select fails(o.id), t.id from (select id, k, 1 / (o.id - 60) as e from o) o join t on t.id = o.k where o.e < 5 limit 20');
-- keys with subplans
set enable_seqscan = off;
select * from pg_temp.compare_all('select o.id, t.id from o join t on t.id = (select max(v.id) from t v where v.k = o.k)');
select * from pg_temp.compare_all('select o.id, t.id from o join t on t.s = (select max(v.s) from t v where v.s > o.s)');
-- many nulls between the keys
select * from pg_temp.compare_all('select o.id, t.id from (select id, case when id % 2 = 0 then k end as k from o, generate_series(1, 3) order by id) o join t on t.id = o.k');
-- reads that are made, and timed: a table that does not fit into its buffers (how long a visit of
-- a cached page takes decides nothing)
create temp table r with (fillfactor = 10) as select * from t;
create index on r (k);
create index on r (id);
analyze r;
create function pg_temp.timed(q text, min_read_time text) returns text[] language plpgsql as $$
begin
    if current_setting('pg_lookahead.enable')::bool then
        perform set_config('pg_lookahead.force', 'off', true), set_config('pg_lookahead.miss_threshold', '2', true),
            set_config('pg_lookahead.min_read_time', min_read_time, true),
            set_config('pg_lookahead.cache_prefetch_threshold', '-1', true);
    end if;
    return pg_temp.collected(q);
end $$;

select * from pg_temp.differ('timed(''select o.id, r.id from o join r on r.k = o.k'', ''0'')');
select * from pg_temp.differ('timed(''select o.id, r.id, v.id from o join r on r.k = o.k join r v on v.k = r.j'', ''0'')');
-- ... and prove not to be waits, behind the last outer row
create index on o (id);
select * from pg_temp.differ('timed(''select o.id, r.id from (select * from o where id < 250 order by id) o join r on r.k = o.k'', ''0'')');
select * from pg_temp.differ('timed(''select o.id, r.id from (select * from o where id < 250 order by id) o join r on r.k = o.k'', ''1000'')');

-- dead entries are marked by an inner scan that has not searched for itself
create extension pageinspect schema la_nestloop;
create table dead as select i % 50 as k, i from generate_series(1, 500) i;
create index dead_k on dead (k) with (deduplicate_items = off);
create function marked() returns bool language sql as
    $$ select count(*) filter (where dead) >= 40 from bt_page_items('dead_k', 1) $$;
delete from dead where i % 100 < 50;
begin;
set local pg_lookahead.force = on;
select marked();
select * from plan_of('select dead.i from o join dead on dead.k = o.id where o.id < 50');
select count(dead.i) from (select * from o where o.id between 0 and 50 order by id) o join dead on dead.k = o.id;
select marked();
commit;
-- memoize
set enable_memoize = on;
select * from plan_of('select o.id, t.id from o join t on t.id = o.j');
select * from pg_temp.compare('select o.id, t.id from o join t on t.id = o.j');
set enable_memoize = off;
-- an inner scan that goes backward over duplicates, of which some are dead
create table dup (k int, w int) with (autovacuum_enabled = off);
insert into dup select i % 500, 1 from generate_series(1, 10000) i;
create index on dup (k, w);
delete from dup where ctid in (select min(ctid) from dup where k % 3 = 0 group by k);
analyze dup;
select * from pg_temp.compare('select o.id, d.ctid from o left join lateral (select k, w, ctid from dup where k = o.k % 500 order by k desc, w desc offset 0) d on true');
-- wide rows, and little memory for them
select * from pg_temp.compare('select o.id, o.w, t.id from o join t on t.id = o.k');
set pg_lookahead.scan_memory = '64kB';
select * from pg_temp.compare('select o.id, o.w, t.id from o join t on t.id = o.k');
set pg_lookahead.scan_memory = '128kB';
select * from pg_temp.compare('select o.id, repeat(o.w, 20), t.id from o join t on t.id = o.k');
reset pg_lookahead.scan_memory;
set pg_lookahead.backend_memory = 0;
select * from pg_temp.compare('select o.id, o.w, t.id from o join t on t.id = o.k');
reset pg_lookahead.backend_memory;
-- cursors
select * from pg_temp.play('select o.id, t.id from o join t on t.id = o.k', 'n n p n m100 n w50 p f l p a7 r-3 e p s n');
select * from pg_temp.differ('forward_rows(''select o.id, t.id from o join t on t.id = o.k'', ''{1,2,1,50,3,400,2000,1}'')');

-- what must stand down
create sequence calls;
create function volatile_key(i int) returns int language plpgsql volatile as $$
begin
    return i + 0 * nextval('calls')::int;
end $$;
select * from pg_temp.compare('select o.id, t.id from (select id, volatile_key(k) as k from o offset 0) o join t on t.id = o.k');
select * from pg_temp.compare('select o.id, t.id from o join t on t.id = o.k for update of o');
select * from pg_temp.compare('select o.id, t.id from o join t on t.id = o.k for update of t');
select * from pg_temp.compare('select o.id, t.id from o join t on t.id = any (array[o.k, o.j])');
select * from pg_temp.compare('select o.id, t.id from o join t on t.id > o.k limit 3000');
set pg_lookahead.enable_nestloop = off;
select * from pg_temp.compare('select o.id, t.id from o join t on t.id = o.k');
reset pg_lookahead.enable_nestloop;

-- plans, and the rows that EXPLAIN ANALYZE counts of the join and of its outer side
select identical, n > 0 as some from pg_temp.compare_plans('select o.id, t.id from o join t on t.id = o.k');
create function counted(q text) returns setof text language plpgsql as $$
begin
    perform set_config('pg_lookahead.explain', 'off', true);
    return query execute 'explain (analyze, costs off, timing off, summary off, buffers off) ' || q;
end $$;
create function pg_temp.counted(q text) returns text[] language sql as
    $$ select array_agg(regexp_replace(l, ' \(actual.*never.*| Index Searches.*', '')) from la_nestloop.counted(q) l where l !~ 'Heap Fetches|Index Searches|Disabled' $$;
select * from pg_temp.differ('counted(''select o.id, t.id from o join t on t.id = o.k'')');
select * from pg_temp.differ('counted(''select o.id, t.id from o join t on t.id = o.k limit 17'')');
select * from pg_temp.differ('counted(''select o.id, t.id from o left join t on t.k = o.k limit 170'')');

-- updates that join
select * from pg_temp.differ('rows_after(''update t set j = 99, k = t.k + 1 from o where t.id = o.k'', ''select * from t where j = 99 order by id, ctid'')');
select * from pg_temp.differ('rows_after(''update t set j = 99 from o join t v on v.id = o.k where t.id = v.k'', ''select * from t where j = 99 order by id, ctid'')');
select * from pg_temp.differ('rows_after(''insert into t select o.id + 100000, t.k, 99 from o join t on t.id = o.k'', ''select * from t where j = 99 order by id, ctid'')');
-- in parallel workers
set enable_seqscan = on;
set max_parallel_workers_per_gather = 2;
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set min_parallel_table_scan_size = 0;
alter table o set (parallel_workers = 2);
select * from plan_of('select count(*), sum(o.id), sum(t.id) from o join t on t.id = o.k');
select * from pg_temp.compare('select count(*), sum(o.id), sum(t.id) from o join t on t.id = o.k');
select * from pg_temp.compare('select count(*), sum(o.id), sum(t.id), sum(v.id) from o join t on t.k = o.k left join t v on v.id = t.j');
set max_parallel_workers_per_gather = 0;
-- serializable: no locks of rows that nobody has asked for
begin isolation level serializable;
select * from pg_temp.compare('select o.id, t.id from o join t on t.id = o.k limit 10');
select * from pg_temp.compare_all('select o.id, t.id from o join t on t.id = o.k');
commit;
-- a key whose function raises a notice is not evaluated once more
create table words as select i, case i when 31 then repeat('x', 3000) else 'w' || i end as s from generate_series(1, 60) i;
analyze words;
set pg_lookahead.enable_nestloop = on;
set pg_lookahead.force = on;
set pg_lookahead.enable = off;
select count(*) from words w join t on t.id = length(to_tsvector('simple', w.s));
set pg_lookahead.enable = on;
select count(*) from words w join t on t.id = length(to_tsvector('simple', w.s));
explain (costs off) select count(*) from words w join t on t.id = length(to_tsvector('simple', w.s));

\set ECHO none
set client_min_messages = warning;
drop schema la_nestloop cascade;
