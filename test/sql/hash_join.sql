--
-- hash_join - hash joins return the same rows in the same order.
--
-- As nestloop.sql; only hash joins look ahead here.  Rows of equal keys and inner rows
-- without a match have an order of stock's own making, and must have it.
--
\set ECHO none
\getenv src PG_ABS_SRCDIR
\set helper :src '/sql/hash_join.inc'
\set schema la_hashjoin
\i :helper

create table o (id int, k int, k8 bigint, j int, s text, f float8, u uuid, n numeric, d date, w text);
insert into o
    select i, case when i % 11 > 0 then i * 7919 % 3001 end, i * 31 % 4000, i % 17,
        case when i % 13 > 0 then 's' || i % 900 end, i % 300, md5((i % 700)::text)::uuid, (i % 500) / 4.0,
        '2000-01-01'::date + i % 1000, repeat('wide', i % 200)
    from generate_series(1, 4000) i;
create table t (id int, k int, j int, s text, f float8, u uuid, n numeric, d date, p text);
insert into t
    select i, case when i % 7 > 0 then i * 4447 % 3011 end, i % 23, 's' || i * 7 % 1000, i % 400, md5((i % 900)::text)::uuid,
        (i % 700) / 4.0, '2000-06-01'::date + i % 1000, repeat('p', i % 90)
    from generate_series(1, 3000) i;
create table few (k int, v text);
insert into few select i * 50, 'v' || i from generate_series(1, 40) i;
create table none (k int);
create table one_key as select 7 as k, i from generate_series(1, 3000) i;
create table large (k int, v text);
alter table large alter v set storage plain;
insert into large select i, repeat('x', 500 * (i % 17)) from generate_series(1, 500) i;
vacuum analyze o, t, few, none, one_key, large;
alter table o add added int default 42;

-- one row, several, none
select pg_temp.nodes('select o.id, t.id from o join t on t.k = o.k');
select * from pg_temp.compare('select o.id, t.id from o join t on t.k = o.k');
select * from pg_temp.compare('select o.*, t.* from o join t on t.k = o.k');
select * from pg_temp.compare('select o.id, few.v from o join few on few.k = o.k');
select * from pg_temp.compare('select o.id, o.added, o.ctid, o.tableoid::regclass, t.ctid from o join t on t.k = o.k');
select * from pg_temp.compare('select o, t from o join t on t.k = o.k where o.id < 500');
-- types of joins; a join filter, and a filter
select * from pg_temp.compare('select o.id, t.id from o left join t on t.k = o.k');
select * from pg_temp.compare('select o.id, t.id from o left join t on t.k = o.k and t.id > o.id');
select * from pg_temp.compare('select o.id, t.id from o right join t on t.k = o.k');
select * from pg_temp.compare('select o.id, t.id from o full join t on t.k = o.k');
select * from pg_temp.compare('select o.id, t.id from o full join t on t.k = o.k and o.j = t.j where o.id is null or t.id is null');
select * from pg_temp.compare('select o.id from o where exists (select from t where t.k = o.k)');
select * from pg_temp.compare('select o.id from o where exists (select from t where t.k = o.k and t.id > o.id * 2)');
select * from pg_temp.compare('select o.id from o where not exists (select from t where t.k = o.k)');
select * from pg_temp.compare('select few.k from few where exists (select from o where o.k = few.k)');
select * from pg_temp.compare('select few.k from few where not exists (select from o where o.k = few.k)');
select * from pg_temp.compare('select o.id, t.id from o left join t on t.k = o.k where coalesce(t.id, 0) % 3 = 0');
-- keys: several, of other types, expressions, not of the outer side only
select * from pg_temp.compare('select o.id, t.id from o join t on t.k = o.k and t.j = o.j');
select * from pg_temp.compare('select o.id, t.id from o join t on t.k = o.k8');
select * from pg_temp.compare('select o.id, t.id from o join t on t.s = o.s');
select * from pg_temp.compare('select o.id, t.id from o join t on t.f = o.f');
select * from pg_temp.compare('select o.id, t.id from o join t on t.u = o.u');
select * from pg_temp.compare('select o.id, t.id from o join t on t.n = o.n where o.id < 1000');
select * from pg_temp.compare('select o.id, t.id from o join t on t.d = o.d');
select * from pg_temp.compare_all('select o.id, t.id from o join t on t.k + 1 = o.k - 1');
select * from pg_temp.compare('select o.id, t.id from o join t on (t.k, t.s) = (o.k, o.s)');
-- the outer side: sorted, an aggregate, an append, a function, another join
select * from pg_temp.compare('select x.id, t.id from (select * from o order by s, id) x join t on t.k = x.k');
select * from pg_temp.compare('select x.j, x.s, few.v from (select j, s, max(k) as k from o group by j, s) x join few on few.k = x.k');
select * from pg_temp.compare('select x.id, t.id from (select id, s from o union all select id, s from t) x join t on t.s = x.s where x.id < 600');
select * from pg_temp.compare('select x.i, few.v from generate_series(1, 3000) x(i) join few on few.k = x.i');
select * from pg_temp.compare('select o.id, t.id, v.id from o join t on t.k = o.k join t v on v.k = t.id join few on few.k = v.k');
-- empty sides, one key, rows that are larger than a chunk's quarter
select * from pg_temp.compare('select o.id from o join none on none.k = o.k');
select * from pg_temp.compare('select o.id from o left join none on none.k = o.k');
select * from pg_temp.compare('select o.id from none join o on none.k = o.k');
select * from pg_temp.compare('select o.id from none full join o on none.k = o.k');
select * from pg_temp.compare('select o.id, one_key.i from o join one_key on one_key.k = o.j where o.id < 300');
select * from pg_temp.compare('select o.id, large.* from o join large on large.k = o.k');
-- estimates that are wrong: more buckets than expected, and fewer
create function three_thousand() returns setof int rows 10 language sql as 'select i * 4447 % 3011 from generate_series(1, 3000) i';
create function ten() returns setof int rows 100000 language sql as 'select i * 300 from generate_series(1, 10) i';
select * from pg_temp.compare('select o.id, x from o join (select x, x / 2 as y from three_thousand() x offset 0) z on x = o.k');
select * from pg_temp.compare('select o.id, x from o full join three_thousand() x on x = o.k');
select * from pg_temp.compare('select o.id, x from o full join ten() x on x = o.k');
-- memory that does not suffice, as estimated or not
set work_mem = '64kB';
set hash_mem_multiplier = 1.0;
select * from pg_temp.compare('select o.id, t.id from o join t on t.k = o.k');
select * from pg_temp.compare('select o.id, x from o join three_thousand() x on x = o.k');
select * from pg_temp.compare('select o.id, x from o full join three_thousand() x on x = o.k');
select * from pg_temp.compare('select o.id, one_key.i from o join one_key on one_key.k = o.j where o.id < 300');
reset work_mem;
reset hash_mem_multiplier;
-- rescans: the table is reused, built again, left to the server
select * from pg_temp.compare('select few.k, x.* from few, lateral (select count(*), sum(t.id) from o join t on t.k = o.k where o.j > few.k / 100) x where few.k < 500');
select * from pg_temp.compare('select few.k, x.* from few, lateral (select count(*), sum(t.id) from o join t on t.k = o.k where t.j > few.k / 100) x where few.k < 500');
select * from pg_temp.compare('select few.k, x.* from few, lateral (select count(*), sum(t.id), sum(o.id) from o full join (select * from t where t.j > few.k / 100 offset 0) t on t.k = o.k) x where few.k < 500');
select * from pg_temp.compare('select few.k, x.* from few, lateral (select o.id from o join t on t.k = o.k where o.j = few.k % 17 limit 5) x');
-- limits, cursors
select * from pg_temp.compare('select o.id, t.id from o join t on t.k = o.k limit 1');
select * from pg_temp.compare('select o.id, t.id from o join t on t.k = o.k offset 20 limit 100');
select * from pg_temp.play('select o.id, t.id from o join t on t.k = o.k', 'n n p n m100 n w50 p f l p a7 r-3 e p s n');
-- expressions that fail, for rows that are taken and others
select * from pg_temp.compare('select o.id, 100 / (o.id - 700) from o join t on t.k = o.k limit 40');
select * from pg_temp.compare('select o.id, t.id from (select *, 100 / (id - 700) as q from o offset 0) o join t on t.k = o.k where q < 1000 limit 40');
select * from pg_temp.compare('select o.id, t.id from (select *, 100 / (id - 700) as q from o offset 0) o join t on t.k = o.k where q < 1000');
select * from pg_temp.compare_all('select o.id, t.id from o join t on t.k = 100 / (o.id - 700)');
-- calls that others can count
create sequence calls;
create function counted(i int) returns int language plpgsql volatile as $$
begin
    return i + 0 * nextval('la_hashjoin.calls')::int;
end $$;
create function pg_temp.calls(q text) returns text[] language plpgsql as $$
declare out text[]; r record; n int := 0;
begin
    perform setval('la_hashjoin.calls', 1);
    for r in execute q loop
        n := n + 1;
        out := out || format('%s %s', r, (select last_value from la_hashjoin.calls));
        exit when n = 200;
    end loop;
    return out;
end $$;
select * from pg_temp.differ('calls(''select o.id, t.id from (select id, counted(k) as k from o offset 0) o join t on t.k = o.k'')');
select * from pg_temp.differ('calls(''select o.id, t.id from o join t on t.k = o.k and counted(t.id) > 0'')');
select * from pg_temp.differ('calls(''select o.id, counted(t.id) from o join t on t.k = o.k'')');
-- keys that are subqueries, which may do anything
select * from pg_temp.differ('calls(''select o.id, t.id from o join t on (select counted(o.k)) = t.k'')');
-- outer rows that cannot match are not read before their turn
create table sparse as select id, case when id in (1, 40, 2500) then 3 end as k from generate_series(1, 3000) id;
analyze sparse;
select pg_temp.nodes('select s.id from sparse s join t on t.k = s.k limit 1');
select * from pg_temp.differ('analyzed(''select s.id from sparse s join t on t.k = s.k limit 1'')');
select * from pg_temp.differ('analyzed(''select s.id from sparse s join t on t.k = s.k limit 20'')');
select * from pg_temp.differ('analyzed(''select s.id from sparse s join t on t.k = s.k'')');
select * from pg_temp.differ('analyzed(''select s.id from sparse s left join t on t.k = s.k limit 1'')');
-- columns that the statement itself changes
create table log (id int, changed bool);
create table once as select id, 0 as n from generate_series(1, 3000) id;
analyze once;
select * from pg_temp.differ('rows_after(''with u as (update once set n = 1 from once p where once.id = p.id + 1 returning p.id, p.xmax <> 0) insert into log select * from u'', ''select changed, count(*) from log group by 1'')');
-- in parallel workers, with a table of their own each
set max_parallel_workers_per_gather = 2;
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set min_parallel_table_scan_size = 0;
set enable_parallel_hash = off;
select pg_temp.nodes('select count(*), sum(o.id), sum(t.id) from o join t on t.k = o.k');
select * from pg_temp.compare('select count(*), sum(o.id), sum(t.id) from o join t on t.k = o.k');
-- with a table that they share
set enable_parallel_hash = on;
select pg_temp.nodes('select count(*), sum(o.id), sum(t.id) from o join t on t.k = o.k');
select * from pg_temp.compare('select count(*), sum(o.id), sum(t.id) from o join t on t.k = o.k');
select * from pg_temp.compare('select o.id, o.w, t.id from o join t on t.k = o.k order by 1, 3');
select * from pg_temp.compare('select o.id, t.id from o left join t on t.k = o.k and t.j > 4 order by 1, 2');
select * from pg_temp.compare('select o.id, t.id from o full join t on t.k = o.k and t.id = o.j order by 1, 2');
select * from pg_temp.compare('select o.id from o where not exists (select from t where t.k = o.k) order by 1');
select * from pg_temp.compare('select o.id, v.id from o join t on t.k = o.k join t v on v.s = t.s and v.id > o.id order by 1, 2');
select * from pg_temp.compare('select o.id, v.id from o join t on t.id = o.k left join o v on v.j = t.j and v.id = t.k order by 1, 2');
select * from pg_temp.compare('select count(*) from (select o.id, t.id from o join t on t.k = o.k limit 70) s');
select * from pg_temp.compare('select count(*), sum(o.id) from o join t on t.k = 100 / (o.id + 1)');
select * from pg_temp.compare('select m, s.* from generate_series(1, 4) m, lateral (select count(*), sum(t.id) from o join t on t.k = o.k where o.id > m offset 0) s');
create table halves (x int) partition by hash (x);
create table half1 partition of halves for values with (modulus 2, remainder 0);
create table half2 partition of halves for values with (modulus 2, remainder 1);
insert into halves select generate_series(1, 3000);
select * from pg_temp.compare('select count(*), sum(x) from halves where x not in (select o.k from o join t using (k) where o.k is not null)');
set work_mem = '64kB';
select * from pg_temp.compare('select count(*), sum(o.id), sum(t.id) from o join t on t.k = o.k');
reset work_mem;
set max_parallel_workers_per_gather = 0;
-- what EXPLAIN ANALYZE says
select * from pg_temp.compare_plans('select o.id, t.id from o join t on t.k = o.k');
select * from pg_temp.differ('analyzed(''select o.id, t.id from o join t on t.k = o.k'')');
select * from pg_temp.differ('analyzed(''select o.id, t.id from o left join t on t.k = o.k and o.j = t.j limit 170'')');
select * from pg_temp.differ('analyzed(''select o.id, x from o full join three_thousand() x on x = o.k'')');
set work_mem = '64kB';
select * from pg_temp.differ('analyzed(''select o.id, x from o join three_thousand() x on x = o.k'')');
reset work_mem;
-- rows of an outer side that is rescanned when its first row is asked for
select identical, looked_ahead from pg_temp.differ('analyzed(''select few.k, x.* from few, lateral (select g, t.id from generate_series(few.k % 3, 20) g join t on t.k = g offset 0) x'')');
-- updates that join
select * from pg_temp.differ('rows_after(''update t set j = 99, k = t.k + 1 from o where t.k = o.k'', ''select * from t where j = 99 order by id, ctid'')');
select * from pg_temp.differ('rows_after(''insert into t select o.id + 100000, t.k, 99 from o join t on t.k = o.k'', ''select * from t where j = 99 order by id, ctid'')');
-- switched off
set pg_lookahead.enable_hash_join = off;
select * from pg_temp.compare('select o.id, t.id from o join t on t.k = o.k');

\set ECHO none
set client_min_messages = warning;
drop schema la_hashjoin cascade;
