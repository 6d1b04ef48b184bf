--
-- nestloop_partitions - nested loops whose inner side is a partitioned table.
--
-- As nestloop.sql.  "looked_ahead" is t if scans were activated; rows that turn to several
-- partitions are not looked at then.
--
\set ECHO none
\getenv src PG_ABS_SRCDIR
\set helper :src '/sql/nestloop.inc'
\set schema la_parts
\i :helper

create table o (id int, k int, j int, s text);
insert into o
    select i, case when i % 11 > 0 then i * 7919 % 3001 end, i % 17, case when i % 13 > 0 then 's' || i % 900 end
    from generate_series(1, 1500) i;
-- by ranges, two of them divided once more, one without the index, one with columns in another order
create table r (id int, k int, j int, s text, p text) partition by range (k);
create table r1 partition of r for values from (minvalue) to (500);
create table r2 partition of r for values from (500) to (1000) partition by list (j);
create table r2a partition of r2 for values in (0, 2, 4, 6, 8, 10);
create table r2b partition of r2 default;
create table r3 (p text, j int, gone int, s text, k int, id int);
alter table r3 drop column gone;
alter table r attach partition r3 for values from (1000) to (1500);
create table r4 partition of r for values from (1500) to (2000);
create table r5 partition of r default;
create index on only r (k, j);
create index on r1 (k, j) with (fillfactor = 10);
create index on r2 (k, j) with (fillfactor = 10);
create index on r3 (k, j) with (fillfactor = 10);
create index on r5 (k, j) with (fillfactor = 10);
insert into r select i, i * 4447 % 3011, i % 12, 's' || i * 7 % 1000, repeat('p', i % 90) from generate_series(1, 6000) i;
-- by hash of a text, which need not be that of the index's collation
create table h (s text, id int) partition by hash (s);
create table h1 partition of h for values with (modulus 3, remainder 0);
create table h2 partition of h for values with (modulus 3, remainder 1);
create table h3 partition of h for values with (modulus 3, remainder 2);
create index on h (s) with (fillfactor = 10);
insert into h select 's' || i * 7 % 1000, i from generate_series(1, 4000) i;
vacuum analyze o, r, h;
delete from r where id % 10 = 3;
set enable_seqscan = off;
alter table o set (parallel_workers = 0);

\set ECHO all

-- one partition for each row; one of them without index
select pg_temp.nodes('select o.id, r.id from o join r on r.k = o.k');
select * from pg_temp.compare('select o.id, r.id, r.p from o join r on r.k = o.k');
select * from pg_temp.compare('select o.id, r.id from o join r on r.k = o.k and r.j = o.j');
select * from pg_temp.compare('select o.id, r.id from o left join r on r.k = o.k and r.id > o.id');
select * from pg_temp.compare('select o.id from o where exists (select from r where r.k = o.k)');
select * from pg_temp.compare('select o.id from o where not exists (select from r where r.k = o.k)');
select * from pg_temp.compare('select o.id, r.id from o join r on r.k = o.k order by o.j, o.id, r.id limit 30');
select * from pg_temp.compare('select o.id, r.id from o join r on r.k = o.k limit 100');
select * from pg_temp.compare_all('select o.id, r.id from o join r on r.k = o.k + 1');
-- some partitions are excluded when the statement starts
prepare some_of(int) as select count(*), sum(r.id) from o join r on r.k = o.k and r.k < $1;
set plan_cache_mode = force_generic_plan;
set pg_lookahead.force = on;
execute some_of(1200);
execute some_of(700);
execute some_of(100);
set pg_lookahead.enable = off;
execute some_of(1200);
execute some_of(700);
execute some_of(100);
reset pg_lookahead.enable;
reset pg_lookahead.force;
reset plan_cache_mode;
-- index-only, text keys
select pg_temp.nodes('select o.id, r.k, r.j from o join r on r.k = o.k');
select * from pg_temp.compare('select o.id, r.k, r.j from o join r on r.k = o.k');
select * from pg_temp.compare('select o.id, h.id from o join h on h.s = o.s');
select * from pg_temp.compare_all('select o.id, h.id from o join h on h.s = o.s || ''''');
-- below memoize, in chains, and rescanned
set enable_memoize = on;
select pg_temp.nodes('select o.id, r.p from o join r on r.k = o.k');
select * from pg_temp.compare('select o.id, r.p from o join r on r.k = o.k');
set enable_memoize = off;
select * from pg_temp.compare('select o.id, r.id, h.id from o join r on r.k = o.k join h on h.s = r.s');
select * from pg_temp.compare_all('select n, x.* from generate_series(1, 3) n, lateral (select o.id, r.id as rid from o join r on r.k = o.k + n where o.j > n offset 0) x');
select * from pg_temp.compare('select o.id, (select sum(r.id) from o i join r on r.k = i.k where i.j = o.j and i.id < 300) from o where o.id < 40');
-- cursors, updates
select * from pg_temp.play('select o.id, r.id from o join r on r.k = o.k', 'n n p n m100 n w50 p f l p a7 r-3 e p s n');
select * from pg_temp.differ('rows_after(''update r set p = ''''new'''', k = r.k + 500 from o where r.k = o.k'', ''select * from r where p = ''''new'''' order by id, tableoid, ctid'')');
-- several partitions for a row; an expression that fails, where not all rows are taken
select * from pg_temp.compare_all('select o.id, r.id from o join r on r.j = o.j and r.id = o.id');
select * from pg_temp.compare('select o.id, r.id from o join r on r.k = 3000 / (o.id - 700) where o.id < 900 limit 40');
select * from pg_temp.compare_all('select o.id, r.id from o join r on r.k = 3000 / (o.id - 700)');
select * from pg_temp.compare_all('select o.id, r.id from o join r on r.k = o.k + (select 1 from pg_class where oid = 1259)');
-- a member that reads its index backward, of which one row is wanted
create table turned (k int, w int, p text);
insert into turned select i % 40, i, repeat('p', 100) from generate_series(1, 400) i;
create index on turned (k, w);
create table many (k int, v int) partition by list (k);
create table many_0 partition of many for values in (1000);
create table many_1 partition of many for values in (1001);
create index on many (k);
insert into many select 1000 + i % 2, i from generate_series(1, 2000) i;
analyze turned, many;
select * from pg_temp.compare_all('select o.id, u.v from o, lateral (select * from (select k, v from many union all (select k, w from turned t where t.k = o.k % 40 order by t.k desc, w desc limit 1)) z where z.k = o.k % 40) u');
-- which relations the statistics name
set pg_lookahead.force = on;
select count(*) from (select o.id, r.id from o join r on r.k = o.k offset 0) x;
select kind, relation, index, scans_activated, blocks_foreseen > 0 as foreseen from pg_lookahead_last_statement() where kind = 'nested loop';
reset pg_lookahead.force;
-- partitions beside a temporary table, whose buffers are others: it is left to the server, or they are
create temp table beside as select i * 4447 % 3011 as k, i % 12 as j, -i as id from generate_series(1, 3000) i;
create index on beside (k);
analyze beside;
select * from pg_temp.compare('select o.id, x.id from o, (select k, id from r union all select k, id from beside) x where x.k = o.k');
select * from pg_temp.compare('select o.id, x.id from o, (select k, id from beside union all select k, id from r) x where x.k = o.k');
-- a partition in a tablespace where one read at a time is enough: the lowest limit counts
set allow_in_place_tablespaces = on;
create tablespace regress_la_parts location '' with (effective_io_concurrency = 1);
set client_min_messages = warning;
alter table h3 set tablespace regress_la_parts;
reset client_min_messages;
select * from pg_temp.compare('select o.id, h.id from o join h on h.s = o.s');

\set ECHO none
set client_min_messages = warning;
drop schema la_parts cascade;
drop tablespace regress_la_parts;
