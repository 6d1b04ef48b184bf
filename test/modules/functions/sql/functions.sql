--
-- functions - functions of extensions, of which nothing is known but what they are declared to be.
--
-- Each statement is run by stock, forced, and as on slow storage.
--
\getenv library LA_TEST_FUNCTIONS
load 'pg_lookahead';
set client_min_messages = warning;
create extension pg_lookahead;
reset client_min_messages;
create function la_test_notice(int) returns int language c immutable strict as :'library';
create function la_test_offset(int) returns int language c immutable leakproof strict as :'library';
create function la_test_run(text) returns int language c stable strict as :'library';

create table o (id int, pad text);
create table i (id int primary key, pad text);
create table t (at timestamp, id int);
insert into o select g, repeat('x', 50) from generate_series(1, 3000) g;
insert into i select g, repeat('x', 600) from generate_series(1, 6000) g order by md5(g::text);
insert into t select timestamp '2024-01-01' + g * interval '1 minute', g from generate_series(1, 20000) g;
create index t_at on t (at);
vacuum analyze o;
vacuum analyze i;
vacuum analyze t;
set timezone = 'UTC';
set max_parallel_workers_per_gather = 0;
set enable_seqscan = off;
set enable_bitmapscan = off;
set enable_hashjoin = off;
set enable_mergejoin = off;
set enable_memoize = off;
set enable_material = off;
set enable_sort = off;
create view last as select kind, relation, scans_activated > 0 as ahead, reason from pg_lookahead_last_statement();

-- in each mode: a notice for each call; a setting that changes between the rows of a cursor; rows that
-- are returned in another direction after a run to the end; a statement that a function runs
\set notices 'select count(i.pad) from o left join i on i.id = la_test_notice(o.id);'
\set cursor 'begin; declare c cursor for select i.id from o join i on i.id = la_test_offset(o.id); move 100 in c; set local la_test.shift = 1000; fetch 2 from c; move all in c; commit;'
\set index 'begin; declare c scroll cursor for select id from t where at > timestamptz ''2024-01-02 00:00+00'' order by at; move forward all in c; move backward 15000 in c; set local timezone = ''Asia/Tokyo''; move backward 50000 in c; commit;'
\set runs 'select count(*), sum(la_test_run(format(''set timezone = %L'', case when q.id > 100 then ''Asia/Tokyo'' else ''UTC'' end))) from (select id from t where at < timestamptz ''2024-01-02 20:00+00'' order by at offset 0) q; set timezone = ''UTC'';'

\set QUIET off
set pg_lookahead.enable = off;
:notices
:cursor
:index
:runs

set pg_lookahead.enable = on;
set pg_lookahead.force = on;
select count(i.pad) from (select id from o where la_test_run('select ' || id) = 0 offset 0) o join i on i.id = o.id;
select * from last;
:notices
select * from last;
:cursor
select * from last;
:index
:runs
select * from last;

reset pg_lookahead.force;
set pg_lookahead.miss_threshold = 0;
set pg_lookahead.min_read_time = 0;
set pg_lookahead.attach_threshold = 0;
set pg_lookahead.cache_prefetch_threshold = 0;
:notices
:cursor
:index
:runs
