--
-- scan - index scans return the same rows in the same order.
--
-- Every query runs with look-ahead off and then with it on under several settings
-- (rings of 2, 3 and 64 leaf pages; distances from 1 to 512; forced, and unforced with
-- thresholds of zero).  "looked_ahead" guards against a test that tests nothing.
--
\set ECHO none
\getenv src PG_ABS_SRCDIR
\set helper :src '/sql/scans.inc'
\set schema la_scan
\i :helper
set enable_indexonlyscan = off;

-- 20010 rows, in an order unrelated to the keys; nearly empty leaf pages make many of
-- them, so that a ring of 64 has to turn
create table t (id int, a int, b int, c int, s text, w text) with (fillfactor = 50);
alter table t alter w set storage external;
insert into t
    select i, (i::bigint * 7919 % 20011)::int, i * 31 % 13,
        case when i % 9 > 0 then i * 17 % 5003 end, 's' || i % 301,
        case when i % 500 = 0 then repeat('wide', 1000) end
    from generate_series(1, 20010) i;
create index on t (a) with (fillfactor = 10);
create index on t (b, c) with (fillfactor = 20);
create index on t (c desc nulls last) with (fillfactor = 10);
create index on t (s, a) with (fillfactor = 10);
create index on t ((a % 1000), id) with (fillfactor = 10);
create index on t (id) where c is null;
analyze t;

explain (costs off) select * from t where a between 100 and 9000 order by a;
select * from pg_temp.compare('select * from t where a between 100 and 9000');
select * from pg_temp.compare('select * from t where a between 100 and 9000 order by a desc');
select * from pg_temp.compare('select * from t order by a');
select * from pg_temp.compare('select * from t order by a desc');
-- nothing, one row, one page
select * from pg_temp.compare('select * from t where a > 50000');
select * from pg_temp.compare('select * from t where a = 4711');
select * from pg_temp.compare('select * from t where a between 4700 and 4720');
-- duplicates, composite keys, row comparison, nulls
select * from pg_temp.compare('select * from t where b = 5');
select * from pg_temp.compare('select * from t where b = 5 and c > 1000');
select * from pg_temp.compare('select * from t where (b, c) > (7, 2000) order by b, c');
select * from pg_temp.compare('select id, b, c from t where b = 3 and c is null');
select * from pg_temp.compare('select id, b, c from t order by b desc, c desc');
select * from pg_temp.compare('select id, c from t order by c desc nulls last');
select * from pg_temp.compare('select id, c from t order by c nulls first');
select * from pg_temp.compare('select id, c from t where c is not null order by c');
select * from pg_temp.compare('select id, s from t where s >= ''s2'' order by s, a');
-- expression and partial index
select * from pg_temp.compare('select id from t where a % 1000 between 10 and 300 order by a % 1000, id');
select * from pg_temp.compare('select id from t where c is null and id > 100 order by id');
-- a filter, limits and offsets
select * from pg_temp.compare('select id from t where a < 15000 and b = 4 order by a');
select * from pg_temp.compare('select id from t order by a limit 1');
select * from pg_temp.compare('select id from t order by a limit 7 offset 5000');
select * from pg_temp.compare('select id from t order by a desc limit 1000 offset 3');
-- values stored out of line
select * from pg_temp.compare('select id, md5(w) from t where w is not null and a < 12000 order by a');
-- an error in the middle: the same rows before it
select * from pg_temp.compare('select id, 1 / (a - 8000) from t where a > 3000 order by a');

-- unlogged, temporary and partitioned tables
create unlogged table u as select * from t;
create index on u (a) with (fillfactor = 10);
create index on u (b, id);
create temporary table m as select * from t;
create index on m (a) with (fillfactor = 10);
create index on m (b, id);
create table p (like t) partition by range (a);
create table p1 partition of p for values from (minvalue) to (7000);
create table p2 partition of p for values from (7000) to (14000);
create table p3 partition of p default;
insert into p select * from t;
create index on p (a) with (fillfactor = 10);
create index on p (b, id);
analyze u, m, p;
select * from pg_temp.compare('select * from u where a between 100 and 9000 order by a');
select * from pg_temp.compare('select * from u where b in (3, 7) order by b desc, id desc');
select * from pg_temp.compare('select * from m where a between 100 and 9000 order by a');
select * from pg_temp.compare('select * from m where b < 4 order by b, id');
select * from pg_temp.compare('select * from p where a between 3000 and 19000 order by a');
select * from pg_temp.compare('select * from p order by b desc, id desc limit 4000');

-- dead entries: deleted and updated rows, the old versions still in the index
delete from t where id % 3 = 0;
update t set a = a + 1, c = c + 1 where id % 3 = 1;
select * from pg_temp.compare('select * from t where a between 100 and 9000 order by a');
select * from pg_temp.compare('select * from t order by a desc');
select * from pg_temp.compare('select * from t where b = 5 order by b, c');
update u set a = a + 1, b = 12 - b where id % 3 = 1;
delete from m where id % 5 < 3;
select * from pg_temp.compare('select * from u where a between 100 and 9000 order by a');
select * from pg_temp.compare('select * from u order by b, id');
select * from pg_temp.compare('select * from m order by a');

-- a transaction sees its own changes, and not those it has rolled back
begin;
update t set a = -a where id % 10 = 1;
select * from pg_temp.compare('select * from t where a < 2000 order by a');
savepoint s;
delete from t where b = 5;
select * from pg_temp.compare('select * from t where b between 4 and 6 order by b, c');
rollback to savepoint s;
select * from pg_temp.compare('select * from t where b between 4 and 6 order by b, c');
rollback;
select * from pg_temp.compare('select * from t where a < 2000 order by a');

-- vacuum, and pages that were recycled
vacuum t;
select * from pg_temp.compare('select * from t order by a');
delete from t where a between 2000 and 12000;
vacuum t;
select * from pg_temp.compare('select * from t order by a desc');
reindex table t;
select * from pg_temp.compare('select * from t where a > 1000 order by a');

-- a scan of many rows is attached even if no leaf page has as many as attach_threshold
set pg_lookahead.attach_threshold = 1000;
select count(*) from (select b from u where a > 0 order by a) s;
select relation, scans_attached from pg_lookahead_last_statement();
reset pg_lookahead.attach_threshold;

-- deferred scans: several of one index at a time, after an error, and while the index is exchanged
create table d (k int, v text);
insert into d select i, 'v' || i from generate_series(1, 300) i;
create index d_k on d (k);
create function nested(n int) returns text language plpgsql as $$
begin
    if n > 3 then raise exception 'deep enough'; end if;
    return (select string_agg(x, '') from (select v || nested(n + 1) as x from d where k between n and n + 1 order by k) s);
exception when others then
    return '!' || (select v from d where k >= n order by k limit 1);
end $$;
create function two_scans() returns setof text language plpgsql as $$
declare c cursor for select v from d where k >= 5 order by k;
    r text; s text;
begin
    open c;
    for i in 1..4 loop
        fetch c into r;
        if i = 2 then
            alter index d_k rename to d_key;
        end if;
        if i = 3 then
            analyze d;
        end if;
        select v into s from d where k > i order by k limit 1;
        return next r || ' ' || s;
    end loop;
    close c;
    reindex index d_key;
    drop index d_key;
    create index d_k on d (k desc, v);
    return query select v from d where k between 7 and 9 order by k;
end $$;
select * from pg_temp.compare('select nested(1)');
select * from pg_temp.compare('select * from two_scans()');
select * from pg_temp.compare('select v from d where k between 1 and 3 and (k = 2 or 1 / (k - 2) <> 0) order by k');
begin;
declare c cursor for select v from d where k > 10 order by k;
fetch c;
savepoint s;
select 1 / (k - 12) from d where k between 11 and 13 order by k;
rollback to s;
select v from d where k between 11 and 13 order by k;
fetch c;
commit;

-- rows locked or changed by the scan
select * from pg_temp.compare('select id, a from t where a between 100 and 1500 order by a for share');
set pg_lookahead.force = on;
set pg_lookahead.max_leaf_pages = 2;
begin;
update t set a = a + 1 where a between 12000 and 16000;
delete from t where a > 17000;
select count(*), sum(a) from t;
rollback;
select count(*), sum(a) from t;

-- parallel scans: the sum, the order being nobody's
set max_parallel_workers_per_gather = 2;
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set min_parallel_index_scan_size = 0;
set min_parallel_table_scan_size = 0;
explain (costs off) select count(*), sum(a) from u where a > 100;
select count(*), sum(a), sum(b) from u where a > 100;
set pg_lookahead.enable = off;
select count(*), sum(a), sum(b) from u where a > 100;

set client_min_messages = warning;
drop schema la_scan cascade;
