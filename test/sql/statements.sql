--
-- statements - pg_stat_lookahead_statements, pg_stat_lookahead_indexes, pg_lookahead_explain().
--
-- Figures depend on what the server has cached: only relations between them are shown.  Statements
-- that read catalogs appear as well, so only those that have looked ahead are shown.
--
set client_min_messages = warning;
create extension if not exists pg_lookahead;
reset client_min_messages;
create schema la_statements;
set search_path = la_statements, public;
set enable_seqscan = off;
set enable_bitmapscan = off;
set max_parallel_workers_per_gather = 0;
set compute_query_id = on;
set pg_lookahead.force = on;
create table t (id int, a int, w text);
insert into t select i, (i::bigint * 7919 % 10007)::int, repeat('w', 100) from generate_series(1, 10006) i;
create index t_a on t (a) with (fillfactor = 20);
create index t_id on t (id) with (fillfactor = 20);
vacuum analyze t;

select attname, format_type(atttypid, atttypmod) from pg_attribute
    where attrelid = 'pg_stat_lookahead_statements'::regclass order by attnum;
select attname, format_type(atttypid, atttypmod) from pg_attribute
    where attrelid = 'pg_stat_lookahead_indexes'::regclass order by attnum;
select attname, format_type(atttypid, atttypmod) from pg_attribute
    where attrelid = 'pg_stat_lookahead_info'::regclass order by attnum;

create table own as select oid as database from pg_database where datname = current_database();
create view active as
    select * from pg_stat_lookahead_statements
    where dbid = (select database from own) and (scans_activated > 0 or reasons <> '{}');

-- one entry for all executions of a statement, whatever its constants are
select clock_timestamp() as begun \gset
select pg_stat_lookahead_reset();
select count(w) from (select w from t where a between 1000 and 3000 order by a offset 0) s;
select count(w) from (select w from t where a between 2000 and 3000 order by a offset 0) s;
select userid::regrole = current_user::regrole as own, toplevel, queryid <> 0 as identified, executions,
    scans_activated, blocks_foreseen > 0 as foreseen,
    blocks_foreseen >= blocks_issued + blocks_cached + blocks_skipped_recent + blocks_skipped_sequential as accounted,
    blocks_issued >= blocks_on_time + blocks_late + blocks_wasted as outcome_known,
    blocks_late >= blocks_evicted as evicted_are_late, blocks_not_started >= 0 as not_started,
    entries_killed, leaf_pages_issued >= 0 as leaf_pages, blocks_read >= 0 as blocks_read,
    read_time >= 0 as read_time, wait_time >= 0 as wait_time, saved_time is not null as saved_time,
    saved_time_error >= 0 as saved_time_error, reasons,
    stats_since between :'begun' and clock_timestamp() as since
    from active;
select schemaname, relname, indexrelname, relid = 't'::regclass as table_is, indexrelid = 't_a'::regclass as index_is,
    scans_activated, blocks_foreseen > 0 as foreseen, saved_time is not null as saved_time
    from pg_stat_lookahead_indexes where schemaname = 'la_statements';
select statements between 1 and statements_max as statements, statements_dealloc,
    indexes between 1 and indexes_max as indexes, indexes_dealloc,
    stats_reset between :'begun' and clock_timestamp() as just_reset
    from pg_stat_lookahead_info;

-- sent by a client, or executed by a function, a trigger or a utility statement: what is done in a
-- statement counts for the ones around it, too
create function f() returns bigint language plpgsql as $$
begin
    return (select count(w) from (select w from t where a between 100 and 300 order by a offset 0) s);
end $$;
prepare p as select count(w) from (select w from t where a between 400 and 500 order by a offset 0) s;
select pg_stat_lookahead_reset();
select f();
select toplevel, executions, scans_activated from active order by toplevel;
select pg_stat_lookahead_reset();
execute p;
select toplevel, executions, scans_activated from active;

-- each kind of statement in which others are executed, or which looks ahead by itself
create table target (a int primary key, w text);
create table referring (a int references target on delete cascade on update cascade);
create index on referring (a);
create materialized view seen as select w from t where a between 600 and 700 order by a;
create procedure p() language plpgsql as $$
begin
    perform f();
    commit;
    perform f();
end $$;
create function looped() returns int language plpgsql as $$
declare r record; n int = 0;
begin
    for r in select w from t where a between 100 and 300 order by a loop
        n = n + 1;
    end loop;
    return n;
end $$;
create function in_sql() returns bigint language sql volatile as 'select f() + f()';
create function fired() returns trigger language plpgsql as 'begin perform f(); return null; end';
create table triggered (a int);
create trigger fired after insert on triggered for each statement execute function fired();
create table long_values (a int, w text);
alter table long_values alter w set storage external;
insert into long_values select i, repeat('l', 5000) from generate_series(1, 200) i;
set pg_lookahead.enable_toast = on;
\set ahead 'select toplevel, executions, scans_activated > 0 as looked_ahead from active where toplevel'
\o /dev/null
select pg_stat_lookahead_reset();
copy (select w from t where a between 600 and 700 order by a) to '/dev/null';
\o
:ahead;
\o /dev/null
select pg_stat_lookahead_reset();
copy long_values to '/dev/null';
\o
:ahead;
\o /dev/null
select pg_stat_lookahead_reset();
create table copied as select w from t where a between 600 and 700 order by a;
\o
:ahead;
\o /dev/null
select pg_stat_lookahead_reset();
create table copied_by_execute as execute p;
\o
:ahead;
\o /dev/null
select pg_stat_lookahead_reset();
refresh materialized view seen;
\o
:ahead;
\o /dev/null
select pg_stat_lookahead_reset();
explain (analyze, costs off) select w from t where a between 600 and 700 order by a;
\o
:ahead;
\o /dev/null
select pg_stat_lookahead_reset();
do 'begin perform f(); end';
\o
:ahead;
\o /dev/null
select pg_stat_lookahead_reset();
call p();
\o
:ahead;
\o /dev/null
select pg_stat_lookahead_reset();
select looped();
\o
:ahead;
\o /dev/null
select pg_stat_lookahead_reset();
select in_sql();
\o
:ahead;
\o /dev/null
select pg_stat_lookahead_reset();
insert into triggered values (1);
\o
:ahead;
\o /dev/null
select pg_stat_lookahead_reset();
alter table long_values alter a type bigint;
\o
:ahead;
\o /dev/null
select pg_stat_lookahead_reset();
vacuum full long_values;
\o
:ahead;
insert into target select i, 'w' from generate_series(1, 3000) i;
insert into referring select i from generate_series(1, 3000) i;
\o /dev/null
select pg_stat_lookahead_reset();
delete from target where a < 1000;
\o
:ahead;
-- what is not seen in the statement is not told of it
\o /dev/null
select pg_stat_lookahead_reset();
begin;
declare c cursor for select w from t where a > 3000 order by a;
move 20 from c;
create index on copied (w);
close c;
commit;
\o
:ahead;
-- an error within: those around that have ended by it have their figures, the next has its own
\o /dev/null
select pg_stat_lookahead_reset();
do $$ begin
    begin perform f(), 1 / (select 0 from f()); exception when division_by_zero then null; end;
end $$;
select count(*) from copied;
\o
select toplevel, executions, scans_activated > 0 as looked_ahead from active order by toplevel, executions;
set pg_lookahead.enable_toast = off;

-- the depth is right again after errors, caught or not
create function caught() returns text language plpgsql as $$
begin
    perform 1 / (a - 4000) from t where a > 3990 order by a;
exception when division_by_zero then
    return 'caught';
end $$;
select pg_stat_lookahead_reset();
select caught();
select toplevel, executions, scans_activated from active order by toplevel;
select pg_stat_lookahead_reset();
select w, 1 / (a - 4000) from t where a > 3990 order by a offset 2000;
select count(w) from (select w from t where a between 1000 and 3000 order by a offset 0) s;
select toplevel, executions, scans_activated from active;

-- why a join was not allowed to look ahead
create function changing(int) returns int language sql volatile as 'select $1 + random()::int * 0';
select pg_stat_lookahead_reset();
set enable_hashjoin = off;
set enable_mergejoin = off;
set enable_memoize = off;
select count(y.w) from (select id, a from t where id < 20 and changing(a) >= 0) x join t y on y.id = x.a;
select reasons from active where reasons <> '{}';
reset enable_hashjoin;
reset enable_mergejoin;
reset enable_memoize;

-- with look-ahead off, or without an identifier, nothing is kept
select pg_stat_lookahead_reset();
set pg_lookahead.enable = off;
select count(w) from (select w from t where a between 1000 and 3000 order by a offset 0) s;
reset pg_lookahead.enable;
set compute_query_id = off;
select count(w) from (select w from t where a between 1000 and 3000 order by a offset 0) s;
set compute_query_id = on;
select count(*) from active;
-- but for the index
select indexrelname, scans_activated from pg_stat_lookahead_indexes where schemaname = 'la_statements';

-- a reset of some
select pg_stat_lookahead_reset();
select count(w) from (select w from t where a between 1000 and 3000 order by a offset 0) s;
select pg_stat_lookahead_statements_reset(1, 0, 0);
select pg_stat_lookahead_statements_reset(queryid => 4711);
select count(*) from active;
select pg_stat_lookahead_statements_reset(userid, dbid, queryid) from active;
select count(*) from active;

-- those of others: who may see what
create role la_statements_user;
grant usage on schema la_statements to la_statements_user;
grant select on t, active to la_statements_user;
select count(w) from (select w from t where a between 1000 and 3000 order by a offset 0) s;
set role la_statements_user;
select count(w) from (select w from t where a between 100 and 110 order by a offset 0) s;
select userid::regrole = current_user::regrole as own, toplevel is null as toplevel_hidden, queryid is null as queryid_hidden, executions
    from active order by 1;
select pg_stat_lookahead_statements_reset();
reset role;
grant pg_read_all_stats to la_statements_user;
set role la_statements_user;
select count(*), count(queryid) from active;
reset role;

-- a plan with our lines
create table lines as
    select * from pg_lookahead_explain('select w from t where a between 1000 and 3000 order by a') as l;
select count(*) > 0 as plan from lines where l like '%Index Scan using t_a on t%';
select count(*) as distance from lines where l like '%Prefetch: avg=%max=%capacity=%';
select count(*) as blocks from lines where l like '%Look-Ahead Blocks: foreseen=%';
select count(*) as execution from lines where l like 'Execution Time:%';
select * from pg_lookahead_explain('select 1; select 2');
select * from pg_lookahead_explain('');
select * from pg_lookahead_explain('vacuum t');
select count(*) > 0 as written from pg_lookahead_explain('insert into copied select ''x''') as l;
select count(*) from copied where w = 'x';

set client_min_messages = warning;
drop owned by la_statements_user;
drop role la_statements_user;
drop schema la_statements cascade;
