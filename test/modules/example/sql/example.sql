--
-- example - the look-ahead that src/README.md shows reads ahead, and finds the same rows.
--
\getenv library LA_TEST_EXAMPLE
create function la_test_example("table" regclass, tids tid[], out found bigint, out foreseen bigint, out issued bigint)
    language c strict as :'library';
-- a row on each of 6,000 blocks, which are written through a ring of 16 MB: most are not in shared buffers
create table t with (fillfactor = 10, autovacuum_enabled = off) as
    select i, repeat('w', 700) as w from generate_series(0, 5999) i;
delete from t where i % 7 = 0;
create table addresses as
    select array_agg(format('(%s,1)', i * 7919 % 6000)::tid order by i) as tids from generate_series(1, 1500) i;
set effective_io_concurrency = 16;

-- read ahead
set pg_lookahead.force = on;
select found, foreseen > 1000 as foreseen, issued > 500 as issued from addresses, la_test_example('t', tids);
-- the same by a TID scan, and without look-ahead
select count(*) from t where ctid = any ((select tids from addresses)::tid[]);
set pg_lookahead.enable = off;
select found, foreseen, issued from addresses, la_test_example('t', tids);
reset pg_lookahead.enable;

-- on evidence: whether reads are waits is not certain here, but what is found is
reset pg_lookahead.force;
select found from addresses, la_test_example('t', tids);
set pg_lookahead.miss_threshold = 1;
set pg_lookahead.min_read_time = 0;
select found from addresses, la_test_example('t', (select array_agg(format('(%s,1)', i)::tid) from generate_series(0, 5999, 3) i));
select count(*) from t where i % 3 = 0;

-- for each row of a query; addresses that come again, that are null, and behind the end of the table
set pg_lookahead.force = on;
select n, found from generate_series(0, 3) n,
    la_test_example('t', (select array_agg(format('(%s,1)', i * n)::tid) from generate_series(1, 600) i));
select found from la_test_example('t', '{"(1,1)","(1,1)",NULL,"(2,1)","(7,1)","(1,1)","(6000,1)","(4294967294,1)"}');
select found, foreseen from la_test_example('t', '{}');
-- what is not looked at
create temp table own as select i from generate_series(1, 1000) i;
select found, foreseen from la_test_example('own', '{"(0,1)","(1,1)","(0,2)"}');
