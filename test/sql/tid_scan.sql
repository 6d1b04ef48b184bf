--
-- tid_scan - rows by their addresses: lists of them, and one for each outer row.
--
-- The addresses are those of live, updated and deleted rows, of nothing, of no block, and NULL.
--
\set ECHO none
\getenv src PG_ABS_SRCDIR
\set helper :src '/sql/helper.inc'
\set schema la_tid
\i :helper
set max_parallel_workers_per_gather = 0;
set jit = off;
create table t (id int primary key, v int, w text);
insert into t select i, i, repeat('w', 300) from generate_series(1, 6000) i;
create table a (n int primary key, at tid);
insert into a select i, t.ctid from generate_series(1, 3000) i join t on t.id = i * 7919 % 6000 + 1;
insert into a values (4001, null), (4002, '(4294967294,1)'), (4003, '(0,0)'), (4004, '(100000,1)'), (4005, '(3,200)');
update t set v = -v where id % 10 = 3;
delete from t where id % 10 = 7;
vacuum analyze a;
analyze t;
create table p (id int, v int) partition by range (id);
create table p1 partition of p for values from (0) to (3000);
create table p2 partition of p for values from (3000) to (10000);
insert into p select id, v from t;
analyze p;
set enable_hashjoin = off;
set enable_mergejoin = off;
set enable_seqscan = off;

-- lists
select * from pg_temp.compare('select id, v from t where ctid = any (array(select at from a where n > 10))');
select * from pg_temp.compare('select id, v from t where ctid = any (array(select at from a)) and v > 0 and id % 50 = 1');
select * from pg_temp.compare('select id, v from t where ctid = any (array(select at from a)) limit 20');
select * from pg_temp.compare('select id, v / (id - 3000) from t where ctid = any (array(select at from a))');
select * from pg_temp.compare('select id, v from t where ctid = any (array(select at from a)) or ctid = ''(1,1)''');
select * from pg_temp.compare('select a.n, x.id from a, lateral (select id, v from t where ctid = any (array[a.at, a.at, ''(1,1)'', ''(2,2)'']) offset 0) x where a.n < 300');
select * from pg_temp.compare('select id from p where ctid = any (array(select at from a))');
select * from pg_temp.play('select id, v from t where ctid = any (array(select at from a))', 'n n n p p m100 n w50 n e p l f n');
-- as EXPLAIN says
set pg_lookahead.force = on;
select count(*) > 0 as blocks_shown from pg_lookahead_explain('select id, v from t where ctid = any (array(select at from a where n > 10))') l where l ~ 'Look-Ahead Blocks: foreseen=[1-9]';
reset pg_lookahead.force;
-- one for each row
explain (costs off) select a.n, t.v from a join t on t.ctid = a.at where a.n > 10;
select * from pg_temp.compare('select a.n, t.v from a join t on t.ctid = a.at where a.n > 10');
select * from pg_temp.compare('select a.n, t.v from a left join t on t.ctid = a.at and t.v > 0');
select * from pg_temp.compare('select a.n from a where exists (select from t where t.ctid = a.at and t.v > 0)');
select * from pg_temp.compare('select a.n, (select t.v from t where t.ctid = a.at) from a');
select * from pg_temp.compare('select a.n, x.id from a, lateral (select id from p where p.ctid = a.at offset 0) x where a.n > 10');
select * from pg_temp.compare('select a.n, (select t.v from t join a b on b.n = t.id where t.ctid = a.at) from a');
select * from pg_temp.compare('select a.n, t.v from a join t on t.ctid = a.at where a.n > 10 limit 30');
-- writes, whose rows are then compared
create function pg_temp.writes(statement text) returns text[] language plpgsql as $$
declare r text[];
begin
    begin
        execute statement;
        select array_agg(t::text order by id) into r from t;
        raise exception 'undone' using errcode = 'P0099';
    exception when sqlstate 'P0099' then
        return r;
    end;
end $$;
select * from pg_temp.differ(format('writes(%L)', 'delete from t where ctid = any (array(select at from a where n % 3 = 0))'));
select * from pg_temp.differ(format('writes(%L)', 'update t set v = 0 where ctid in (select at from a where n % 3 = 0 limit 500)'));
select * from pg_temp.differ(format('writes(%L)', 'with x as (delete from t where ctid = any (array(select at from a where n % 3 = 0)) returning id) update t set v = 0 where ctid in (select t.ctid from t join x on x.id + 1 = t.id)'));
select * from pg_temp.differ(format('writes(%L)', 'merge into t using a on t.ctid = a.at when matched and a.n % 2 = 0 then delete when matched then update set v = a.n'));
-- rows that a cursor is on, and rows that the statement itself has changed
begin;
set local pg_lookahead.force = on;
declare c cursor for select id from t where ctid = any (array(select at from a where n > 10)) for update;
move 20 in c;
update t set v = -1 where current of c returning id;
fetch 1 from c;
delete from t where current of c returning id;
rollback;
drop schema la_tid cascade;
