--
-- toast - values stored out of line are the same when they are read ahead.
--
-- As in scan.sql.  "ahead" says whether values were looked ahead for, and not only rows; where a
-- statement does not fetch them, they must not be.
--
\set ECHO none
\getenv src PG_ABS_SRCDIR
\set helper :src '/sql/helper.inc'
\set schema la_toast
\i :helper
set client_min_messages = warning;

-- what was done for values so far
create function pg_temp.of_values(what text) returns bigint language plpgsql as $$
declare n bigint;
begin
    execute format('select %I from pg_stat_lookahead where kind = ''toast''', what) into n;
    return n;
end $$;

create function pg_temp.values(q text, out identical bool, out n int, out ahead bool)
language plpgsql as $$
declare before bigint := pg_temp.of_values('scans_activated');
begin
    select c.identical, c.n into identical, n from pg_temp.compare(q) c;
    ahead := pg_temp.of_values('scans_activated') > before;
end $$;

create function pg_temp.values_played(q text, motions text, out identical bool, out n int, out ahead bool)
language plpgsql as $$
declare before bigint := pg_temp.of_values('scans_activated');
begin
    select c.identical, c.n into identical, n from pg_temp.play(q, motions) c;
    ahead := pg_temp.of_values('scans_activated') > before;
end $$;

-- the file that COPY TO writes, in the same ways
create function pg_temp.copied(what text, out identical bool, out ahead bool)
language plpgsql as $$
declare way pg_temp.ahead; stock text; ours text;
    before bigint := pg_temp.of_values('scans_activated');
    file text := current_setting('data_directory') || '/la_toast.copy';
begin
    perform pg_temp.set_ahead(null);
    execute format('copy %s to %L', what, file);
    stock := md5(pg_read_binary_file(file));
    identical := true;
    for way in select * from pg_temp.ways() loop
        perform pg_temp.set_ahead(way);
        execute format('copy %s to %L', what, file);
        identical := identical and md5(pg_read_binary_file(file)) = stock;
    end loop;
    ahead := pg_temp.of_values('scans_activated') > before;
end $$;

set max_parallel_workers_per_gather = 0;
set enable_bitmapscan = off;

-- Values that are long, stored as they are and compressed, of several columns; short, null, and
-- compressed within the row.  (How large a compressed value is decides where the rows lie: 19
-- prefers lz4.)
set default_toast_compression = pglz;
create table docs (id int, k int, grp int, ext text, comp text, plain text);
alter table docs alter ext set storage external;
insert into docs
    select i, (i::bigint * 7919 % 3001)::int, i % 10,
        case when i % 7 = 0 then null when i % 5 = 0 then 'short' else repeat(md5(i::text), 60 + i % 300) end,
        case when i % 3 = 0 then repeat('a', 4000 + i)
             when i % 11 = 0 then (select string_agg(md5((i + j)::text), '') from generate_series(1, 150) j) end,
        'row ' || i
    from generate_series(1, 3000) i;
create index on docs (k);
create index on docs (grp);
-- versions, some on the same page and some not; dead rows
update docs set plain = plain || '!' where id % 13 = 0;
update docs set ext = ext || 'x' where id % 17 = 0;
delete from docs where id % 19 = 0;
analyze docs;

\set ECHO all
-- sequential scans
explain (costs off) select id, md5(ext) from docs;
select * from pg_temp.values('select id, md5(ext) from docs');
select * from pg_temp.values('select id, md5(comp), length(ext) from docs where id > 100');
select * from pg_temp.values('select id from docs where ext like ''%aa%''');
select * from pg_temp.values('select id, md5(docs::text) from docs');
select * from pg_temp.values('select id, md5(ext) from docs where grp = 3');
select * from pg_temp.values('select id, md5(ext) from docs limit 200');
-- an error in the middle
select * from pg_temp.values('select id, md5(ext), 1 / (id - 2000) from docs');
-- values that are not fetched
select * from pg_temp.values('select id, ext is null from docs');
select * from pg_temp.values('select id, plain from docs');
select * from pg_temp.values('select count(*) from docs');
select * from pg_temp.values('select id, octet_length(ext), pg_column_size(comp) from docs');
-- values that are sorted or hashed first
select * from pg_temp.values('select grp, max(md5(ext)) from docs group by grp order by grp');
select * from pg_temp.values('select id, md5(d.ext) from (select * from docs order by plain offset 0) d');

-- index scans
set enable_seqscan = off;
explain (costs off) select id, md5(ext) from docs where k > 500 order by k;
select * from pg_temp.values('select id, md5(ext) from docs where k > 500 order by k');
select * from pg_temp.values('select id, md5(ext), md5(comp) from docs order by k desc');
select * from pg_temp.values('select id, md5(ext) from docs where grp = 4');
select * from pg_temp.values('select id, md5(ext) from docs where k > 100 and plain like ''%!'' order by k');
select * from pg_temp.values('select id, md5(ext) from docs order by k limit 100 offset 30');
select * from pg_temp.values('select id, plain from docs where k > 500 order by k');
-- a loop takes rows in batches, before their values
select * from pg_temp.values('select id, ext from docs where k > 500 order by k');
select * from pg_temp.values_played('select id, md5(ext) from docs order by k', 'm100 n n w50 p n a-5 n e p m-10 s n n r300 n');
-- the same rows as the outer side of a join, and rescanned
set enable_hashjoin = off;
set enable_mergejoin = off;
set enable_material = off;
set enable_memoize = off;
select * from pg_temp.values('select a.id, md5(a.ext), b.id from docs a join docs b on b.k = a.id where a.k < 900');
select * from pg_temp.values('select g, d.id, md5(d.ext) from generate_series(1, 4) g, lateral (select * from docs where grp = g order by grp limit 150) d');
reset enable_hashjoin;
reset enable_mergejoin;
reset enable_material;
reset enable_memoize;
reset enable_seqscan;

-- bitmap heap scans, which are found by the room of bitmap scans, and also where that does nothing
set enable_seqscan = off;
set enable_indexscan = off;
set enable_bitmapscan = on;
explain (costs off) select id, md5(ext) from docs where k > 500;
select * from pg_temp.values('select id, md5(ext), md5(comp) from docs where k > 500');
select * from pg_temp.values('select id from docs where k > 100 and ext like ''%aa%''');
select * from pg_temp.values('select id, md5(ext) from docs where grp = 4 or k between 700 and 900');
select * from pg_temp.values('select id, md5(ext) from docs where k > 500 limit 200');
select * from pg_temp.values('select id, md5(ext), 1 / (id - 2000) from docs where k > 100');
select * from pg_temp.values('select id, plain from docs where k > 500');
select * from pg_temp.values('select id, octet_length(ext) from docs where k > 500');
select * from pg_temp.values_played('select id, md5(ext) from docs where k > 100', 'm100 n n w50 p n a-5 n e p m-10 s n n r300 n');
-- rescanned, to its end and not
set enable_material = off;
select * from pg_temp.values('select g, d.id, md5(d.ext) from generate_series(1, 4) g, lateral (select * from docs where grp = g offset 0) d');
select * from pg_temp.values('select g, d.id, md5(d.ext) from generate_series(1, 4) g, lateral (select * from docs where grp = g limit 50 + g) d');
reset enable_material;
-- a bitmap without the rows of each page
set work_mem = '64kB';
create table lossy (k int, v text, fill text) with (fillfactor = 10);
alter table lossy alter v set storage external, alter fill set storage plain;
insert into lossy select i, case when i % 4 = 0 then repeat(md5(i::text), 100) end, repeat('f', 600) from generate_series(1, 4000) i;
create index on lossy (k);
analyze lossy;
select pg_temp.values('select k, md5(v) from lossy where k > 200 and k % 3 = 0');
reset work_mem;
drop table lossy;
set pg_lookahead.enable_bitmap_scan = off;
select * from pg_temp.values('select id, md5(ext), md5(comp) from docs where k > 500');
reset pg_lookahead.enable_bitmap_scan;
set enable_indexscan = on;
set enable_bitmapscan = off;
reset enable_seqscan;

-- TID range scans, and TID scans of many rows
set enable_tidscan = on;
explain (costs off) select id, md5(ext) from docs where ctid > '(3,5)' and ctid < '(90,4)';
select * from pg_temp.values('select id, md5(ext), md5(comp) from docs where ctid > ''(3,5)'' and ctid < ''(90,4)''');
select * from pg_temp.values('select id, md5(ext) from docs where ctid >= ''(20,1)''');
select * from pg_temp.values('select id, md5(ext) from docs where ctid <= ''(9999,1)'' and ext like ''%aa%''');
select * from pg_temp.values('select id, md5(ext) from docs where ctid between ''(2,2)'' and ''(2,5)''');
select * from pg_temp.values('select id, md5(ext) from docs where ctid > ''(3,5)'' and ctid < ''(3,1)''');
select * from pg_temp.values('select id, md5(ext) from docs where ctid > ''(3,5)'' limit 150');
select * from pg_temp.values('select id, md5(ext), 1 / (id - 2000) from docs where ctid > ''(3,5)''');
select * from pg_temp.values('select id, plain from docs where ctid > ''(3,5)''');
select * from pg_temp.values_played('select id, md5(ext) from docs where ctid > ''(3,5)''', 'm100 n n w50 p n a-5 n e p m-10 s n n r300 n');
-- rescanned, with other ranges
select * from pg_temp.values('select g, d.id, md5(d.ext) from generate_series(1, 80, 9) g, lateral (select * from docs where ctid >= (''('' || g || '',1)'')::tid and ctid < (''('' || g + 11 || '',3)'')::tid limit 150 + g) d');
-- in no order, some twice, of dead rows, and behind the end
create table tids as select ctid as t, id from docs where id % 3 > 0;
explain (costs off) select id, md5(ext) from docs where ctid = any (array['(1,1)', '(1,2)']::tid[]);
select * from pg_temp.values('select id, md5(ext) from docs where ctid = any (array(select t from tids order by id % 7, id))');
select * from pg_temp.values('select id, md5(ext), md5(comp) from docs where ctid = any (array(select format(''(%s,%s)'', i, j)::tid from generate_series(0, 200) i, generate_series(0, 40) j))');
select * from pg_temp.values('select id, md5(ext) from docs where ctid = any (array(select t from tids)) and grp in (1, 5) and ext like ''%a%''');
select * from pg_temp.values('select id, md5(ext) from docs where ctid = any (array(select t from tids)) limit 150 offset 3');
select * from pg_temp.values('select id, md5(ext), 1 / (id - 2000) from docs where ctid = any (array(select t from tids))');
select * from pg_temp.values('select id, plain from docs where ctid = any (array(select t from tids))');
select * from pg_temp.values('select id, md5(ext) from docs where ctid = ''(1,2)''');
select * from pg_temp.values('select id, md5(ext) from docs where ctid = ''(1,2)'' or ctid = ''(0,2)''');
select * from pg_temp.values_played('select id, md5(ext) from docs where ctid = any (array(select t from tids))', 'm100 n n w50 p n a-5 n e p m-10 s n n r300 n');
select * from pg_temp.values('select g, d.id, md5(d.ext) from generate_series(1, 4) g, lateral (select * from docs where ctid = any (array(select t from tids where id % 4 = g)) limit 100 + g) d');
-- rows that the statement, or a cursor's transaction, changes
begin;
set local pg_lookahead.force = on;
declare c cursor for select id, left(md5(ext), 6) from docs where ctid = any (array(select t from tids)) for update;
move 200 in c;
fetch 1 in c;
update docs set ext = 'current' where current of c;
delete from docs where ctid = any (array(select t from tids)) and id % 2 = 0;
fetch 2 in c;
update docs set ext = ext || 'u' where ctid > '(20,5)';
fetch 2 in c;
rollback;
reset enable_tidscan;

-- joins: rows of the outer side, whose values are used above
create unique index on tids (id);
analyze tids;
set enable_nestloop = off;
set enable_mergejoin = off;
explain (costs off) select d.id, md5(d.ext), t from docs d join tids using (id);
select * from pg_temp.values('select d.id, md5(d.ext), t from docs d join tids using (id)');
select * from pg_temp.values('select d.id, md5(d.ext), t from docs d left join tids on tids.id = d.id and tids.id % 2 = 0');
select * from pg_temp.values('select d.id, md5(d.ext) from docs d where not exists (select from tids where tids.id = d.k)');
select * from pg_temp.values('select d.id, d.plain, t from docs d join tids using (id)');
set enable_nestloop = on;
set enable_hashjoin = off;
set enable_material = off;
explain (costs off) select d.id, md5(d.ext), t from docs d left join tids using (id);
select * from pg_temp.values('select d.id, md5(d.ext), t from docs d left join tids using (id)');
select * from pg_temp.values('select d.id, md5(d.ext), t from docs d left join tids on tids.id = d.k limit 200');
select * from pg_temp.values('select d.id, d.plain, t from docs d left join tids using (id)');
set enable_nestloop = off;
set enable_mergejoin = on;
set enable_sort = off;
select * from pg_temp.values('select d.id, md5(d.ext), t from docs d left join tids on tids.id = d.k');
reset enable_sort;
reset enable_hashjoin;
reset enable_nestloop;
reset enable_material;
drop table tids;

-- slices: few chunks of many
create table slices (id int, v text);
alter table slices alter v set storage external;
insert into slices select i, repeat(md5(i::text), 1500) from generate_series(1, 400) i;
select * from pg_temp.values('select id, substr(v, 100, 10) from slices');
select * from pg_temp.values('select id, md5(v) from slices');

-- values of 1 to 400 blocks: up to 16 blocks that follow one another are one visit
create table longer (id int, v text);
alter table longer alter v set storage external;
insert into longer select i, repeat(md5(i::text), 100 * case when i % 40 = 0 then 1000 else i % 40 end) from generate_series(1, 200) i;
select * from pg_temp.values('select id, md5(v) from longer');
select * from pg_temp.values('select id, substr(v, 40000, 10) from longer order by id');
select pg_temp.of_values('blocks_foreseen') as foreseen \gset
set pg_lookahead.force = on;
select count(md5(v)) from longer;
reset pg_lookahead.force;
select pg_temp.of_values('blocks_foreseen') - :foreseen between 200 and 400 as few_visits;
drop table longer;

-- functions that are called for each row see what the server would see
create sequence s;
create function noted(t text) returns text language plpgsql volatile as $$
begin
    return nextval('s') || md5(t);
end $$;
select * from pg_temp.values('select setval(''s'', 1) union all select length(noted(ext)) from docs where id < 500');
create function fails(t text) returns text language plpgsql as $$
begin
    if t like 'short' then
        return 1 / 0;
    end if;
    return md5(t);
end $$;
select * from pg_temp.values('select id, fails(ext) from docs where id % 5 > 0 or id > 1500');

-- partitions, an unlogged and a temporary table
create table parts (id int, v text) partition by range (id);
alter table parts alter v set storage external;
create table parts1 partition of parts for values from (minvalue) to (300);
create table parts2 partition of parts default;
insert into parts select i, repeat(md5(i::text), 100) from generate_series(1, 800) i;
create unlogged table unlog (like parts including storage);
insert into unlog select * from parts;
create temporary table temp (like parts including storage);
insert into temp select * from parts;
select * from pg_temp.values('select id, md5(v) from parts');
select * from pg_temp.values('select id, md5(v) from unlog');
select * from pg_temp.values('select id, md5(v) from temp');

-- rows that this transaction has written
begin;
update docs set comp = comp || id where id < 200;
insert into docs select id + 10000, k, grp, ext || 'y', comp, plain from docs where id between 500 and 700;
select * from pg_temp.values('select id, md5(ext), md5(comp) from docs where id < 400 or id > 10000');
rollback;

-- SERIALIZABLE
begin isolation level serializable;
select * from pg_temp.values('select id, md5(ext) from docs');
commit;

-- parallel workers
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set min_parallel_table_scan_size = 0;
set max_parallel_workers_per_gather = 2;
select * from pg_temp.values('select max(md5(ext)), max(md5(comp)), count(*) from docs');
reset max_parallel_workers_per_gather;
set max_parallel_workers_per_gather = 0;

-- writes that read values
create table target (id int, v text);
alter table target alter v set storage external;
create function pg_temp.written(settings text) returns text language plpgsql as $$
begin
    perform set_config('pg_lookahead.enable_toast', settings, true), set_config('pg_lookahead.force', 'on', true);
    truncate target;
    insert into target select id, ext || 'z' from docs;
    update target set v = v || 'u' where id % 2 = 0;
    return (select md5(string_agg(md5(t::text), '' order by id)) from target t);
end $$;
select pg_temp.written('on') = pg_temp.written('off') as same;

-- COPY TO
select * from pg_temp.copied('docs');
select * from pg_temp.copied('docs (id, comp)');
select * from pg_temp.copied('docs (id, plain, k)');
select * from pg_temp.copied('(select id, ext from docs where grp < 5)');
select * from pg_temp.copied('temp');
select * from pg_temp.copied('parts2');
-- rows of a sort
select * from pg_temp.copied('(select id, ext, comp from docs order by plain)');
select * from pg_temp.copied('(select ext from docs order by ext)');
select * from pg_temp.copied('(select id, ext from docs order by plain limit 300)');
select * from pg_temp.copied('(select id, ext from docs order by plain limit 300 offset 40)');
select * from pg_temp.copied('(select id, ext from docs order by id % 4 fetch first 300 rows with ties)');
select * from pg_temp.copied('(select d.id, d.ext, e.comp from docs d join docs e on e.id = d.k order by d.plain)');
select * from pg_temp.copied('(select id, ext, v from docs left join parts2 using (id) order by plain desc)');
select * from pg_temp.copied('(select id, ext from docs where id < 3 order by plain)');
select * from pg_temp.copied('(select id, md5(ext) from (select * from docs order by plain offset 0) d where id % 3 < 2 limit 800)');
select * from pg_temp.copied('(select distinct on (k % 900) k % 900, id, ext from docs order by k % 900, plain desc)');
select * from pg_temp.copied('(select id, ext, generate_series(1, id % 3) from docs where id < 600 order by plain)');
-- a subquery for each of the rows, which may take them ahead as well
select * from pg_temp.copied('(select d.id, d.ext, (select max(length(e.comp)) from docs e where e.k = d.k) from (select * from docs order by plain offset 0) d)');
-- rows of workers, which come in no order, or sorted
set max_parallel_workers_per_gather = 2;
set parallel_leader_participation = off;
explain (costs off) select max(md5(ext)), count(comp || 'x') from (select ext, comp from docs where grp < 7 offset 0) s;
select * from pg_temp.copied('(select max(md5(ext)), count(comp || ''x'') from (select ext, comp from docs where grp < 7 offset 0) s)');
select * from pg_temp.copied('(select max(md5(plain)), count(comp) from (select plain, comp from docs where grp < 7 offset 0) s)');
explain (costs off) select id, ext from docs where grp < 7 order by plain, id;
select * from pg_temp.copied('(select id, ext from docs where grp < 7 order by plain, id)');
select * from pg_temp.copied('(select id, ext from docs where grp < 7 order by plain, id limit 300 offset 20)');
-- bounded sorts of the leader, which fails when it is asked for more rows
set parallel_leader_participation = on;
select * from pg_temp.copied('(select id, ext from docs order by plain, id limit 700)');
select * from pg_temp.copied('(select count(*), max(md5(ext)) from (select id, ext from docs order by plain, id limit 700 offset 3) s)');
set parallel_leader_participation = off;
-- a filter that may fail
select * from pg_temp.copied('(select max(md5(ext)) from (select ext from docs where 100 / (grp + 1) > 12 offset 0) s)');
reset parallel_leader_participation;
set max_parallel_workers_per_gather = 0;
-- not fetched; in files; all of them fetched before
select * from pg_temp.copied('(select id, plain from docs order by ext is null, plain)');
set work_mem = '64kB';
select * from pg_temp.copied('(select id, ext from docs order by plain)');
reset work_mem;
-- in batches of a loop; by a cursor that goes forward, and by one that does not
select * from pg_temp.values('select id, ext from docs order by plain');
create function pg_temp.forward(q text, steps text, out identical bool, out n int, out ahead bool) language plpgsql as $$
declare before bigint := pg_temp.of_values('scans_activated');
begin
    select d.identical, d.n into identical, n from pg_temp.differ(format('forward_rows(%L, %L)', q, steps)) d;
    ahead := pg_temp.of_values('scans_activated') > before;
end $$;
select * from pg_temp.forward('select id, ext from docs order by plain', '{1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,5,60,1,200,1,1,3000,1}');
select * from pg_temp.forward('select id, ext from docs order by plain limit 70', '{1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,5,40,1,200,1,1}');
select * from pg_temp.values_played('select id, ext from docs order by plain', 'm100 n n w50 p n a-5 n e p m-10 s n n r300 n');
-- sorts below joins, a window, and INSERT
set enable_hashjoin = off;
set enable_mergejoin = off;
explain (costs off) select s.id, md5(s.ext), e.grp from (select * from docs order by plain offset 0) s join docs e on e.k = s.id;
select * from pg_temp.values('select s.id, md5(s.ext), e.grp from (select * from docs order by plain offset 0) s join docs e on e.k = s.id');
select * from pg_temp.values('select s.id, md5(s.ext) from (select * from docs order by plain offset 0) s where exists (select from docs e where e.k = s.id and e.grp < 4)');
select * from pg_temp.values('select id, md5(ext), r from (select id, ext, row_number() over (order by plain, id) r from docs) s where r % 3 > 0');
reset enable_hashjoin;
reset enable_mergejoin;
create table copies (id int, ext text);
create function pg_temp.inserted(q text) returns text language plpgsql as $$
declare r text;
begin
    execute 'insert into copies ' || q;
    select md5(string_agg(c::text, ',' order by ctid)) into r from copies c;
    truncate copies;
    return r;
end $$;
select * from pg_temp.values('select pg_temp.inserted(''select id, ext from docs order by plain'')');

-- inner rows of hash joins
set enable_nestloop = off;
set enable_mergejoin = off;
set enable_indexscan = off;
explain (costs off) select p.id, md5(d.ext) from generate_series(1, 6000) p(id) left join docs d on d.k = p.id % 3001;
select * from pg_temp.values('select p.id, md5(d.ext) from generate_series(1, 6000) p(id) left join docs d on d.k = p.id % 3001');
select * from pg_temp.values('select p.id, d.id, md5(d.ext), length(d.comp) from generate_series(1, 30) p(id) join docs d on d.grp = p.id % 20 where d.id < 400');
select * from pg_temp.values('select p.id, md5(d.ext) from generate_series(1, 6000) p(id) join docs d on d.k = p.id limit 70');
select * from pg_temp.values('select p.id, md5(d.ext) from generate_series(1, 2000) p(id) right join docs d on d.k = p.id');
select * from pg_temp.values('select p.id, md5(d.ext), 1 / (p.id - 1500) from generate_series(1, 6000) p(id) join docs d on d.k = p.id');
select * from pg_temp.values('select p.id, md5(d.ext), md5(e.comp) from generate_series(1, 3000) p(id) join docs d on d.k = p.id join docs e on e.id = d.id');
select * from pg_temp.values('select p.id, md5(s.h) from generate_series(1, 3) p(id), lateral (select string_agg(md5(d.ext), '','') h from generate_series(1, 900) q(id) join docs d on d.k = q.id * p.id) s');
-- an error of a later row
select * from pg_temp.values('select p.id from generate_series(1, 6000) p(id) join docs d on d.k = p.id where 100 / (p.id - 2500) > -1000 and length(d.ext) > 0');
-- values that are not fetched
select * from pg_temp.values('select p.id, d.ext is null from generate_series(1, 6000) p(id) left join docs d on d.k = p.id');
select * from pg_temp.values('select p.id from generate_series(1, 6000) p(id) where not exists (select from docs d where d.k = p.id)');
select * from pg_temp.forward('select p.id, md5(d.ext) from generate_series(1, 6000) p(id) join docs d on d.k = p.id', '{1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,5,60,1,200,1,1,3000,1}');
begin;
declare c cursor for select p.id, md5(d.ext) from generate_series(1, 6000) p(id) join docs d on d.k = p.id;
set local pg_lookahead.force = on;
fetch 2 c;
delete from docs where k in (3, 4, 40);
fetch 2 c;
move 40 c;
fetch 1 c;
rollback;
reset enable_nestloop;
reset enable_mergejoin;
reset enable_indexscan;
-- a cursor whose table is changed, and whose transaction goes on after an error
create function pg_temp.rest() returns void language plpgsql as $$
declare c refcursor := 'c'; r record; n int := 0; h text := '';
begin
    loop
        fetch c into r;
        exit when not found;
        n := n + 1;
        h := md5(h || r::text);
    end loop;
    raise warning '% rows, %', n, left(h, 8);
end $$;
begin;
set local pg_lookahead.force = on;
declare c no scroll cursor for select id, left(plain, 9), ext from docs order by plain limit 500;
move 20 from c;
create temporary table moved as select 1;
savepoint s;
update docs set ext = 'changed' || id;
select 1 / 0;
rollback to s;
delete from docs where id % 2 = 0;
copy (select 1) to stdout;
select pg_temp.rest();
rollback;
begin;
set local pg_lookahead.enable = off;
declare c no scroll cursor for select id, left(plain, 9), ext from docs order by plain limit 500;
move 20 from c;
select pg_temp.rest();
rollback;
-- statements that fail before their scan, or in it, leave the table as it was
set pg_lookahead.force = on;
copy docs to '/nowhere/at/all';
copy docs (id, nothing) to stdout;
copy docs to stdout (format nothing);
begin;
copy docs to '/nowhere/at/all';
rollback;
do $$
begin
    copy docs to '/nowhere/at/all';
exception when others then
    perform count(*) from docs;
end $$;
set enable_seqscan = off;
select count(*), count(ext) from docs where k > 2000;
reset enable_seqscan;
truncate slices;
copy slices to stdout;
drop table slices;
reset pg_lookahead.force;

-- Tables that are rewritten.  The columns in front of the values change their length, get other
-- alignments, are dropped and added; some rows are dead, of this transaction, or of a failed one.
create function pg_temp.contents() returns text language plpgsql as $$
begin
    return (select md5(string_agg(md5(concat_ws(',', id, k::int, md5(ext), md5(comp))), '' order by id)) from rw);
end $$;
create function pg_temp.note_rw() returns void language plpgsql as $$
begin
    perform set_config('test.contents', pg_temp.contents(), false);
    perform set_config('test.scans', pg_temp.of_values('scans_activated')::text, false);
end $$;
create function pg_temp.check_rw(out same bool, out ahead bool) language plpgsql as $$
begin
    ahead := pg_temp.of_values('scans_activated') > current_setting('test.scans')::bigint;
    same := pg_temp.contents() = current_setting('test.contents');
    perform pg_temp.note_rw();
end $$;
create table rw (one bool, k int, id int, ext text, comp text, plain text);
alter table rw alter ext set storage external;
insert into rw select true, k, id, ext, comp, plain from docs;
update rw set ext = ext || 'z' where id % 23 = 0;
update rw set k = -k where id % 29 = 0;
delete from rw where id % 31 = 0;
create unique index rw_id on rw (id);
analyze rw;
set pg_lookahead.force = on;
select pg_temp.note_rw() \g /dev/null
vacuum full rw;
select * from pg_temp.check_rw();
vacuum (full, analyze) rw, rw;
select * from pg_temp.check_rw();
begin;
alter table rw alter k type bigint;
select * from pg_temp.check_rw();
alter table rw alter k type text, alter one type timestamptz using now(), alter ext type varchar;
select * from pg_temp.check_rw();
alter table rw alter k type int using k::int, drop one, add two uuid default gen_random_uuid(), alter comp type bytea using comp::bytea;
alter table rw alter two set statistics 10, alter comp type text using convert_from(comp, 'UTF8');
select * from pg_temp.check_rw();
-- rows of this transaction; and what is known of columns is not after a failure
update rw set ext = ext || 'w', comp = comp || 'w' where id % 5 = 0;
delete from rw where id % 37 = 0;
select pg_temp.note_rw() \g /dev/null
alter table rw alter k type bigint;
select * from pg_temp.check_rw();
savepoint s;
alter table rw alter k type text, alter id type bigint using 1 / (id - 5);
rollback to s;
select pg_temp.note_rw() \g /dev/null
alter table rw alter k type text;
select * from pg_temp.check_rw();
rollback;
select pg_temp.note_rw() \g /dev/null
alter table rw set unlogged;
select * from pg_temp.check_rw();
-- more than one table
create table rw_part (like rw including storage) partition by range (id);
create table rw_1 partition of rw_part for values from (minvalue) to (1000);
create table rw_2 partition of rw_part default;
insert into rw_part select * from rw;
select pg_temp.note_rw() \g /dev/null
alter table rw_part alter k type bigint;
select * from pg_temp.check_rw();
select count(*), count(*) filter (where p.ext = rw.ext or p.ext is null) from rw_part p join rw using (id);
-- a statement that reads another table, and this one
create table rw_few as select * from rw where id < 100;
create function pg_temp.of_rows(i int) returns int language plpgsql as $$
begin
    return (select count(*) from rw_few where k <> i and ext <> 'x') + (select count(*) from rw where id = i and ext <> 'x');
end $$;
alter table rw_few alter plain type int using pg_temp.of_rows(id);
select sum(plain) from rw_few;
select pg_temp.note_rw() \g /dev/null
-- CLUSTER, by an index and by a sort
set enable_seqscan = off;
cluster rw using rw_id;
reset enable_seqscan;
select * from pg_temp.check_rw();
set enable_indexscan = off;
cluster rw;
reset enable_indexscan;
select * from pg_temp.check_rw();
-- values are not fetched, or the table is not followed
alter table rw add check (length(plain) > 0);
alter table rw alter plain type varchar;
alter table rw set tablespace pg_default;
set pg_lookahead.enable_toast = off;
vacuum full rw;
reset pg_lookahead.enable_toast;
select * from pg_temp.check_rw();
begin;
create table rw_new as select * from rw;
select pg_temp.note_rw() \g /dev/null
alter table rw_new alter k type bigint;
select * from pg_temp.check_rw();
rollback;
-- errors; the routine of a table is its own again
do $$
begin
    alter table rw alter plain type text collate "C" using case when id = 2000 then (1 / 0)::text else upper(ext) end;
exception when division_by_zero then
    raise warning '%', sqlerrm;
end $$;
select * from pg_temp.check_rw();
alter table rw alter k type int using 1 / (id - 5);
create index rw_k on rw (k);
select count(*) from rw;
-- a materialized view is a query
select pg_temp.note_rw() \g /dev/null
create materialized view mv as select id, ext from rw;
refresh materialized view mv;
select * from pg_temp.check_rw();
select count(*) from mv join rw using (id) where mv.ext is distinct from rw.ext;
reset pg_lookahead.force;

-- the toast table gets a new file below an open cursor
begin;
set local pg_lookahead.force = on;
declare c cursor for select id, left(md5(v), 6) from parts2;
move 100 in c;
fetch 2 in c;
do $$
begin
    execute format('reindex table %s', (select reltoastrelid::regclass from pg_class where oid = 'parts2'::regclass));
end $$;
fetch 2 in c;
move 200 in c;
fetch 2 in c;
commit;

-- Without SERIALIZE, EXPLAIN sends no values.
create function pg_temp.lines(q text) returns bigint language plpgsql as $$
declare r record; before bigint := pg_temp.of_values('scans_activated');
begin
    set local pg_lookahead.force = on;
    for r in execute q loop
    end loop;
    return pg_temp.of_values('scans_activated') - before;
end $$;
select pg_temp.lines('explain (analyze) select ext from docs');
select pg_temp.lines('explain (analyze) select md5(ext) from docs');
select pg_temp.lines('explain (analyze) select md5(ext) from docs where ctid > ''(3,5)''');

-- settings
set pg_lookahead.force = on;
select pg_temp.of_values('scans_activated') as before \gset
set pg_lookahead.enable_toast = off;
select max(md5(ext)) from docs;
reset pg_lookahead.enable_toast;
set track_counts = off;
select max(md5(ext)) from docs;
reset track_counts;
set pg_lookahead.excluded_access_methods = 'btree';
select max(md5(ext)) from docs;
reset pg_lookahead.excluded_access_methods;
select pg_temp.of_values('scans_activated') - :before as activated;

drop schema la_toast cascade;
