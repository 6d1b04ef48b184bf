--
-- mark_restore - merge joins that return to a mark in their inner index scan.
--
-- With duplicates on both sides the join marks the first row of a group of the inner
-- side and goes back to it for each further row of the outer one.  Here a group covers many
-- leaf pages, so with a ring of two the marked page has left the ring long before.  A
-- Materialize node would take the marks from the scan: it is disabled.
--
\set ECHO none
\getenv src PG_ABS_SRCDIR
\set helper :src '/sql/scans.inc'
\set schema la_mark
\i :helper
set enable_hashjoin = off;
set enable_nestloop = off;
set enable_material = off;
set enable_sort = off;

-- the outer side: three or four rows for each key
create table o (k int, id int);
insert into o select i % 40, i from generate_series(1, 140) i;
insert into o select null, i from generate_series(1, 5) i;
create index on o (k, id);
-- the inner side: 200 rows for each key, and keys that the outer side lacks
create table i (k int, id int, v int, w text);
insert into i select (n::bigint * 7919 % 8009 / 200)::int + 2, n, n % 50, repeat('w', 40)
    from generate_series(1, 8008) n;
insert into i select null, n, 1, 'null' from generate_series(1, 300) n;
create index i_kid on i (k, id) with (fillfactor = 10, deduplicate_items = off);
create index i_kv on i (k, v) include (id) with (fillfactor = 10);
create index i_k on i (k) with (fillfactor = 20);
vacuum analyze o, i;

-- index scan inside, index-only scan inside
explain (costs off) select o.k, o.id, i.id, i.w from o join i using (k);
select * from pg_temp.compare('select o.k, o.id, i.id, i.w from o join i using (k)');
explain (costs off) select o.id, i.k, i.id from o join i using (k);
select * from pg_temp.compare('select o.id, i.k, i.id from o join i using (k)');
-- backward
select * from pg_temp.compare('select o.id, i.k, i.id, i.w from o join i using (k) order by o.k desc');
-- outer joins
select * from pg_temp.compare('select o.k, o.id, i.id, i.w from o left join i using (k)');
select * from pg_temp.compare('select o.k, o.id, i.id, i.w from o full join i using (k)');
-- left early, in the first group and in a later one
select * from pg_temp.compare('select o.k, o.id, i.id, i.w from o join i using (k) limit 900');
select * from pg_temp.compare('select o.k, o.id, i.id, i.w from o join i using (k) offset 4321 limit 10');
-- two keys, and conditions on either side
select * from pg_temp.compare('select o.id, i.id, i.w from o join i on o.k = i.k and o.id = i.v');
select * from pg_temp.compare('select o.id, i.id, i.w from o join i on o.k = i.k and i.id > 4000');
select * from pg_temp.compare('select o.id, i.id, i.w from o join i on o.k = i.k and o.id > i.v');
select * from pg_temp.compare('select o.id, i.id, i.w from o join i using (k) where o.k between 5 and 9');
-- the list of the index condition has to be restored with the mark
explain (costs off) select o.id, i.id, i.w from o join i on o.k = i.k and i.k in (3, 4, 8, 20, 41);
select * from pg_temp.compare('select o.id, i.id, i.w from o join i on o.k = i.k and i.k in (3, 4, 8, 20, 41)');
select * from pg_temp.compare('select o.id, i.k, i.v from o join i on o.k = i.k and i.k in (3, 4, 8, 20) and i.v in (7, 8, 30)');
select * from pg_temp.compare('select o.id, i.id, i.w from o join i on o.k = i.k and i.k = any (array[3, 4, 8]) and i.v > 20');
-- the join with itself: two scans of one index
select * from pg_temp.compare('select x.id, y.id, y.w from i x join i y on x.k = y.k and x.id % 97 = 0');
-- semi and anti joins do not mark; they must not trip over it either
select * from pg_temp.compare('select * from o where exists (select 1 from i where i.k = o.k and i.id > o.id)');
select * from pg_temp.compare('select * from o where not exists (select 1 from i where i.k = o.k)');
-- three levels: marks in two scans at once
select * from pg_temp.compare('select o.id, i.id, p.id from o join i using (k) join o p using (k) where i.v = 3');

-- killing dead entries while a mark is set
delete from i where id % 3 = 0;
update i set v = v + 1 where id % 7 = 0;
select * from pg_temp.compare('select o.k, o.id, i.id, i.w from o join i using (k)');
select * from pg_temp.compare('select o.id, i.k, i.id from o join i using (k)');
select * from pg_temp.compare('select o.id, i.id, i.w from o join i on o.k = i.k and i.k in (3, 4, 8, 20, 41)');
-- unlogged and temporary: the page of a mark stays pinned
create unlogged table ui as select * from i;
create index on ui (k, id) with (fillfactor = 10, deduplicate_items = off);
create temporary table ti as select * from i;
create index on ti (k, id) with (fillfactor = 10, deduplicate_items = off);
analyze ui, ti;
delete from ui where id % 4 = 0;
delete from ti where id % 4 = 0;
select * from pg_temp.compare('select o.k, o.id, i.id, i.w from o join ui i using (k)');
select * from pg_temp.compare('select o.k, o.id, i.id, i.w from o join ti i using (k)');
select * from pg_temp.compare('select o.id, i.k from o join ti i using (k)');
-- cursors over a merge join go forward only, so they materialize
select * from pg_temp.play('select o.k, o.id, i.id, i.w from o join i using (k)',
    'n n m300 n p p m500 p n l p a-200 n f n');

set client_min_messages = warning;
drop schema la_mark cascade;
