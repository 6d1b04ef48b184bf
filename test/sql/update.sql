--
-- update - a database at 0.1.0 works with this library, and is updated to what a new one gets.
--
set client_min_messages = warning;
drop extension if exists pg_lookahead cascade;
create schema la_update;
set search_path = la_update, public;
create table t (a int, w text);
insert into t select i * 7919 % 10007, repeat('w', 100) from generate_series(1, 10006) i;
create index t_a on t (a);
vacuum analyze t;
reset client_min_messages;
set enable_seqscan = off;
set enable_bitmapscan = off;
set pg_lookahead.force = on;

-- what belongs to the extension: functions with their results, views, who may use them
create view objects as
    select pg_describe_object(classid, objid, objsubid) as object,
        (select format('%s %s %s %s %s %s', pg_get_function_result(oid), prosrc, provolatile, proparallel, proisstrict, proacl)
            from pg_proc where oid = objid and classid = 'pg_proc'::regclass) as function,
        (select format('%s %s', relacl, pg_get_viewdef(oid)) from pg_class where oid = objid and classid = 'pg_class'::regclass) as view
    from pg_depend
    where refclassid = 'pg_extension'::regclass and deptype = 'e' and classid in ('pg_proc'::regclass, 'pg_class'::regclass)
        and refobjid = (select oid from pg_extension where extname = 'pg_lookahead');

create extension pg_lookahead version '0.1.0';
select extversion from pg_extension where extname = 'pg_lookahead';
select count(w) from (select w from t where a > 5000 order by a offset 0) s;
select relation, index, scans_armed, capacity from pg_lookahead_last_statement();
select * from pg_lookahead_last_statement() limit 0;
select count(*) from pg_stat_lookahead;
select count(*) from pg_stat_lookahead_index_build;
select pg_stat_lookahead_reset();

alter extension pg_lookahead update;
select extversion from pg_extension where extname = 'pg_lookahead';
select count(w) from (select w from t where a > 5000 order by a offset 0) s;
select relation, index, scans_armed, capacity, reason from pg_lookahead_last_statement();
select * from pg_lookahead_last_statement() limit 0;
create table updated as select * from objects;

drop extension pg_lookahead;
create extension pg_lookahead;
select extversion = (select default_version from pg_available_extensions where name = 'pg_lookahead') as newest
    from pg_extension where extname = 'pg_lookahead';
select * from updated except select * from objects;
select * from objects except select * from updated;
select count(*) as objects, count(distinct object) as described from objects;

set client_min_messages = warning;
drop schema la_update cascade;
