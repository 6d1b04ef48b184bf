--
-- downlinks - the leaf pages that src/btree/downlinks.c delivers are those that a scan comes to.
--
-- Each query is executed three times, with other random numbers of pages asked for.  "beyond" is
-- how many pages behind the scan's last one were delivered, at most: one, since a page does not
-- tell a backward scan that its left sibling is not needed.
--
\set ECHO none
\getenv library LA_TEST_DOWNLINKS
create schema la_downlinks;
create extension pageinspect schema la_downlinks;
set search_path = la_downlinks, public;
set client_min_messages = warning;
create function la_test_downlinks(query text, seed int, meanwhile text, out pages int, out delivered int,
    out wrong int, out first_wrong text, out missed int, out beyond int)
    as :'library' language c strict;
create function check_query(q text, out many_pages bool, out delivered bool, out wrong bigint, out first_wrong text,
    out missed bigint, out beyond int)
language sql as $$
    select min(pages) > 2, sum(t.delivered) > 0, sum(t.wrong), min(t.first_wrong), sum(t.missed), max(t.beyond)
    from generate_series(1, 3) seed, la_test_downlinks(q, seed, '') t
$$;
set enable_seqscan = off;
set enable_bitmapscan = off;
set enable_sort = off;
set max_parallel_workers_per_gather = 0;
set jit = off;
\set ECHO all

-- keys come in random order, so pages are split, and their numbers are no longer in order
create table t (a int, b int, c text, d timestamp, n int, w text) with (autovacuum_enabled = off);
create index t_a on t (a) include (w);
create index t_bc on t (b desc, c nulls first) include (a, w);
create index t_ca on t (c collate "C", a) include (w);
create index t_nb on t (n, b);
create index t_d on t (d) include (w);
insert into t select (i::bigint * 7919 % 40009)::int, i % 70, case when i % 9 > 0 then 'key ' || i * 31 % 5000 end,
    'epoch'::timestamp + (i::bigint * 7919 % 40009)::int * interval '1 h', nullif(i % 4, 3), repeat('w', 300)
    from generate_series(1, 15000) i;
vacuum analyze t;
select (bt_metap(i)).level > 1 as deep from unnest(array['t_a', 't_bc', 't_ca', 't_d']) i;

create function check_all(out query text, out many_pages bool, out delivered bool, out wrong bigint, out first_wrong text,
    out missed bigint, out beyond int)
returns setof record language plpgsql as $$
begin
    foreach query in array array[
        'select a from t order by a',
        'select a from t order by a desc',
        'select a from t where a between 5000 and 30000 order by a',
        'select a from t where a > 5000 and a < 30000 order by a desc',
        'select a from t where a >= 39000 order by a',
        'select a from t where a < 1000 order by a desc',
        'select a from t where a < 20000::bigint order by a',
        'select a from t where a > 20000::smallint order by a desc',
        'select b, c from t order by b desc, c nulls first',
        'select b, c from t order by b, c desc nulls last',
        'select b, c, a from t where b < 30 order by b desc, c nulls first',
        'select b, c, a from t where b >= 30 order by b, c desc nulls last',
        'select b, c from t where b = 30 order by c nulls first',
        'select b, c from t where b = 30 order by c desc nulls last',
        'select b, c from t where b > 20 and c > ''key 3'' order by b desc, c nulls first',
        'select c, a from t where c >= ''key 2'' collate "C" and c < ''key 4'' collate "C" order by c collate "C", a',
        'select c, a from t where c > ''key 2'' collate "C" and c <= ''key 4'' collate "C" order by c collate "C" desc, a desc',
        'select c, a from t where c is null order by c collate "C", a',
        'select c, a from t where c is not null order by c collate "C", a',
        'select c, a from t where c is null order by c collate "C" desc, a desc',
        'select c, a from t where c is not null order by c collate "C" desc, a desc',
        'select n, b from t where n = 1 order by n, b',
        'select n, b from t where n = 1 and b < 50 order by n, b',
        'select n, b from t where n = 1 and b <= 50 order by n, b',
        'select n, b from t where n = 1 and b > 10 order by n desc, b desc',
        'select n, b from t where n = 1 and b >= 10 order by n desc, b desc',
        'select n, b from t where n is null and b <= 50 order by n, b',
        'select n, b from t where n is null and b >= 50 order by n desc, b desc',
        'select n, b from t where (n, b) <= (1, 30) order by n desc, b desc',
        'select n, b from t where n in (1, 2) order by n, b',
        'select d from t where d >= ''1970-06-01'' and d < ''1972-06-01'' order by d',
        'select d from t where d > ''1970-06-01''::date and d <= ''1972-06-01''::date order by d desc'
    ] loop
        select * into many_pages, delivered, wrong, first_wrong, missed, beyond from check_query(query);
        return next;
    end loop;
end $$;
select count(*), bool_and(many_pages) as many_pages, bool_and(delivered) as delivered, sum(wrong) as wrong,
    sum(missed) as missed from check_all();
select query, beyond from check_all() where wrong > 0 or missed > 0 or beyond > 1 order by 1;

-- lists: no row behind the last value
select wrong, missed, beyond <= 1 as ended
    from check_query('select a from t where a = any (array(select 10000 + i from generate_series(1, 5000) i)) order by a');

-- pages deleted and half empty, and split again
delete from t where a between 10000 and 12000 or b in (3, 30) or n = 1 and b < 20;
vacuum t;
select count(*), sum(wrong) as wrong, sum(missed) as missed from check_all();
select query, beyond from check_all() where wrong > 0 or missed > 0 or beyond > 1 order by 1;
insert into t select a + 1, b, c, d, n, w from t where a % 3 = 0;
select count(*), sum(wrong) as wrong, sum(missed) as missed from check_all();
select query, beyond from check_all() where wrong > 0 or missed > 0 or beyond > 1 order by 1;

-- duplicates over many pages: separators end with a row address
create table same as select i / 20000 as k from generate_series(1, 60000) i;
create index same_k on same (k) with (deduplicate_items = off);
vacuum same;
select * from check_query('select k from same where k = 1');
select * from check_query('select k from same where k <= 1 order by k desc');
-- many levels
create table wide as
    select (select string_agg(md5(g::text), '') from generate_series(1, 25) g) || lpad((i * 7919 % 6000)::text, 4, '0') as p, i
    from generate_series(1, 6000) i;
create index wide_p on wide (p collate "C", i);
vacuum wide;
select (bt_metap('wide_p')).level >= 3 as deep;
select * from check_query('select p, i from wide order by p collate "C", i');
select * from check_query('select p, i from wide order by p collate "C" desc, i desc');
-- temporary table
create temp table temporary (k int);
create index on temporary (k);
insert into temporary select i::bigint * 7919 % 40009 from generate_series(1, 40008) i;
vacuum temporary;
select * from check_query('select k from temporary where k > 5000 order by k');
-- one page has no parent
create table small as select i from generate_series(1, 50) i;
create index on small (i);
vacuum small;
select * from check_query('select i from small order by i');

-- pages are split while the scan goes on: nearly all of them are known nevertheless
create table growing (k int);
create index growing_k on growing (k);
insert into growing select i::bigint * 7919 % 40009 from generate_series(1, 40008) i;
vacuum growing;
create sequence grown;
select pages > 100 as many_pages, delivered > 100 as delivered, wrong, first_wrong, missed < pages / 10 as few_missed
    from la_test_downlinks('select k from growing order by k', 1,
        'insert into growing select (nextval(''grown'') * 7907 + i) % 40009 from generate_series(1, 300) i');
select pages > 100 as many_pages, delivered > 100 as delivered, wrong, first_wrong, missed < pages / 10 as few_missed
    from la_test_downlinks('select k from growing order by k desc', 1,
        'insert into growing select (nextval(''grown'') * 7907 + i) % 40009 from generate_series(1, 300) i');

\set ECHO none
drop schema la_downlinks cascade;
