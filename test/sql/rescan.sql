--
-- rescan - scans that start over: inner sides of nested loops, subplans, LATERAL.
--
-- At a rescan look-ahead drops what it has read; nothing of the last round may show
-- up in the next one, whether that round was read to its end, left early, or never
-- returned a row.
--
\set ECHO none
\getenv src PG_ABS_SRCDIR
\set helper :src '/sql/scans.inc'
\set schema la_rescan
\i :helper
set enable_hashjoin = off;
set enable_mergejoin = off;
set enable_material = off;
set enable_memoize = off;

create table o (id int, k int, lo int, w text);
insert into o select i, i * 37 % 211, i * 53 % 190, repeat('o', 20) from generate_series(1, 400) i;
create index on o (id) with (fillfactor = 10);
create index on o (k) with (fillfactor = 10);
create table i (k int, v int, id int, w text);
insert into i select (n::bigint * 7919 % 10007 / 50)::int, n % 77, n, repeat('i', 50)
    from generate_series(1, 10006) n;
create index i_kv on i (k, v) with (fillfactor = 10);
create index i_id on i (id) include (k) with (fillfactor = 10);
create index i_v on i (v, id) with (fillfactor = 10);
analyze o, i;

-- joins: one to many, one to none, a range inside
explain (costs off) select o.id, i.id, i.w from o join i using (k) where o.id < 200;
select * from pg_temp.compare('select o.id, i.id, i.w from o join i using (k) where o.id < 200');
select * from pg_temp.compare('select o.id, i.id, i.w from o left join i on i.k = o.k and i.v > 60 where o.id < 300');
select * from pg_temp.compare('select o.id, i.id, i.w from o join i on i.k between o.lo and o.lo + 2 where o.id < 40');
select * from pg_temp.compare('select o.id, i.id, i.w from o join i on i.k > o.k where o.id < 6');
select * from pg_temp.compare('select o.id, i.id from o join i on i.id = o.k * 40');
select * from pg_temp.compare('select o.id, i.k from o join i on i.id = o.k * 40');
-- runtime keys and a list of them
select * from pg_temp.compare('select o.id, i.id, i.w from o join i on i.k in (o.k, o.lo) where o.id < 60');
-- two levels
select * from pg_temp.compare('select o.id, i.id, p.id from o join i using (k) join o p on p.k = i.v where o.id < 30');
-- left early: each round in another place
select * from pg_temp.compare('select o.id, x.* from o, lateral (select i.id, i.w from i where i.k >= o.lo order by k, v limit 1) x where o.id < 300');
select * from pg_temp.compare('select o.id, x.* from o, lateral (select i.id, i.w from i where i.k >= o.lo order by k, v limit o.id % 60) x where o.id < 150');
select * from pg_temp.compare('select o.id, x.* from o, lateral (select i.id, i.w from i where i.k <= o.lo order by k desc, v desc limit o.id % 60) x where o.id < 150');
select * from pg_temp.compare('select o.id, x.* from o, lateral (select i.id, i.k from i where i.id > o.lo * 50 order by id limit o.id % 40) x where o.id < 150');
select * from pg_temp.compare('select o.id, x.* from o, lateral (select i.id from i where i.k = o.k order by v offset o.id % 50 limit 2) x');
-- semi and anti joins stop at the first match
select * from pg_temp.compare('select * from o where exists (select 1 from i where i.k = o.k and i.id > 5000) order by o.id');
select * from pg_temp.compare('select * from o where not exists (select 1 from i where i.k = o.k and i.v = 76) order by o.id');
select * from pg_temp.compare('select * from o where o.k in (select i.k from i where i.v = o.lo)');
-- subplans and initplans
select * from pg_temp.compare('select o.id, (select count(*) from i where i.k = o.k and i.v < o.lo) from o order by o.id');
select * from pg_temp.compare('select o.id, (select i.w from i where i.k = o.k order by k, v desc limit 1) from o order by o.id');
select * from pg_temp.compare('select o.id, array(select i.id from i where i.k = o.k order by v limit 3) from o order by o.id');
select * from pg_temp.compare('select o.id, (select min(i.id) from i where i.id > o.k), (select max(i.v) from i where i.v < o.lo) from o order by o.id');
select * from pg_temp.compare('select * from i where i.k > (select max(k) from o) - 20 order by k, v');
select * from pg_temp.compare('select * from o where lo < all (select i.k + 100 from i where i.v = o.k % 77) order by id');
-- a loose index scan by hand
select * from pg_temp.compare('with recursive r(k, n) as (
    select min(k), 1 from i union all
    select (select min(i.k) from i where i.k > r.k), n + 1 from r where r.k is not null)
    select * from r');
-- a recursive join over the same index
select * from pg_temp.compare('with recursive r(id, n) as (
    select id, 0 from i where id < 20 union all
    select i.id, n + 1 from r join i on i.id = r.id * 3 % 10007 and n < 12)
    select * from r');
-- merge join whose outer side is rescanned by a nested loop
set enable_mergejoin = on;
select * from pg_temp.compare('select o.id, x.n from o, lateral
    (select count(*) as n from (select * from i where v = o.k % 77) a full join (select * from i where v = o.lo % 77) b on a.id = b.id) x
    where o.id < 30');
reset enable_mergejoin;

-- parallel workers whose scan is rescanned before it looks ahead (a function's loop has no workers)
alter table i set (parallel_workers = 2);
set max_parallel_workers_per_gather = 2;
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set cpu_tuple_cost = 1;
set random_page_cost = 0.01;
set min_parallel_table_scan_size = 0;
set min_parallel_index_scan_size = 0;
explain (costs off) select a.n, x.* from (values (1), (2), (3)) a (n) left join
    (select count(*), sum(id) from i where k between 5 and 7) x on true;
set pg_lookahead.enable = off;
select a.n, x.* from (values (1), (2), (3)) a (n) left join
    (select count(*), sum(id) from i where k between 5 and 7) x on true;
set pg_lookahead.enable = on;
select a.n, x.* from (values (1), (2), (3)) a (n) left join
    (select count(*), sum(id) from i where k between 5 and 7) x on true;
reset pg_lookahead.enable;
reset parallel_setup_cost;
reset parallel_tuple_cost;
reset cpu_tuple_cost;
reset random_page_cost;
reset min_parallel_table_scan_size;
reset min_parallel_index_scan_size;
set max_parallel_workers_per_gather = 0;
alter table i reset (parallel_workers);

-- loops of PL/pgSQL, left at some row; a cached plan is executed many times
create function loops(how text) returns setof text language plpgsql as $$
declare r record; s record; n int;
begin
    for r in select * from o where id < 120 order by id loop
        n := 0;
        begin
            for s in select i.id, i.w from i where i.k >= r.lo order by i.k, i.v loop
                n := n + 1;
                if how = 'error' and n = r.id then perform 1 / (n - r.id); end if;
                exit when n > r.k;
            end loop;
        exception when division_by_zero then
            n := -n;
        end;
        return next r.id || ' ' || n || ' ' || s.id;
    end loop;
end $$;
select * from pg_temp.compare('select * from loops(''exit'')');
select * from pg_temp.compare('select * from loops(''error'')');

-- rescans by a cursor's own motion
select * from pg_temp.play('select o.id, i.id, i.w from o join i using (k) where o.id < 200',
    'n n m300 n p p f n m900 n w40 n l p a5 n e s n n');
select * from pg_temp.play('select o.id, x.* from o, lateral (select i.id, i.w from i where i.k >= o.lo order by k, v limit 30) x where o.id < 100 order by o.id',
    'n n m300 n p p f n m900 n w40 n l p a5 n e s n n');

-- the same statement prepared, with other parameters each time
prepare p(int, int) as select id, w from i where k >= $1 order by k, v limit $2;
set plan_cache_mode = force_generic_plan;
select * from pg_temp.compare('execute p(3, 2)');
select * from pg_temp.compare('execute p(190, 5000)');
select * from pg_temp.compare('execute p(5000, 1)');
select * from pg_temp.compare('execute p(null, 10)');
select * from pg_temp.compare('execute p(20, 3000)');
deallocate p;

set client_min_messages = warning;
drop schema la_rescan cascade;
