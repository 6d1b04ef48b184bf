--
-- bitmap - bitmap scans, of GIN indexes above all.
--
-- What is said of looked_ahead is about index pages: heap blocks are looked ahead for by the
-- server itself from 18 on, and counted before.
--
\set ECHO none
\getenv src PG_ABS_SRCDIR
\set helper :src '/sql/helper.inc'
\set schema la_bitmap
set enable_seqscan = off;
set enable_indexscan = off;
set enable_indexonlyscan = off;
set max_parallel_workers_per_gather = 0;
\i :helper

create table g (id int, tags int[], v tsvector, j jsonb, w text);
create index g_tags on g using gin (tags) with (fastupdate = off);
create index g_two on g using gin (v, tags) with (fastupdate = off);
create index g_id on g (id) with (fillfactor = 20);
create index g_mod on g ((id % 101)) with (fillfactor = 20);
create index g_some on g (w) where id % 3 = 0;
insert into g select i,
        case when i % 97 = 0 then null when i % 89 = 0 then '{}'
             when i % 83 = 0 then array[null, i % 5]::int[]
             else array[i % 3, 10 + (i * 7919) % 7, 100 + (i * 7919::bigint) % 2003] end,
        to_tsvector('simple', format('a%s b%s c%s every', i % 2, (i * 31) % 50, (i * 17) % 3001)),
        jsonb_build_object('a', i % 5, 'b', (i * 13) % 1000, 'c', jsonb_build_array(i % 7, 'x' || i % 11)),
        md5(i::text)
    from generate_series(1, 20000) i;
create index g_j on g using gin (j);
create index g_path on g using gin (j jsonb_path_ops);
vacuum analyze g;

-- arrays: all of some keys, one of them, rare and frequent, none, null
select * from pg_temp.compare('select id from g where tags @> array[1, 12]');
select * from pg_temp.compare('select id from g where tags @> array[1, 12, 13]');
select * from pg_temp.compare('select id from g where tags @> array[0, 14, 777]');
select * from pg_temp.compare('select id from g where tags && array[2, 777, 778]');
select * from pg_temp.compare('select id from g where tags @> array[1] and tags @> array[11]');
select * from pg_temp.compare('select id from g where tags && array[1, 2] and tags && array[500, 501]');
select * from pg_temp.compare('select id from g where tags @> array[-5]');
select * from pg_temp.compare('select id from g where tags = array[1, 11, 1100]');
select * from pg_temp.compare('select id from g where tags <@ array[1, 12, 13, 14, 500, 501]');
select * from pg_temp.compare('select id from g where tags @> ''{}''');
select * from pg_temp.compare('select id from g where tags && ''{}''');
select * from pg_temp.compare('select id from g where tags = ''{}''');
select * from pg_temp.compare('select id from g where tags @> array[null]::int[]');
select * from pg_temp.compare('select id from g where tags && array[null, 3]::int[]');
select * from pg_temp.compare('select id from g where tags @> null');

-- full text: prefixes, negation (all rows); two columns
select * from pg_temp.compare($$select id from g where v @@ 'a1 & b7'$$);
select * from pg_temp.compare($$select id from g where v @@ 'a1 & b7 & c100'$$);
select * from pg_temp.compare($$select id from g where v @@ 'b1:* & a0'$$);
select * from pg_temp.compare($$select id from g where v @@ 'c29:* | c300'$$);
select * from pg_temp.compare($$select id from g where v @@ 'a1 & !b1:*'$$);
select * from pg_temp.compare($$select count(*) from g where v @@ '!a1'$$);
select * from pg_temp.compare($$select id from g where v @@ 'every & a1' and tags @> array[2, 13]$$);
select * from pg_temp.compare($$select id from g where v @@ 'c17' and tags && array[0, 1]$$);

-- jsonb
select * from pg_temp.compare($$select id from g where j @> '{"a": 1, "b": 13}'$$);
select * from pg_temp.compare($$select id from g where j @> '{"c": ["x3"]}' and j @> '{"a": 2}'$$);
select * from pg_temp.compare($$select id from g where j ? 'a' and j @> '{"b": 26}'$$);
select * from pg_temp.compare($$select id from g where j ?| array['nothing', 'zz']$$);
select * from pg_temp.compare($$select id from g where j ?& array['a', 'b', 'c'] and j @> '{"b": 39}'$$);
select * from pg_temp.compare($$select id from g where j @@ '$.a == 3 && $.b > 990'$$);
select * from pg_temp.compare($$select id from g where j @> any (array['{"b": 13}', '{"b": 26}', '{"a": 7}']::jsonb[])$$);
select identical, n from pg_temp.compare($$select id from g where j @> any ('{}'::jsonb[])$$);

-- the pending list
create table p (id int, tags int[]);
create index p_tags on p using gin (tags) with (fastupdate = on, gin_pending_list_limit = 65536);
insert into p select id, tags from g where id <= 10000;
vacuum p;
insert into p select id, tags from g where id > 10000;
select * from pg_temp.compare('select id from p where tags @> array[1, 12]');
select * from pg_temp.compare('select id from p where tags && array[777, 12]');

-- nothing in the index
create table e (id int, tags int[]);
create index e_tags on e using gin (tags);
select * from pg_temp.compare('select id from e where tags @> array[1, 12]');

-- btree, and several indexes
select identical, n from pg_temp.compare('select id from g where id between 500 and 4000');
select identical, n from pg_temp.compare('select id from g where id in (1, 5, 777, 778, 19000)');
select identical, n from pg_temp.compare('select id from g where id % 101 = 7 and id between 100 and 15000');
select identical, n from pg_temp.compare('select id from g where id % 101 = 7 or id between 100 and 1500 or id > 19900');
select identical, n from pg_temp.compare($$select id from g where w < '5' and id % 3 = 0$$);
select identical, n from pg_temp.compare('select id from g where id < 0');
select * from pg_temp.compare('select id from g where id % 101 = 7 and tags @> array[1, 12]');
select * from pg_temp.compare('select id from g where tags @> array[1, 12] or tags @> array[0, 777] or id < 10');
select * from pg_temp.compare('select id from g where tags @> array[0] limit 3');

-- executed again and again
select * from pg_temp.compare('select s, g.id from generate_series(0, 16) s, lateral (select id from g where tags @> array[s, 777 + s * 3] offset 0) g');
select * from pg_temp.compare($$select s, (select count(*) from g where j @> jsonb_build_object('a', s, 'b', s * 13)) from generate_series(0, 20) s$$);
select identical, n from pg_temp.compare('select s, g.id from generate_series(0, 16) s, lateral (select id from g where id between s * 50 and s * 60 offset 0) g');

-- bitmaps that are lossy; workers; cursors
set work_mem = '64kB';
select * from pg_temp.compare('select count(*), sum(id) from g where tags && array[0, 1, 2]');
select * from pg_temp.compare('select id from g where tags @> array[1] and v @@ ''a1''');
reset work_mem;
set max_parallel_workers_per_gather = 2;
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set min_parallel_table_scan_size = 0;
set min_parallel_index_scan_size = 0;
select * from pg_temp.compare('select count(*), sum(id) from g where tags && array[0, 1]');
select * from pg_temp.compare('select count(*), sum(id) from g where tags @> array[0, 12] or id % 101 = 5');
select * from pg_temp.compare('select s, (select sum(id) from g where tags @> array[s]) from generate_series(0, 2) s');
reset min_parallel_index_scan_size;
reset min_parallel_table_scan_size;
reset parallel_tuple_cost;
reset parallel_setup_cost;
set max_parallel_workers_per_gather = 0;
select * from pg_temp.differ($$forward_rows('select id from g where tags @> array[1, 12]', '{1, 5, 100, 1, 3000, 1}')$$);
select * from pg_temp.compare_plans('select id from g where tags @> array[1, 12]');

-- DDL with an open cursor
set pg_lookahead.force = on;
begin;
declare c cursor for select id from g where tags @> array[1, 12];
fetch 1 from c;
alter index g_tags rename to g_tags_renamed;
analyze g;
move 700 in c;
fetch 1 from c;
rollback;

-- SERIALIZABLE; temporary tables
begin isolation level serializable;
select * from pg_temp.compare('select id from g where tags @> array[1, 12, 13]');
select * from pg_temp.compare('select id from g where tags && array[777, 12]');
commit;
reset pg_lookahead.force;
create temp table tt as select id, tags from g;
create index on tt using gin (tags);
select identical, n from pg_temp.compare('select id from tt where tags @> array[1, 12]');

-- a comparison function that can be noticed is called as often as in stock
create sequence calls;
create function noticed(a int, b int) returns int language plpgsql as
    $$begin perform nextval('la_bitmap.calls'); return btint4cmp(a, b); end$$;
create function failing(a int, b int) returns int immutable language plpgsql as
    $$begin if a = 5555 or b = 5555 then perform 1 / (a - a); end if; return btint4cmp(a, b); end$$;
create operator class noticed_ops for type int[] using gin as
    operator 1 && (anyarray, anyarray), operator 2 @> (anyarray, anyarray),
    function 1 noticed(int, int), function 2 ginarrayextract(anyarray, internal, internal),
    function 3 ginqueryarrayextract(anyarray, internal, int2, internal, internal, internal, internal),
    function 4 ginarrayconsistent(internal, int2, anyarray, int4, internal, internal, internal, internal),
    storage int;
create operator class failing_ops for type int[] using gin as
    operator 1 && (anyarray, anyarray), operator 2 @> (anyarray, anyarray),
    function 1 failing(int, int), function 2 ginarrayextract(anyarray, internal, internal),
    function 3 ginqueryarrayextract(anyarray, internal, int2, internal, internal, internal, internal),
    function 4 ginarrayconsistent(internal, int2, anyarray, int4, internal, internal, internal, internal),
    storage int;
create table n (id int, tags int[], more int[]);
insert into n select id, array_remove(tags, null), array_remove(tags, null) from g where id < 3000;
create index n_noticed on n using gin (tags noticed_ops);
create index n_failing on n using gin (more failing_ops);
select setval('calls', 1);
select * from pg_temp.compare($$select id, nextval('calls') - setval('calls', 1) as calls
    from n where tags @> array[1, 12]$$);
select * from pg_temp.compare($$select count(*), nextval('calls') from
    (select setval('calls', 1) offset 0) x, lateral (select id from n where tags @> array[1, 12] offset 0) y$$);
select * from pg_temp.compare('select id from n where more @> array[1, 12]');
select * from pg_temp.compare('select id from n where more @> array[1, 5555]');
select * from pg_temp.compare('select id from n where more @> array[1, 13]');

-- a comparison of the server's own that calls such a function for the ranges' bounds
create function counted(a int, b int) returns int language plpgsql as
    $$begin perform nextval('la_bitmap.calls'); return btint4cmp(a, b); end$$;
create operator class counted_ops for type int using btree as
    operator 1 <, operator 2 <=, operator 3 =, operator 4 >=, operator 5 >, function 1 counted(int, int);
create type counted_range as range (subtype = int, subtype_opclass = counted_ops);
create table cr (id int, ranges counted_range[]);
insert into cr select i, array[counted_range(i % 50, i), counted_range(i % 7, 100000)]
    from generate_series(1, 1000) i;
create index cr_ranges on cr using gin (ranges);
select * from pg_temp.compare($$select count(*), nextval('calls') from (select setval('calls', 1) offset 0) x,
    lateral (select id from cr where ranges @> array[counted_range(3, 100000), counted_range(10, 60)] offset 0) y$$);

-- switched off
set pg_lookahead.enable_bitmap_scan = off;
select * from pg_temp.compare('select id from g where tags @> array[1, 12]');
reset pg_lookahead.enable_bitmap_scan;
set pg_lookahead.excluded_access_methods = 'gin';
select identical, n from pg_temp.compare('select id from g where tags @> array[1, 12]');
reset pg_lookahead.excluded_access_methods;

-- what is counted
set pg_lookahead.force = on;
select count(*) from p where tags @> array[1, 12];
select relation, index, kind, scans_attached, scans_activated > 0 as activated
    from pg_lookahead_last_statement() where kind = 'bitmap index scan';

-- no more pages ahead than max_distance says: of many entries, and of many posting trees
create table wide as select i as id, array(select k from generate_series(1, 20) k where i % (k + 1) > 0) as tags
    from generate_series(1, 40000) i;
create index wide_tags on wide using gin (tags) with (fastupdate = off);
vacuum analyze wide;
set pg_lookahead.max_distance = 5;
select count(*) from wide where tags && array(select generate_series(1, 20) union select generate_series(1000, 1100));
select kind, max_distance from pg_lookahead_last_statement() where kind = 'bitmap index scan';
select count(*) from wide where tags && array[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18];
select kind, max_distance from pg_lookahead_last_statement() where kind = 'bitmap index scan';
reset pg_lookahead.max_distance;

-- few rows of one entry are looked for in the many pages of another, and in two trees
create table rows_of as select i as id, array[1, 1000 + i % 20000, 2000 + i % 50000] || case when i % 9 = 0 then array[2] end as tags
    from generate_series(1, 150000) i;
create index rows_of_tags on rows_of using gin (tags) with (fastupdate = off);
vacuum analyze rows_of;
select * from pg_temp.compare('select id from rows_of where tags @> array[1, 1777]');
select * from pg_temp.compare('select id from rows_of where tags @> array[1, 2, 2008]');
select * from pg_temp.compare('select id from rows_of where tags @> array[1, 2]');
select * from pg_temp.compare('select id from rows_of where tags && array[1777, 2777] and tags @> array[1]');

-- the memory of one scan is given back for the next one
set pg_lookahead.backend_memory = '48kB';
create table parts (id int, tags int[]) partition by hash (id);
select format('create table parts%1$s partition of parts for values with (modulus 8, remainder %1$s)', i)
    from generate_series(0, 7) i \gexec
create index on parts using gin (tags) with (fastupdate = off);
insert into parts select id, tags from wide where id <= 8000;
select count(*) from parts where tags @> array[1, 2];
select count(*), bool_and(scans_activated > 0) as all_activated from pg_lookahead_last_statement()
    where kind = 'bitmap index scan';
reset pg_lookahead.backend_memory;
reset pg_lookahead.force;

set client_min_messages = warning;
drop schema la_bitmap cascade;
