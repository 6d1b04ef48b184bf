--
-- calibrate - storage is measured, whatever it is: only what holds on every one is printed.
--
-- Times, files, restarts and what can go wrong: t/024_calibrate.pl.
--
set client_min_messages = warning;
create extension if not exists pg_lookahead;
create schema la_calibrate;
set search_path = la_calibrate, public;
-- a test machine may be busy, which is a warning
set client_min_messages = error;

-- nothing has been measured, or is recommended
select pg_lookahead_calibration_reset();
select count(*) from pg_lookahead_storage;
select count(*) from pg_lookahead_recommendations;
select calibrated from pg_lookahead_storage_in_use();

-- the rows that are returned are those in the table
create table measured as select * from pg_lookahead_calibrate();
select count(*) = 0 as same from (table measured except all table pg_lookahead_calibration) d;
select count(*) = (select count(*) from measured) as same from pg_lookahead_calibration;
select distinct t.spcname, measured_at between now() - interval '1 hour' and clock_timestamp() as just_now
    from pg_lookahead_calibration c join pg_tablespace t on t.oid = c.tablespace and t.spcname = c.tablespace_name;
select pattern, array_agg(depth order by depth) as depths from measured where pattern = 'random' group by 1;
select pattern, depth, array_agg(request_blocks order by request_blocks) as blocks
    from measured where pattern = 'sequential' and depth <= 4 or pattern = 'neighbours' and depth = 1 group by 1, 2 order by 1 desc, 2;
-- more in order are what the kernel reads ahead, if that is more
select count(*) <= 1 as more from measured where pattern = 'sequential' and depth not in (2, 4);
select count(*) as wrong from measured
    where not (iops > 0 and abs(blocks_per_s - iops * request_blocks) < 0.001 * blocks_per_s and latency_avg > 0
        and latency_p50 > 0 and latency_p99 >= latency_p50 and busy is not null);

-- what follows: neighbours are measured at the first depth behind the knee
select tablespace_name, knee between 1 and 256 as knee, best_iops >= single_iops as best, law_distance > 0 as law,
    random_us > 0 as random, random_at_knee_us between 0 and random_us * 1.12 as at_knee, sequential_us > 0 as sequential,
    extra_block_us >= 0 as extra
    from pg_lookahead_storage;
select (select max(depth) from measured where pattern = 'neighbours') = 2 ^ ceil(log(2, knee::numeric) - 0.000001) as at_knee
    from pg_lookahead_storage;
select setting, look_ahead, current = current_setting(setting) as current, recommended::numeric > 0 as positive, replace(command, recommended, 'N') as command, reason > '' as reason
    from pg_lookahead_recommendations;
select recommended::int in (8, 16, 32, 64, 128, 256) as power from pg_lookahead_recommendations where setting like '%distance';

-- the same figures are what look-ahead goes by
select calibrated, array_length(u.random_us, 1) as depths,
    (select bool_and(abs(us - 1e6 / iops) < 0.001 * us) from unnest(u.random_us) with ordinality r(us, i) join measured on depth = 2 ^ (i - 1)
        where pattern = 'random') as random,
    abs(u.sequential_us - s.sequential_us) < 0.001 * s.sequential_us as sequential,
    abs(u.extra_block_us - s.extra_block_us) <= 0.001 * s.extra_block_us + 0.001 as extra, u.tuple_us = s.tuple_us as tuple
    from pg_lookahead_storage_in_use() u, pg_lookahead_storage s;
-- what the processor takes for a tuple
select pattern, depth, request_blocks, tuple_us > 0.001 and tuple_us < 100 as tuple from measured where tuple_us is not null;
select pg_lookahead_storage_in_use() = pg_lookahead_storage_in_use(t.oid) as of_the_database
    from pg_tablespace t join pg_database d on d.dattablespace = t.oid where datname = current_database();
-- what is shared by all databases lies beside pg_default
select (pg_lookahead_storage_in_use(oid)).calibrated from pg_tablespace where spcname = 'pg_global';
select calibrated, random_us[1] >= random_us[9] as not_more from pg_lookahead_storage_in_use(1);

-- options of a tablespace are what is current there
alter tablespace pg_default set (random_page_cost = 7.5, effective_io_concurrency = 3);
select setting, look_ahead, current from pg_lookahead_recommendations where setting in ('random_page_cost', 'effective_io_concurrency');
alter tablespace pg_default reset (random_page_cost, effective_io_concurrency);

-- what cannot be measured
\set VERBOSITY terse
select * from pg_lookahead_calibrate('no_such_tablespace');
select * from pg_lookahead_calibrate('pg_global');
select * from pg_lookahead_measure_storage(1);
begin transaction read only;
select * from pg_lookahead_calibrate();
rollback;

-- privileges: whoever is granted one function needs no other privilege
create role regress_la_measurer;
grant usage on schema la_calibrate to regress_la_measurer;
set role regress_la_measurer;
select * from pg_lookahead_calibrate();
select * from pg_lookahead_measure_storage(0);
select pg_lookahead_claim_tablespace('pg_default');
select pg_lookahead_forget_storage();
select pg_lookahead_calibration_reset();
delete from pg_lookahead_calibration;
select count(*) from pg_lookahead_storage;
select count(*) from pg_lookahead_recommendations;
select calibrated from pg_lookahead_storage_in_use();
reset role;
grant execute on function pg_lookahead_calibrate(name) to regress_la_measurer;

-- the extension in another schema, and others' functions first in search_path; older rows are
-- replaced, those of tablespaces that are gone as well
insert into pg_lookahead_calibration select 1, 'gone', now(), 'random', 1, 1, 1, 1, 1, 1, 1, false;
select count(*) from pg_lookahead_storage;
create schema la_calibrate_other;
alter extension pg_lookahead set schema la_calibrate_other;
create function la_calibrate.clock_timestamp() returns timestamptz language sql as 'select null::timestamptz';
create view la_calibrate.pg_lookahead_calibration as select 1 as x;
grant usage on schema la_calibrate_other to regress_la_measurer;
set search_path = la_calibrate, pg_catalog;
set role regress_la_measurer;
select count(*) >= 15 as rows from la_calibrate_other.pg_lookahead_calibrate('pg_default');
reset role;
select tablespace_name, count(distinct measured_at), min(measured_at) > (select max(measured_at) from measured) as replaced
    from la_calibrate_other.pg_lookahead_calibration group by 1;

set search_path = public;
set client_min_messages = warning;
revoke execute on function la_calibrate_other.pg_lookahead_calibrate(name) from regress_la_measurer;
alter extension pg_lookahead set schema public;
revoke all on schema la_calibrate_other from regress_la_measurer;
revoke all on schema la_calibrate from regress_la_measurer;
select pg_lookahead_calibration_reset();
select count(*) from pg_lookahead_calibration;
select calibrated from pg_lookahead_storage_in_use();
drop schema la_calibrate cascade;
drop schema la_calibrate_other cascade;
drop role regress_la_measurer;
