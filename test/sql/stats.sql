--
-- stats - pg_stat_lookahead, its reset, and pg_lookahead_last_statement().
--
-- Figures depend on what the server has cached: only relations between them are shown.
--
set client_min_messages = warning;
create extension if not exists pg_lookahead;
reset client_min_messages;
create schema la_stats;
set search_path = la_stats, public;
set enable_seqscan = off;
set enable_bitmapscan = off;
set max_parallel_workers_per_gather = 0;
create table t (id int, a int, w text);
insert into t select i, (i::bigint * 7919 % 10007)::int, repeat('w', 100) from generate_series(1, 10006) i;
create index t_a on t (a) with (fillfactor = 20);
create index t_id on t (id) with (fillfactor = 20);
vacuum analyze t;

select attname, format_type(atttypid, atttypmod) from pg_attribute
    where attrelid = 'pg_stat_lookahead'::regclass order by attnum;
select kind from pg_stat_lookahead order by kind;

-- a reset zeroes everything and says when
select clock_timestamp() as begun \gset
select pg_stat_lookahead_reset();
select kind, scans_attached, scans_activated, blocks_foreseen, blocks_issued, blocks_cached,
    blocks_skipped_recent, blocks_skipped_sequential, blocks_on_time, blocks_late, blocks_wasted,
    entries_killed, leaf_pages_issued, stats_reset between :'begun' and clock_timestamp() as just_reset
    from pg_stat_lookahead order by kind;

-- a forced index scan, read to its end: every visit is accounted for
set pg_lookahead.force = on;
select count(w) from (select w from t where a between 1000 and 3000 order by a offset 0) s;
select kind, scans_attached, scans_activated > 0 as activated, blocks_foreseen > 0 as foreseen,
    blocks_foreseen >= blocks_issued + blocks_cached + blocks_skipped_recent + blocks_skipped_sequential as accounted,
    blocks_issued >= blocks_on_time + blocks_late + blocks_wasted as outcome_known,
    entries_killed, leaf_pages_issued >= 0 as leaf_pages
    from pg_stat_lookahead where kind = 'index scan';
select scans_attached, scans_activated, blocks_foreseen from pg_stat_lookahead where kind = 'index only scan';
select relation, index, kind, scans_activated > 0 as activated, blocks_foreseen > 0 as foreseen,
    avg_distance >= 0 as distance, max_distance between 0 and 64 as at_most
    from pg_lookahead_last_statement();

-- an index-only scan
select pg_stat_lookahead_reset();
select count(*) from (select id from t where id between 10 and 5000 order by id offset 0) s;
select kind, scans_attached, scans_activated > 0 as activated from pg_stat_lookahead order by kind;
select relation, index, kind, scans_activated > 0 as activated from pg_lookahead_last_statement();

-- several nodes in one statement, in the order of their names
select count(*) from t x join t y on x.a = y.id and x.id = y.a;
select count(w) from (select x.w from t x where x.a > 9000 union all select y.w from t y where y.id > 9000) s;
select relation, index, kind, scans_activated > 0 as activated from pg_lookahead_last_statement() order by 2;

-- the function leaves alone what it shows; so does a statement without such scans
select count(*) from pg_lookahead_last_statement();
select 1 as nothing;
select count(*) from pg_lookahead_last_statement();

-- dead entries that the scan has found
delete from t where a between 2000 and 2500;
select pg_stat_lookahead_reset();
select count(w) from (select w from t where a between 1000 and 3000 order by a offset 0) s;
select count(w) from (select w from t where a between 1000 and 3000 order by a offset 0) s;
select entries_killed from pg_stat_lookahead where kind = 'index scan';

-- left early: foreseen, perhaps started, not needed
select pg_stat_lookahead_reset();
begin;
declare c cursor for select w from t where a > 3000 order by a;
move 20 from c;
close c;
commit;
select scans_attached, scans_activated from pg_stat_lookahead where kind = 'index scan';

-- an error in mid-scan: what was counted is not lost
select pg_stat_lookahead_reset();
select w, 1 / (a - 4000) from t where a > 3000 order by a offset 2000;
select scans_attached, scans_activated > 0 as activated from pg_stat_lookahead where kind = 'index scan';

-- with look-ahead off nothing is attached
select pg_stat_lookahead_reset();
set pg_lookahead.enable = off;
select count(w) from (select w from t where a between 1000 and 3000 order by a offset 0) s;
reset pg_lookahead.enable;
select scans_attached, scans_activated from pg_stat_lookahead order by kind;

-- unforced, a short scan stays as it is
reset pg_lookahead.force;
select pg_stat_lookahead_reset();
select w = repeat('w', 100) as found from t where a = 4711;
select scans_activated, blocks_foreseen, blocks_issued from pg_stat_lookahead order by kind;

-- and is attached when it has taken attach_threshold entries and another one is wanted (the look-up
-- table's pages are cached, so nothing is read), or at once if it is forced
create table small as select * from t where a between 100 and 140;
create index on small (a);
vacuum analyze small;
create function pg_temp.attached(q text) returns bigint language plpgsql as $$
declare r record;
begin
    perform count(*) from small;
    perform max(w) from small where a > 0;
    perform pg_stat_lookahead_reset();
    for r in execute q loop end loop;
    return (select sum(scans_attached) from pg_stat_lookahead where kind like 'index%');
end $$;
set pg_lookahead.attach_threshold = 5;
select pg_temp.attached('select w from small where a between 101 and 104') as four,
       pg_temp.attached('select w from small where a between 101 and 105 order by a desc') as five_backward,
       pg_temp.attached('select w from small where a between 101 and 105') as five,
       pg_temp.attached('select w from small where a between 101 and 106') as six,
       pg_temp.attached('select a from small where a between 101 and 104') as only_four,
       pg_temp.attached('select a from small where a between 101 and 106') as only_six;
select pg_temp.attached('select w from small where a = 101 limit 1') as with_limit,
       pg_temp.attached('select w from small where a = 101 and id >= 0') as with_filter,
       pg_temp.attached('select n.x, s.w from (values (101), (102), (103)) n(x), lateral (select w from small where a = n.x offset 0) s') as rescans;
set pg_lookahead.attach_threshold = 0;
select pg_temp.attached('select w from small where a = 101') as observed;
reset pg_lookahead.attach_threshold;
set pg_lookahead.force = on;
select pg_temp.attached('select w from small where a = 101') as forced;
reset pg_lookahead.force;

-- index builds, by status and reason; times are there, but are not shown
select attname, format_type(atttypid, atttypmod) from pg_attribute
    where attrelid = 'pg_stat_lookahead_index_build'::regclass order by attnum;
create type pair as (x int, y int);
create table built as select i, row(i, i)::pair as many, row(i % 5, 0)::pair as few, null::int as e from generate_series(1, 3000) i;
create table empty_table (i int);
select pg_stat_lookahead_reset();
set max_parallel_maintenance_workers = 0;
create index built_i on built (i);
create index built_few on built (few, i);
create index built_many on built (many);
create index built_e on built (i, e) include (many);
create index empty_i on empty_table (i);
set pg_lookahead.enable_index_build = off;
reindex table built;
reset pg_lookahead.enable_index_build;
select status, reason, builds, parallel_builds, spilled_builds, index_entries, scan_time > 0 as scan, sort_time > 0 as sort, load_time > 0 as load
    from pg_stat_lookahead_index_build;
reset max_parallel_maintenance_workers;
select pg_stat_lookahead_reset();
select sum(builds) + sum(index_entries) + sum(scan_time) as nothing from pg_stat_lookahead_index_build;

-- privileges: everybody may look, nobody else may reset
create role regress_la_reader;
set role regress_la_reader;
select count(*) from pg_stat_lookahead;
select count(*) from pg_stat_lookahead_index_build;
select count(*) >= 0 as may_call from pg_lookahead_last_statement();
select pg_stat_lookahead_reset();
reset role;
grant execute on function pg_stat_lookahead_reset() to regress_la_reader;
set role regress_la_reader;
select pg_stat_lookahead_reset();
reset role;
revoke execute on function pg_stat_lookahead_reset() from regress_la_reader;
drop role regress_la_reader;

set client_min_messages = warning;
drop schema la_stats cascade;
