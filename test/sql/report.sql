--
-- report - pg_lookahead_report(), pg_lookahead_report_json() and what they are made of.
--
-- What the report says follows from views whose figures depend on the machine.  So most of this
-- runs in transactions in which the views show rows of tables instead; the last part is of real
-- statements.
--
set client_min_messages = warning;
create extension if not exists pg_lookahead;
reset client_min_messages;
create schema la_report;
set search_path = la_report, public;

select proname, pg_get_function_result(oid) as result, provolatile, proparallel, prosecdef,
    coalesce(array_to_string(proconfig, ', '), case when prosqlbody is not null then 'bound when made' end) as names
    from pg_proc where proname ~ '^pg_lookahead_(report|findings|reasons|library)' order by proname;
select count(*) > 35 as reasons, count(*) = count(distinct reason) as once, bool_and(meaning <> '' and advice <> '') as explained
    from pg_lookahead_reasons();
select built_for = server as same, server = split_part(current_setting('server_version'), ' ', 1) as this_one, disabled from pg_lookahead_library();

-- ---- made-up figures -------------------------------------------------------------------

create table kinds as select * from pg_stat_lookahead limit 0;
create table statements as select * from pg_stat_lookahead_statements limit 0;
create table indexes as select * from pg_stat_lookahead_indexes limit 0;
create table info as select * from pg_stat_lookahead_info limit 0;
create table builds as select * from pg_stat_lookahead_index_build limit 0;
create table texts (userid oid, dbid oid, toplevel bool, queryid bigint, query text, calls bigint, blk_read_time float8, temp_blks_written bigint);

-- the views, from here to the end of the transaction
create procedure made_up() language plpgsql as $$
declare r record;
begin
    for r in values ('pg_stat_lookahead', 'kinds'), ('pg_stat_lookahead_statements', 'statements'),
        ('pg_stat_lookahead_indexes', 'indexes'), ('pg_stat_lookahead_info', 'info'), ('pg_stat_lookahead_index_build', 'builds')
    loop
        execute format('create or replace view %s.%I as select * from la_report.%I',
                       (select extnamespace::regnamespace from pg_extension where extname = 'pg_lookahead'), r.column1, r.column2);
    end loop;
    if to_regclass('pg_lookahead_calibration') is not null then
        execute 'delete from pg_lookahead_calibration';
    end if;
end $$;

-- without what depends on the server's version, on its extensions and on time
create view found as
    select code, section, severity, finding,
        replace(advice, format(' TO %I;', current_user), ' TO postgres;') as advice, -- whoever runs the tests
        case when section in ('statements', 'indexes', 'disk') or code = 'settings.max_distance' then gain_ms end as gain_ms
    from pg_lookahead_findings()
    where code not in ('settings.effective_io_concurrency', 'settings.pg_stat_statements', 'disk.not_calibrated', 'disk.latency');

set track_io_timing = on;
set compute_query_id = on;
\pset format unaligned
\pset tuples_only on

-- an empty server
begin;
insert into kinds (kind, scans_attached, scans_activated, blocks_issued, blocks_on_time, blocks_late, blocks_wasted, wait_time, saved_time, saved_time_error, stats_reset)
    values ('index scan', 0, 0, 0, 0, 0, 0, 0, 0, 0, '2026-01-01');
insert into info values (0, 5000, 0, 0, 2000, 0, '2026-01-01');
call made_up();
select * from found;
select j->'version', j->>'database' = current_database(), j->>'extension' = (select extversion from pg_extension where extname = 'pg_lookahead'),
    (select array_agg(k order by k) from jsonb_object_keys(j) k),
    (select array_agg(distinct k order by k) from jsonb_array_elements(j->'findings') f, jsonb_object_keys(f) k)
    from pg_lookahead_report_json() j;
rollback;

-- settings
begin;
insert into kinds (kind, scans_attached, scans_activated, blocks_issued, blocks_on_time, blocks_late, blocks_wasted, wait_time, saved_time, saved_time_error, stats_reset)
    values ('index scan', 1, 0, 0, 0, 0, 0, 0, 0, 0, '2026-01-01');
insert into info values (0, 5000, 0, 1900, 2000, 77, '2026-01-01');
call made_up();
select * from found;
set local pg_lookahead.enable = off;
set local pg_lookahead.enable_nestloop = off;
set local pg_lookahead.force = on;
set local pg_lookahead.backend_memory = 0;
set local pg_lookahead.excluded_access_methods = 'hash, gist';
set local track_io_timing = off;
set local compute_query_id = auto;
set local default_transaction_isolation = serializable;
create role regress_la_off;
alter role regress_la_off set pg_lookahead.enable = off;
create access method la_gist type index handler gisthandler;
create operator class la_box_ops default for type box using la_gist as operator 3 &&,
    function 1 gist_box_consistent(internal, box, smallint, oid, internal), function 2 gist_box_union(internal, internal),
    function 5 gist_box_penalty(internal, internal, internal), function 6 gist_box_picksplit(internal, internal),
    function 7 gist_box_same(box, box, internal);
create table boxes (b box);
create index boxes_odd on boxes using la_gist (b);
select * from found order by code, finding;
set local compute_query_id = off;
select * from found where code = 'settings.compute_query_id';
-- for psql: the same, most important first
select section, severity, left(finding, 40) from pg_lookahead_report()
    where finding !~ 'effective_io_concurrency|pg_stat_statements|has not been measured';
rollback;

-- statements, indexes, builds and the disk
begin;
insert into kinds (kind, scans_attached, scans_activated, blocks_issued, blocks_on_time, blocks_late, blocks_wasted, wait_time, saved_time, saved_time_error, stats_reset)
    values ('index scan', 9000, 4000, 100000, 60000, 30000, 10000, 12000, 50000, 4000, '2026-01-01'),
           ('nested loop', 100, 10, 1000, 1000, 0, 0, 345.6, 100, 10, '2026-01-01');
insert into info values (8, 5000, 0, 3, 2000, 0, '2026-01-01');
create function add_statement(queryid bigint, waited float8, activated int, issued int, late int, wasted int, saved float8, reasons text[]) returns void
language sql as $$
insert into statements (userid, dbid, toplevel, queryid, executions, scans_activated, blocks_issued, blocks_on_time, blocks_late, blocks_wasted,
        blocks_read, read_time, wait_time, saved_time, saved_time_error, reasons)
    values (10, 5, true, queryid, 10, activated, issued, issued - late - wasted, late, wasted,
            case when queryid = 7 then 20 else 5000 end, waited * 2, waited, saved, 5, reasons)
$$;
select add_statement(1, 9000, 0, 0, 0, 0, 0, '{a function is volatile,"a function may raise a notice"}'),
    add_statement(2, 8000, 0, 0, 0, 0, 0, '{}'),
    add_statement(3, 7000, 10, 10000, 4000, 0, 100, '{}'),
    add_statement(4, 6000, 10, 10000, 0, 9000, 100, '{}'),
    add_statement(5, 5000, 10, 10000, 10, 10, 20000, '{}'),
    add_statement(6, 4000, 0, 0, 0, 0, 0, '{}'),
    add_statement(7, 3000, 0, 0, 0, 0, 0, '{}'),
    add_statement(9, 15, 0, 0, 0, 0, 0, '{a function is volatile}'),
    add_statement(8, 0.5, 0, 0, 0, 0, -70, '{a function is volatile}'),
    add_statement(null, 99, 0, 0, 0, 0, 0, '{}');
insert into indexes (relid, schemaname, relname, indexrelid, indexrelname, blocks_issued, blocks_late, blocks_wasted, wait_time, saved_time, saved_time_error)
    values (1, 'public', 'orders', 2, 'orders_customer', 90000, 900, 100, 800, 40000, 2000),
           (1, 'public', 'orders', null, null, 90000, 900, 0, 700, 500, 20),
           (1, 'public', 'orders', 3, 'Orders Date', 5000, 0, 4000, 10, 20, 30);
insert into builds (status, builds, index_entries, reason) values ('built', 4, 1000, null),
    ('left to the server', 3, 30000, 'too many different values');
call made_up();
select * from found order by code, gain_ms desc, finding;

-- the same with pg_stat_statements, or what has its name
insert into texts values (10, 5, true, 1, 'select f(x) from a   join b using (id)', 10, 18000, 0),
    (10, 5, true, 2, E'select count(*)\n    from a join b using (id)', 10, 16000, 128000),
    (10, 5, false, 3, 'not at top level', 10, 16000, 128000),
    (10, 5, true, 3, 'select ' || repeat('x', 200), 10, 16000, 0),
    (10, 5, true, 99, 'select count(*) from a', 10, 1234, 0);
insert into texts select 10, 5, true, 200 + n, q, 10, 100000 - n, 0 from unnest(array[
    'copy (select * from a) to stdout', 'create table copied (a int, b int generated always as (a) stored)', 'create table c as select * from a',
    '/* c */ -- d' || E'\n' || ' with x as (select 1) table x', 'refresh materialized view m', 'declare c cursor for select 1', 'fetch 10 from c',
    'move c', 'create index on a (b)', 'vacuum full a', 'call p()', 'do $$ begin end $$', 'explain analyze select 1', 'prepare x as select 1',
    'create materialized view m as select 1', 'alter table a alter b type int', 'set constraints all immediate', '(values (1))',
    'create function f() returns int return (select 1)', 'copy a from stdin', 'cluster a', 'merge into a using b on true when matched then delete',
    'create rule r as on insert to a do select 1', 'create view v as select 1', 'create temp table c2 as select 1', 'analyze']) with ordinality q (q, n);
create view pg_stat_statements as select * from texts;
set local allow_system_table_mods = on;
insert into pg_extension select 4294967290, 'pg_stat_statements', extowner, 'la_report'::regnamespace, false, '0', null, null
    from pg_extension where extname = 'pg_lookahead';
select code, finding, advice from found where code like 'statement.%' and code not in ('statement.ahead', 'statement.short', 'statement.unseen') order by code, finding;
-- of what nothing is known, one by one: EXPLAIN is advised where it shows a plan
do $$
declare r record; f record;
begin
    for r in select * from la_report.texts where queryid > 200 or queryid = 99 order by queryid loop
        update la_report.texts set calls = 11, blk_read_time = blk_read_time + 1e9 where queryid = r.queryid;
        select finding, advice into f from pg_lookahead_findings() where code = 'statement.unseen' and finding ~ 'executions: 11';
        raise notice '% | %', substring(f.finding from 'executions: 11\); (.*)'), f.advice;
        update la_report.texts set calls = 10, blk_read_time = r.blk_read_time where queryid = r.queryid;
    end loop;
end $$;
-- the same of what has read, and has not looked ahead, or has spilled
insert into statements (userid, dbid, toplevel, queryid, executions, scans_activated, blocks_issued, blocks_on_time, blocks_late, blocks_wasted, blocks_read, read_time, wait_time, saved_time, saved_time_error, reasons)
    select 10, 5, true, queryid, 10, 0, 0, 0, 0, 0, 5000, 90000 - queryid, 90000, 0, 0, '{}' from texts where queryid in (201, 204, 220);
update texts set temp_blks_written = 128000 where queryid = 201;
select code, finding, advice from found where code ~ '^statement.(not_begun|spilled)' and finding ~ 'copy|table x' order by code, finding;
select f->>'code', f->'gain_ms', f#>'{figures,queryid}', f#>'{figures,executions}'
    from pg_lookahead_report_json() j, jsonb_array_elements(j->'findings') f where f->>'code' = 'statement.refused';

-- far enough ahead, and late all the same
set local pg_lookahead.max_distance = 512;
select * from found where code in ('disk.limit', 'settings.max_distance');

-- a storage that was measured: it decides what is far enough
set local pg_lookahead.max_distance = 16;
do $$
declare name text; ns text := (select extnamespace::regnamespace from pg_extension where extname = 'pg_lookahead');
begin
    foreach name in array '{pg_lookahead_storage,pg_lookahead_recommendations}'::text[] loop
        if to_regclass(ns || '.' || name) is not null then
            execute format('alter extension pg_lookahead drop view %s.%I', ns, name);
            execute format('alter view %s.%I rename to %I', ns, name, name || '_real');
        end if;
    end loop;
    execute format('create view %s.pg_lookahead_storage as values (23.4::float8), (9) limit 2', ns);
    execute format('alter view %s.pg_lookahead_storage rename column column1 to knee', ns);
    execute format('create view %s.pg_lookahead_recommendations (tablespace_name, setting, look_ahead, current, recommended, command, reason) as values
        (''fast''::name, ''pg_lookahead.max_distance'', null::bool, current_setting(''pg_lookahead.max_distance''), ''32'', ''ALTER SYSTEM SET pg_lookahead.max_distance = 32'', ''Why.''),
        (''fast'', ''effective_io_concurrency'', null, ''32'', ''32'', ''unneeded'', ''''),
        (''fast'', ''random_page_cost'', false, ''4'', ''4.0'', ''unneeded'', ''''),
        (''fast'', ''random_page_cost'', true, ''4'', ''1.2'', ''unneeded'', ''''),
        (''in between'', ''random_page_cost'', false, ''3'', ''20.0'', ''unneeded'', ''''),
        (''in between'', ''random_page_cost'', true, ''3'', ''1.2'', ''unneeded'', ''''),
        (''above'', ''random_page_cost'', false, ''40'', ''20.0'', ''needed'', ''''),
        (''above'', ''random_page_cost'', true, ''40'', ''1.2'', ''needed'', ''''),
        (''slow disk'', ''random_page_cost'', true, null, ''2.5'', ''ALTER TABLESPACE "slow disk" SET (random_page_cost = 2.5)'', ''Why.'')', ns);
end $$;
select * from found where code in ('disk.limit', 'settings.max_distance', 'disk.recommended') order by code, finding;
set local pg_lookahead.max_distance = 32;
select * from found where code in ('disk.limit', 'settings.max_distance', 'disk.recommended') order by code, finding;
rollback;
-- foreign tables, of what has the name of postgres_fdw
begin;
insert into kinds (kind, scans_attached, scans_activated, stats_reset) values ('index scan', 1, 0, '2026-01-01');
insert into info values (1, 5000, 0, 3, 2000, 0, '2026-01-01');
call made_up();
create foreign data wrapper la_postgres no validator;
create foreign data wrapper la_other no validator;
set local allow_system_table_mods = on;
insert into pg_extension select 4294967291, 'postgres_fdw', extowner, 'la_report'::regnamespace, false, '0', null, null
    from pg_extension where extname = 'pg_lookahead';
insert into pg_depend select 'pg_foreign_data_wrapper'::regclass, oid, 0, 'pg_extension'::regclass, 4294967291, 0, 'e'
    from pg_foreign_data_wrapper where fdwname = 'la_postgres';
create server one foreign data wrapper la_postgres;
create server "Two 2" foreign data wrapper la_postgres options (fetch_size '200', async_capable 'off');
create server three foreign data wrapper la_other;
create table parts (k int, v text) partition by hash (k);
create foreign table parts0 partition of parts for values with (modulus 3, remainder 0) server one;
create foreign table "Parts 1" partition of parts for values with (modulus 3, remainder 1) server "Two 2";
create foreign table parts2 partition of parts for values with (modulus 3, remainder 2) server three;
create foreign table alone (k int) server one options (fetch_size '5000', batch_size '50');
create foreign table wide (k int, v text) server one options (updatable 'false');
create foreign table others (k int) server three;
-- nothing is known of their size
select * from found where code like 'foreign.%' order by code, finding;
update pg_class set reltuples = 1000000, relpages = 12500 where relname in ('parts0', 'alone', 'others');
update pg_class set reltuples = 9999, relpages = 100 where relname = 'Parts 1';
update pg_class set reltuples = 20000, relpages = 20000 where relname = 'wide';
select * from found where code like 'foreign.%' order by code, finding;
update pg_class set reltuples = 300000, relpages = 12500 where relname = 'Parts 1';
select * from found where code = 'foreign.fetch_size' order by finding;
-- statements: inserts, and what others fetch from here
create table counted (dbid oid, query text, calls bigint, rows bigint);
create view pg_stat_statements as select 10::oid as userid, dbid, true as toplevel, 1::bigint as queryid, query, calls, 0::float8 as blk_read_time, 0::bigint as temp_blks_written, rows from counted;
insert into pg_extension select 4294967290, 'pg_stat_statements', extowner, 'la_report'::regnamespace, false, '0', null, null
    from pg_extension where extname = 'pg_lookahead';
insert into counted select oid, 'FETCH 100 FROM c' || n, 2000, 199000 from pg_database, generate_series(1, 2) n where datname = current_database();
insert into counted select oid, 'INSERT INTO la_report.parts (k) SELECT * FROM x', 2, 5000 from pg_database where datname = current_database();
insert into counted select oid, 'insert into "Parts 1" select * from x', 1, 1234567 from pg_database where datname = current_database();
insert into counted select oid, q, 1, 9999999 from pg_database, unnest(array['copy parts0 to stdout', 'insert into parts0x select 1', 'insert into x select from parts0',
    'insert into alone select 1', 'insert into wide select 1', 'insert into others select 1']) q where datname = current_database();
insert into counted values (1, 'insert into parts0 select 1', 1, 88888888);
select * from found where code in ('foreign.batch_size', 'foreign.fetched') order by code, finding;
create function la_report.noted() returns trigger language plpgsql as 'begin return new; end';
create trigger noted before insert on "Parts 1" for each row execute function la_report.noted();
select finding from found where code = 'foreign.batch_size' order by code, finding;
-- what is advised helps
do $$
declare r record; command text;
begin
    for r in select advice from pg_lookahead_findings() where code in ('foreign.fetch_size', 'foreign.async_capable', 'foreign.batch_size') loop
        for command in select m[1] from regexp_matches(r.advice, '(ALTER SERVER [^;]*);', 'g') m loop
            execute command;
        end loop;
    end loop;
end $$;
select srvname, srvoptions from pg_foreign_server where srvname in ('one', 'Two 2', 'three') order by 1;
select * from found where code like 'foreign.%' and code <> 'foreign.fetched' order by code, finding;
set local enable_async_append = off;
select * from found where code like 'foreign.async%' order by code, finding;
rollback;
\pset tuples_only off
\pset format aligned

-- ---- real ones -----------------------------------------------------------------------------

create table o as select i as id from generate_series(1, 500) i;
create table t as select i as id, repeat('w', 50) as w from generate_series(1, 5000) i;
create index t_id on t (id);
vacuum analyze o, t;
create function unsteady(i int) returns int language plpgsql volatile as 'begin return i; end';
set enable_hashjoin = off;
set enable_mergejoin = off;
set enable_memoize = off;
set enable_seqscan = off;
set max_parallel_workers_per_gather = 0;
set pg_lookahead.force = on;
select pg_stat_lookahead_reset();
select count(t.w) from (select unsteady(id) as id from o offset 0) o join t on t.id = o.id;
select count(w) from (select w from t where id between 100 and 400 order by id offset 0) s;
reset pg_lookahead.force;
select figures->>'reason' as reason, severity in ('note', 'change') as severity, advice
    from pg_lookahead_findings() where code = 'reason' and figures->>'reason' ~ 'C, or' order by 1;
select count(*) as summaries, min(finding) ~ '^Look-ahead has begun [1-9]' as has_begun from pg_lookahead_findings() where code = 'server.summary';
select count(*) as not_seen from pg_lookahead_findings() where code = 'server.nothing_seen';

-- ordinary users see what is theirs, and that there is more
create role regress_la_reader;
grant usage on schema la_report to regress_la_reader;
set role regress_la_reader;
select count(*) > 0 as may_call from pg_lookahead_report();
select advice from pg_lookahead_findings() where code = 'statement.hidden';
select count(*) as reasons_of_others from pg_lookahead_findings() where code = 'reason';
select jsonb_array_length(pg_lookahead_report_json()->'findings') > 0 as may_call;
reset role;
-- some of it taken away: what is left is reported
begin;
revoke select on pg_stat_lookahead_indexes from public;
set local role regress_la_reader;
select finding, advice from pg_lookahead_findings() where code = 'server.no_privilege';
select count(*) as summaries from pg_lookahead_findings() where code = 'server.summary';
rollback;
revoke usage on schema la_report from regress_la_reader;
drop role regress_la_reader;

-- names of others that would be found first are not
create function la_report.to_char(double precision, text) returns text language sql as $$ select 'taken' $$;
create function la_report.array_position(text[], text) returns int language sql as $$ select 1 / 0 $$;
create function la_report.concat_ws(text, text, text) returns text language sql as $$ select 'taken' $$;
create view la_report.pg_extension as select * from pg_catalog.pg_extension limit 0;
set search_path = la_report, public, pg_catalog;
select count(*) > 0 as works, count(*) filter (where r::text ~ 'taken') as taken from pg_lookahead_report() r;
set search_path = la_report, public;

-- the extension may move
create schema "la Moved";
alter extension pg_lookahead set schema "la Moved";
select count(*) > 0 as works from "la Moved".pg_lookahead_report();
alter extension pg_lookahead set schema public;

set client_min_messages = warning;
drop schema la_report cascade;
drop schema "la Moved";
