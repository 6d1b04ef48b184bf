--
-- subplan - correlated subqueries, and inner sides of nested loops that are more than one scan,
-- return the same rows in the same order.
--
-- Only the look-ahead over the rows for which a plan is repeated is on here.  "looked_ahead" guards
-- against a test that tests nothing; where it is f, the test is that look-ahead stands down.
--
\set ECHO none
\getenv src PG_ABS_SRCDIR
\set helper :src '/sql/nestloop.inc'
\set schema la_subplan
\i :helper
set pg_lookahead.enable_bitmap_scan = off;
set pg_lookahead.enable_hash_join = off;

-- (how large a compressed value is decides where the rows lie: 19 prefers lz4)
set default_toast_compression = pglz;
create table p (id int, k int, k8 bigint, grp int, s text, w text);
insert into p
    select i, case when i % 11 > 0 then i * 7919 % 3001 end, i * 31 % 4000, i % 17,
        case when i % 13 > 0 then 's' || i % 900 end,
        case when i % 100 = 0 then repeat('wide', 3000) else 'w' end
    from generate_series(1, 2000) i;
create index on p (id);
create index on p (grp);
create table c (cid int, pid int, val int, s text, pad text) with (fillfactor = 30);
insert into c
    select i, i * 4447 % 3011, i * 13 % 700, 's' || i * 7 % 1000, repeat('p', i % 90)
    from generate_series(1, 6000) i;
create index on c (pid) with (fillfactor = 10);
create index on c (pid, val) with (fillfactor = 10);
create index on c (val) with (fillfactor = 10);
create index on c (s) with (fillfactor = 10);
vacuum analyze p;
vacuum analyze c;
delete from c where cid % 10 = 3;
alter table p set (parallel_workers = 0);
alter table c set (parallel_workers = 0);

create function select_large(n int) returns setof text immutable language sql as 'select repeat(md5(i::text), 2000) from generate_series(1, n) i';

-- the target list of a sequential scan: scalar, EXISTS, IN, ARRAY, ALL, rows
select pg_temp.nodes('select id, (select count(*) from c where pid = p.k) from p');
select * from pg_temp.compare('select id, (select count(*) from c where pid = p.k) from p');
select * from pg_temp.compare('select id, (select sum(val) from c where pid = p.k and val > 100) from p');
select * from pg_temp.compare('select id, (select max(pad) from c where pid = p.k and c.s <> p.s) from p');
select * from pg_temp.compare('select id, (select max(val) from c where pid = p.k), (select min(val) from c where pid = p.k) from p');
select * from pg_temp.compare('select id, exists (select from c where pid = p.k and val > p.grp) from p');
select * from pg_temp.compare('select id, p.grp in (select val from c where pid = p.k) from p');
select * from pg_temp.compare('select id, p.grp < all (select val from c where pid = p.k) from p');
select * from pg_temp.compare('select id, (p.grp, 3) < (select val, cid from c where pid = p.k order by cid limit 1) from p');
select * from pg_temp.compare('select id, array(select val from c where pid = p.k order by val, cid) from p');
-- other types, across and text; both columns of a key; constants
select * from pg_temp.compare('select id, (select count(*) from c where pid = p.k8) from p');
select * from pg_temp.compare('select id, (select max(cid) from c where c.s = p.s) from p');
select * from pg_temp.compare('select id, (select max(cid) from c where pid = p.k and val = p.grp) from p');
select * from pg_temp.compare('select id, (select max(cid) from c where pid = p.k and val = 91) from p');
-- values that are stored out of line
select * from pg_temp.compare('select id, (select count(*) from c where c.s = p.w) from p');
-- the first row only, the first ones in both directions
select * from pg_temp.compare('select id, (select pad from c where pid = p.k order by val limit 1) from p');
select * from pg_temp.compare('select id, (select val from c where pid = p.k order by val desc limit 1) from p');
select * from pg_temp.compare('select id, array(select pad from c where pid = p.k order by val desc limit 2) from p');

-- filters: alone, behind others, in AND, OR, CASE and COALESCE, which skip it for some rows
select * from pg_temp.compare('select id from p where (select count(*) from c where pid = p.k) = 2');
select * from pg_temp.compare('select id from p where grp = 3 and (select count(*) from c where pid = p.k) < 5');
select * from pg_temp.compare('select id from p where grp = 3 or exists (select from c where pid = p.k and val > 300)');
select * from pg_temp.compare('select id, case when grp = 3 then (select count(*) from c where pid = p.k) end from p');
select * from pg_temp.compare('select id, coalesce(k8 % 3, 0) = 0 and (select count(*) from c where pid = p.k) > 1 from p');
select * from pg_temp.compare('select id, coalesce(p.s, (select max(s) from c where pid = p.k)) from p');
select * from pg_temp.compare('select id, case when grp > 0 then (select count(*) from c where pid = p.k) else (select count(*) from c where val = p.grp) end from p');
-- a filter that fails for rows, and one that fails behind the last row wanted
select * from pg_temp.compare('select id, (select count(*) from c where pid = p.k) from p where 1000 / (id - 1500) < 5000');
select * from pg_temp.compare('select id, (select count(*) from c where pid = p.k) from p where 1000 / (id - 1500) < 5000 limit 1000');
-- keys that could fail are not computed ahead, and those that cannot are
select * from pg_temp.compare('select id, case when id < 1500 then (select count(*) from c where pid = 1000 / (p.id - 1500)) end from p');
select * from pg_temp.compare('select id, (select count(*) from c where pid = p.k / 3) from p');

-- several of them, nested ones, and in other places
select * from pg_temp.compare('select id, (select count(*) from c where pid = p.k), (select max(pid) from c where val = p.grp), array(select cid from c where c.s = p.s) from p where exists (select from c where pid = p.id)');
select * from pg_temp.compare('select id, (select count(*) from c where pid = p.k and exists (select from c d where d.pid = c.val)) from p');
select * from pg_temp.compare('select id, (select sum((select count(*) from c d where d.pid = c.val and d.val > p.grp)) from c where pid = p.k) from p where id < 500');
select * from pg_temp.compare('select sum((select count(*) from c where pid = p.k)), count(*) from p');
select * from pg_temp.compare('select grp, sum((select count(*) from c where pid = p.k)) from p group by grp order by grp');
select * from pg_temp.compare('select grp, (select count(*) from c where pid = x.grp) from (select grp, count(*) from p group by grp order by grp offset 0) x');
select * from pg_temp.compare('select id, row_number() over (order by (select count(*) from c where pid = p.k), id) from p');
select * from pg_temp.compare('select id, generate_series(1, (select count(*) from c where pid = p.k)) from p');

-- above other nodes: a sort with a limit, subqueries, joins
select * from pg_temp.compare('select id, (select count(*) from c where pid = x.k) from (select * from p order by k8, id limit 700) x');
select * from pg_temp.compare('select id, k8, (select count(*) from c where pid = p.k) from p order by k8, id limit 300');
select * from pg_temp.compare('select id, (select count(*) from c where pid = x.k) from (select id, k from p where id < 500 union all select id, k from p where id > 1700) x');
set enable_hashjoin = on;
set enable_nestloop = off;
select * from pg_temp.compare('select p.id, q.grp, (select count(*) from c where pid = p.k) from p join (select id, grp from p where grp < 9) q on q.id = p.k8');
set enable_hashjoin = off;
set enable_mergejoin = on;
select * from pg_temp.compare('select p.id, q.grp, (select count(*) from c where pid = p.k) from p join (select id, grp from p where grp < 9) q on q.id = p.k8');
set enable_mergejoin = off;
set enable_nestloop = on;
select * from pg_temp.compare('select p.id, q.grp, (select count(*) from c where pid = p.k) from p join p q on q.id = p.k8');

-- rows that lie in a tuplestore: functions, one and several, with ordinality, short ones and long ones
select pg_temp.nodes('select g, (select count(*) from c where pid = g) from generate_series(1, 900) g');
select * from pg_temp.compare('select g, (select count(*) from c where pid = g) from generate_series(1, 900) g');
select * from pg_temp.compare('select u, o, (select count(*) from c where pid = u) from unnest(array(select k from p order by id)) with ordinality t(u, o)');
select * from pg_temp.compare('select o, (select max(cid) from c where pid = o and c.s <> u) from unnest(array(select s from p order by id)) with ordinality t(u, o) where o % 3 > 0');
select * from pg_temp.compare('select a, b, (select count(*) from c where pid = b), (select max(val) from c where pid = a) from rows from (generate_series(1, 300), generate_series(5, 900), unnest(array[3, 4])) t(a, b, d)');
select * from pg_temp.compare('select (e ->> ''id'')::int, (select count(*) from c where c.s = e ->> ''s'') from jsonb_array_elements((select jsonb_agg(p order by id) from p where id < 500)) e');
select * from pg_temp.compare('select (select count(*) from c where pid = k), w from jsonb_to_recordset((select jsonb_agg(p order by id) from p where id < 900)) r(k int, grp int, w text) where grp < 11');
select * from pg_temp.compare('select g from generate_series(1, 900) g where (select count(*) from c where pid = g) = 2 and 1000 / (g - 700) < 5000');
select * from pg_temp.compare('select g, (select count(*) from c where pid = g) from generate_series(1, 900) g limit 40');
-- ... in a file, where both pointers move
set work_mem = '64kB';
select * from pg_temp.compare('select g, (select count(*) from c where pid = g) from generate_series(1, 4000) g');
select * from pg_temp.compare('select a, b, (select count(*) from c where pid = b) from rows from (generate_series(1, 2000), generate_series(5, 3000)) t(a, b)');
select * from pg_temp.compare('with x as materialized (select * from p) select id, (select count(*) from c where pid = x.k), (select count(*) from c where c.s = x.s) from x');
select * from pg_temp.compare('with x as materialized (select * from p) select x.id, y.k, (select count(*) from c where pid = x.k), (select max(val) from c where pid = y.k8) from x join x y on x.id = y.k8 offset 0');
reset work_mem;
-- ... made anew for each row of another node, or read again
select * from pg_temp.compare('select p.id, l.* from p, lateral (select g, (select count(*) from c where pid = g) from generate_series(p.id, p.id + p.grp) g offset 0) l where p.id < 300');
select * from pg_temp.compare('select p.id, l.* from p, lateral (select a, b, o, (select count(*) from c where pid = b) from rows from (generate_series(p.id, p.id + p.grp), generate_series(1, 20)) with ordinality t(a, b, o) offset 0) l where p.id < 200');
select * from pg_temp.compare('select q.id, l.* from p q left join lateral (select g, (select count(*) from c where pid = g) n from generate_series(1, 30) g offset 0) l on l.g < q.grp where q.id < 100');
select * from pg_temp.compare('select q.id, (select string_agg((select count(*) from c where pid = g and val > q.grp)::text, '','') from generate_series(1, 30) g) from p q where q.id < 100');
-- ... a function that makes its tuplestore itself, one that writes, and one that fails behind its first rows
create function rows_of_c(n int) returns setof c language plpgsql as $$ begin return query select * from c where cid <= n order by cid; end $$;
create function insert_c(n int) returns int language sql as $$ insert into c select -n, n, n, 'new', '' returning cid $$;
create function until_error(n int) returns setof int language plpgsql as $$ begin for i in 1 .. n loop return next i; end loop; perform 1 / (n - n); end $$;
select * from pg_temp.compare('select x.cid, (select count(*) from c where pid = x.val) from rows_of_c(900) x');
select * from pg_temp.compare('select x.cid, x.pid + x.val, (select count(*) from c where pid = x.pid) from rows_of_c(900) x where x.val > 90');
select * from pg_temp.compare('select g, (select count(*) from c where pid = g) from until_error(900) g');
select * from pg_temp.differ($$rows_after('insert into p select g, (select count(*) from c where pid = g) from generate_series(1, 900) g', 'select id, k from p order by id, k')$$);
select * from pg_temp.differ($$rows_after('insert into p select insert_c(g), (select count(*) from c where pid = g) from generate_series(1, 900) g', 'select cid, x.k from c left join p x on id = cid order by cid')$$);
select * from pg_temp.play('select g, (select count(*) from c where pid = g) from generate_series(1, 900) g', 'n n n m300 n p p w100 n n e p p f n l');
select * from pg_temp.play('select u, o, (select count(*) from c where pid = u) from unnest(array(select k from p order by id)) with ordinality t(u, o)', 'n n n m300 n p p w100 n n e p p p n f n l');
-- CTEs: one scan of them, whose plan is run ahead, several, and those whose plan has effects
select pg_temp.nodes('with x as materialized (select * from p) select id, (select count(*) from c where pid = x.k) from x');
select * from pg_temp.compare('with x as materialized (select * from p) select id, (select count(*) from c where pid = x.k) from x');
select * from pg_temp.compare('with x as materialized (select * from p) select id, (select count(*) from c where pid = x.k) from x where grp > 4 limit 300');
select * from pg_temp.compare('with x as (select * from p where id < 900) select x.id, y.id, (select count(*) from c where pid = x.k), (select max(val) from c where pid = y.grp) from x join x y on x.id = y.grp offset 0');
select * from pg_temp.compare('with x as (select * from p where id < 900) select id, (select count(*) from c where pid = x.k) from x where id < (select max(grp) * 50 from x) union all select grp, (select max(val) from c where pid = x.id) from x');
select * from pg_temp.compare('with x as (select * from p where id < 900) select id, (select count(*) from c where pid = x.k), (select count(*) from x y where y.grp = x.grp and y.id < x.id) from x where id < 200');
select * from pg_temp.compare('with x as materialized (select grp, count(*) n, max(id) m from p group by grp) select *, (select count(*) from c where pid = x.m) from x order by grp');
select * from pg_temp.compare('with x as materialized (select id, k from p order by k8, id limit 500) select id, (select count(*) from c where pid = x.k) from x');
select * from pg_temp.compare('with x as materialized (select id, k, 1000 / (id - 1500) f from p) select id, (select count(*) from c where pid = x.k) from x');
select * from pg_temp.compare('with x as materialized (select id, k, 1000 / (id - 1500) f from p) select id, (select count(*) from c where pid = x.k) from x limit 1000');
select * from pg_temp.compare('with x as materialized (select id, (select max(val) from c where pid = p.k) v from p) select id, v, (select count(*) from c where pid = x.v) from x');
select * from pg_temp.compare('with x as materialized (select id, k, w from p) select id, (select count(*) from c where pid = x.k) from x where w like ''w%''');
select * from pg_temp.compare('select q.id, l.* from p q, lateral (with x as materialized (select * from p where p.grp = q.id) select x.id, (select count(*) from c where pid = x.k) from x) l where q.id < 12');
select * from pg_temp.compare('select q.id, (with x as materialized (select * from p where p.id < 40) select string_agg((select count(*) from c where pid = x.k and val > q.grp)::text, '','') from x) from p q where q.id < 60');
select * from pg_temp.differ($$rows_after('with x as (update p set grp = grp + 1 where id < 900 returning id, k) insert into c select -id, (select count(*) from c where pid = x.k), 0, '''', '''' from x', 'select cid, pid from c order by cid')$$);
select * from pg_temp.play('with x as materialized (select * from p) select id, (select count(*) from c where pid = x.k) from x', 'n n n m300 n p p w100 n n e p p f n l');
select * from pg_temp.differ('forward_rows(''with x as materialized (select * from p) select id, (select count(*) from c where pid = x.k) from x'', ''{1, 1, 5, 300, 1, 900, 1000, 1}'')');
-- the working table of a recursive query, constants, transition tables, a range of TIDs
select * from pg_temp.compare('with recursive x (n, k, v) as (select id, k, 0::bigint from p where id <= 40 union all select n + 40, k + 1, (select count(*) from c where pid = x.k) from x where n < 900) select * from x');
select pg_temp.compare(format('select v, t, (select count(*) from c where pid = v) from (values %s) x(v, t) where t is not null', string_agg(format('(%s, %L)', coalesce(k, 0), s), ', ' order by id))) from p where id < 300;
select * from pg_temp.compare('select v, (select count(*) from c where pid = v) from (values (1), (2), (3 + length(current_setting(''search_path'')) * 0), (4), (5), (null), (7)) x(v)');
select * from pg_temp.compare('select id, (select count(*) from c where pid = p.k) from p where ctid between ''(0,5)'' and ''(14,7)''');
create table log (id int, n bigint);
create function log_p() returns trigger language plpgsql as $$
begin
    insert into log select id, (select count(*) from c where pid = new_p.k) from new_p;
    insert into log select id, (select max(val) from c where pid = x.k) from old_p x where grp < 9;
    return null;
end $$;
create trigger log_p after update on p referencing new table as new_p old table as old_p for each statement execute function log_p();
select * from pg_temp.differ($$rows_after('update p set k = k + 1 where id < 900', 'select * from log order by id, n')$$);
drop trigger log_p on p;

-- index scans: forward, backward, with a filter, array keys, index-only
set enable_seqscan = off;
select pg_temp.nodes('select id, (select count(*) from c where pid = p.k) from p where id between 100 and 1500');
select * from pg_temp.compare('select id, (select count(*) from c where pid = p.k) from p where id between 100 and 1500');
select * from pg_temp.compare('select id, (select count(*) from c where pid = p.k) from p where id between 100 and 1500 order by id desc');
select * from pg_temp.compare('select id, (select count(*) from c where pid = p.k) from p where id > 100 and grp in (3, 5) order by id limit 100');
select * from pg_temp.compare('select id, (select count(*) from c where pid = p.k) from p where grp in (3, 5, 11)');
select * from pg_temp.compare('select grp, (select count(*) from c where pid = p.grp) from p where grp > 4 order by grp');
set pg_lookahead.enable_index_scan = on;
select * from pg_temp.compare('select id, (select count(*) from c where pid = p.k) from p where id between 100 and 1500');
set pg_lookahead.enable_index_scan = off;
set enable_indexscan = off;
set enable_bitmapscan = on;
select pg_temp.nodes('select id, (select count(*) from c where pid = p.k) from p where grp in (3, 5, 11)');
select * from pg_temp.compare('select id, (select count(*) from c where pid = p.k) from p where grp in (3, 5, 11)');
select * from pg_temp.compare('select id, (select sum(val) from c where pid = p.k and cid > 5 and (val < 90 or val > 300)) from p');
set enable_indexscan = on;
set enable_bitmapscan = off;
set enable_seqscan = on;

-- cursors: turns, and rows taken some at a time
select * from pg_temp.play('select id, (select count(*) from c where pid = p.k) from p', 'n n n m300 n p p w100 n n e p p f n l');
select * from pg_temp.play('select id, (select count(*) from c where pid = p.k) from p where id between 100 and 1500 order by id', 'm20 n w10 n n m500 n p n l p');
select * from pg_temp.play('select id, k8, (select count(*) from c where pid = p.k) from p order by k8, id limit 300', 'n n m100 n p w20 n n e p');
select * from pg_temp.differ('forward_rows(''select id, (select count(*) from c where pid = p.k) from p'', ''{1, 1, 5, 300, 1, 900, 1000, 1}'')');

-- rescans of the node itself
select * from pg_temp.compare('select q.id, l.* from p q, lateral (select id, (select count(*) from c where pid = p.k) from p where p.grp = q.id offset 0) l where q.id < 12');
select * from pg_temp.compare('select q.id, (select string_agg((select count(*) from c where pid = x.k)::text, '','') from (select * from p where p.grp = q.id order by k8, id limit 30) x) from p q where q.id < 12');

-- writes: rows that the statement changes, RETURNING, and ON CONFLICT
select * from pg_temp.differ($$rows_after('update p set grp = (select count(*) from c where pid = p.k)', 'select id, grp from p order by id')$$);
select * from pg_temp.differ($$rows_after('update c set val = (select count(*) from c d where d.pid = c.val)', 'select cid, val from c order by cid')$$);
select * from pg_temp.differ($$rows_after('delete from p where not exists (select from c where pid = p.k and val > p.grp) or grp = 4', 'select id from p order by id')$$);
select * from pg_temp.differ($$rows_after('insert into p select cid, (select min(id) from p where p.id >= c.pid) from c', 'select id, k from p order by id, k')$$);
select * from pg_temp.differ($$rows_after('update p set (grp, s) = (select count(*), max(s) from c where pid = p.k)', 'select id, grp, s from p order by id')$$);

-- left to the server: row locks, volatile functions, hashed subplans, temporary tables
set pg_lookahead.force = on;
select count(l) from (select (select cid from c where pid = p.k limit 1 for update) l from p) x;
select reason from pg_lookahead_last_statement() where reason is not null;
select count(*) from (select (select count(*) from c where pid = p.k and random() >= 0) l from p offset 0) x where l >= 0;
select reason from pg_lookahead_last_statement() where reason is not null;
select count(*) from p where p.grp not in (select val from c);
reset pg_lookahead.force;
create temp table tc as select * from c;
create index on tc (pid);
analyze tc;
select * from pg_temp.compare('select id, (select count(*) from tc where pid = p.k) from p');

-- a nested loop in the subquery whose outer side is the same for each row
create table three as select i v from generate_series(1, 3) i;
select pg_temp.nodes('select id, (select count(c.cid) from three left join c on c.pid = p.k) from p');
select * from pg_temp.compare('select id, (select count(c.cid) from three left join c on c.pid = p.k) from p');
select * from pg_temp.compare('select id, (select count(c.cid) from three left join c on c.pid = p.k and c.val > v) from p');
select * from pg_temp.compare('select id, (select sum(d.cid + v) from three left join (c join c d on d.pid = c.val) on c.pid = p.k) from p where id < 900');
select * from pg_temp.compare('select id, (select sum(c.cid) from three left join c on c.pid = p.k and c.val = v) from p');
select * from pg_temp.compare('select id, (select sum(c.cid) from (select v from three where v > 7) z left join c on c.pid = p.k) from p');
select * from pg_temp.compare('select id, (select sum(x.cid) from three left join lateral (select c.cid from c where c.pid = p.k and c.val > v order by c.cid limit 2) x on true) from p');

-- LATERAL: the first ones, aggregates, distinct ones, joins, set operations
select pg_temp.nodes('select p.id, l.* from p, lateral (select cid, val from c where pid = p.k order by val desc limit 3) l');
select * from pg_temp.compare('select p.id, l.* from p, lateral (select cid, val from c where pid = p.k order by val desc limit 3) l');
select * from pg_temp.compare('select p.id, l.* from p left join lateral (select cid, val, pad from c where pid = p.k order by pad, cid limit 2) l on true');
select * from pg_temp.compare('select p.id, l.* from p, lateral (select count(*), max(val) from c where pid = p.k) l');
select * from pg_temp.compare('select p.id, l.* from p, lateral (select distinct val from c where pid = p.k order by val limit 4) l');
select * from pg_temp.compare('select p.id, l.* from p, lateral (select c.cid, d.cid from c join c d on d.pid = c.val where c.pid = p.k order by c.cid, d.cid limit 5) l(a, b)');
select * from pg_temp.compare('select p.id, l.* from p, lateral (select cid from c where pid = p.k union all select cid from c where val = p.k order by cid limit 3) l');
select * from pg_temp.compare('select p.id, l.* from p left join lateral (select cid from c where pid = p.k intersect select cid from c where val = p.grp) l on true');
select * from pg_temp.compare('select p.id from p where p.id > 300 and exists (select from c where pid = p.k offset 1) limit 200');
set enable_memoize = on;
select * from pg_temp.compare('select p.id, l.* from p, lateral (select count(*), max(val) from c where pid = p.grp) l');
set enable_memoize = off;
select * from pg_temp.compare('select p.id, l.* from p, lateral (select cid, val from c where pid = p.k order by val desc limit 3) l limit 50');
select * from pg_temp.play('select p.id, l.* from p, lateral (select cid, val from c where pid = p.k order by val desc limit 3) l', 'n n m100 n w50 n e p');
-- rows that come from a function, a CTE, VALUES
select * from pg_temp.compare('select g, l.* from generate_series(1, 700) g, lateral (select cid, val from c where pid = g order by val desc limit 3) l');
select * from pg_temp.compare('with x as materialized (select * from p where grp < 9) select x.id, l.* from x, lateral (select cid, val from c where pid = x.k order by val desc limit 3) l');
select * from pg_temp.compare('select u, l.* from unnest(array(select k from p)) u, lateral (select cid, val from c where pid = u order by val desc limit 3) l');
select * from pg_temp.compare('select v, c.cid from (values (5), (7), (7), (900), (3)) x(v), lateral (select * from c where pid = v order by cid limit 3) c');
select * from pg_temp.compare('select g, c.cid from generate_series(1, 700) g join c on c.pid = g');
select * from pg_temp.compare('select g, o, c.cid from unnest(array(select k from p order by id)) with ordinality t(g, o) join c on c.pid = g');
select * from pg_temp.compare('with x as materialized (select * from p where grp < 9) select x.id, c.cid from x join c on c.pid = x.k');
select * from pg_temp.compare('with x as (select * from p where grp < 5) select x.id, c.cid, (select max(y.k) from x y where y.id < x.id) from x join c on c.pid = x.k');
-- a function that may change what is read, and one that must be called for each row at its time
select * from pg_temp.compare('select p.id, l.*, set_config(''my.x'', p.id::text, true) from p, lateral (select cid, val from c where pid = p.k + coalesce(nullif(current_setting(''my.x'', true), ''''), ''0'')::int * 0 order by val desc limit 3) l');
create sequence sq;
select * from pg_temp.compare('select x.id, l.* from (select id, k, nextval(''sq'') n from p offset 0) x, lateral (select cid from c where pid = x.k order by val limit 3) l where n > 0');

-- partitions: all of them for each row, and the one that the key tells
create table h (cid int, pid int, val int, pad text) partition by hash (cid);
select format('create table h%s partition of h for values with (modulus 16, remainder %s) with (fillfactor = 30)', i, i) from generate_series(0, 15) i \gexec
insert into h select cid, pid, val, pad from c;
create index on h (pid) with (fillfactor = 10);
create index on h (pid, val) with (fillfactor = 10);
create table r (cid int, pid int, val int) partition by range (pid);
select format('create table r%s partition of r for values from (%s) to (%s)', i, i * 400, i * 400 + 400) from generate_series(0, 7) i \gexec
insert into r select cid, pid, val from c;
create index on r (pid) with (fillfactor = 10);
vacuum analyze h;
vacuum analyze r;
select pg_temp.nodes('select p.id, h.cid from p join h on h.pid = p.k');
select * from pg_temp.compare('select p.id, h.cid from p join h on h.pid = p.k');
select * from pg_temp.compare('select p.id, (select count(*) from h where pid = p.k) from p');
select * from pg_temp.compare('select p.id, l.* from p, lateral (select cid, val from h where pid = p.k order by val desc limit 3) l where id < 700');
select * from pg_temp.compare('select p.id, (select count(*) from r where pid = p.k) from p');
select * from pg_temp.compare('select p.id, (select max(val) from r where pid = p.k) from p where exists (select from h where pid = p.k)');

-- a partition chosen by a value of the row and one of the subquery's own outer side, which is not there yet
create table two (a text, b int, v int, d int) partition by list (a);
create table two1 partition of two for values in ('s1', 's2', 's3') partition by hash (b);
create table two2 partition of two for values in ('s4', 's5') partition by hash (b);
select format('create table two%s_%s partition of two%s for values with (modulus 4, remainder %s)', t, i, t, i) from generate_series(1, 2) t, generate_series(0, 3) i \gexec
insert into two select 's' || 1 + i % 5, i % 500, i, i from generate_series(1, 10000) i;
create index on two (b, a) with (fillfactor = 10);
create table oa (a text);
vacuum analyze two;
select * from pg_temp.compare('select p.id, (select sum(v) from (select two.v from (select a from oa offset 0) oa join two on two.a = oa.a and two.b = p.k union all select val from c where pid = p.k) x) from p');
insert into oa values ('s2'), ('s5'), ('s9');
select pg_temp.nodes('select p.id, (select sum(v) from (select two.v from (select a from oa order by a offset 0) oa join two on two.a = oa.a and two.b = p.k union all select val from c where pid = p.k) x) from p');
select * from pg_temp.compare('select p.id, (select sum(v) from (select two.v from (select a from oa order by a offset 0) oa join two on two.a = oa.a and two.b = p.k union all select val from c where pid = p.k) x) from p');

-- a function's rows that are read again and made anew
select * from pg_temp.compare('select a.i, l.* from generate_series(1, 40) a(i), lateral (select b.j, sum((select count(*) from c where pid = g)) n from (values (1), (2), (3)) b(j) cross join generate_series(1, a.i * 3) g where (select count(*) from c where val = g and a.i % 3 > 0) >= 0 group by b.j) l');
-- rows of several functions, some of them large
select * from pg_temp.compare('select x, length(y), (select count(*) from c where pid = x) from rows from (generate_series(1, 300), select_large(40)) t(x, y)');

-- workers
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set min_parallel_table_scan_size = 0;
set max_parallel_workers_per_gather = 2;
alter table p set (parallel_workers = 2);
select pg_temp.nodes('select id, (select count(*) from c where pid = p.k) from p where grp > 2');
select * from pg_temp.compare('select id, (select count(*) from c where pid = p.k) from p where grp > 2 order by id');
select * from pg_temp.compare('select id, (select max(val) from h where pid = p.k) from p order by id');
reset max_parallel_workers_per_gather;
set max_parallel_workers_per_gather = 0;

-- SERIALIZABLE: nothing is noted that the server would not
begin isolation level serializable;
select * from pg_temp.compare('select id, (select count(*) from c where pid = p.k) from p');
set enable_seqscan = off;
select * from pg_temp.compare('select id, (select count(*) from c where pid = p.k) from p where id between 100 and 1500');
commit;
-- ... nor is a predicate lock taken for rows to come
begin isolation level serializable;
set local enable_bitmapscan = off;
set local pg_lookahead.enable = off;
select sum(n) from (select (select count(*) from c where pid = p.k) n from p where id between 100 and 1500 limit 20) x;
select count(*) as nlocks from pg_locks where mode = 'SIReadLock' and pid = pg_backend_pid() \gset
commit;
begin isolation level serializable;
set local enable_bitmapscan = off;
set local pg_lookahead.force = on;
select sum(n) from (select (select count(*) from c where pid = p.k) n from p where id between 100 and 1500 limit 20) x;
select kind, scans_activated from pg_lookahead_last_statement() where kind = 'subplan';
select count(*) - :nlocks as more_locks from pg_locks where mode = 'SIReadLock' and pid = pg_backend_pid();
commit;
set enable_seqscan = on;

-- blocks read ahead, and where it is shown; nothing of it with the setting off
set pg_lookahead.force = on;
select count(m) from (select (select max(pad) from c where pid = p.k) m from p offset 0) x;
select kind, scans_activated, blocks_foreseen > 2000 as foreseen from pg_lookahead_last_statement() where kind = 'subplan';
select count(*) from p, lateral (select cid, pad from c where pid = p.k order by val desc limit 3) l;
select kind, scans_activated, blocks_foreseen > 2000 as foreseen from pg_lookahead_last_statement() where kind = 'nested loop';
set pg_lookahead.enable_subplan = off;
select count(m) from (select (select max(pad) from c where pid = p.k) m from p offset 0) x;
select count(*) from pg_lookahead_last_statement() where kind = 'subplan';
reset pg_lookahead.enable_subplan;
reset pg_lookahead.force;
-- kinds and reasons are those of the view
select kind from pg_stat_lookahead where kind = 'subplan';
-- plans are the same
select * from pg_temp.compare_plans('select id, (select count(*) from c where pid = p.k) from p');

-- sorts that return no more rows than a LIMIT takes, below other nodes
create table ordered (id int, k int, f int) partition by range (id);
create table ordered1 partition of ordered for values from (0) to (1000);
create table ordered2 partition of ordered for values from (1000) to (2001);
create index on ordered1 (id);
create index on ordered1 (f);
insert into ordered select id, k, id % 50 from p;
vacuum analyze ordered;
select * from pg_temp.compare('select id, (select count(*) from c where pid = o.k) from ordered o order by id limit 1200');
select * from pg_temp.compare('select id, (select count(*) from c where pid = o.k) from ordered o order by f, id limit 120');
select * from pg_temp.compare('select id, (select count(*) from c where pid = o.k) from ordered1 o order by f, id limit 120');
select * from pg_temp.compare('select id, (select count(*) from c where pid = o.k) from (select id, k from ordered1 union all select id, k from p where grp = 3) o order by id limit 120');
select * from pg_temp.compare('select id, (select count(*) from c where pid = x.k) from (select id, k from p union all select id, f from ordered1 offset 0) x order by id limit 120');
-- a key that may raise a notice
select * from pg_temp.compare('select id, (select count(*) from c where pid = to_char(p.k, ''FM9999'')::int) from p where id < 300');
-- one subquery by two indexes at once, and by one below a subquery
create table v3 as select i as a, i * 7 % 300 as b, repeat('v', 50) as pad from generate_series(1, 3000) i;
create index on v3 (b);
create index on v3 ((a % 10));
analyze v3;
set enable_seqscan = off;
set enable_indexscan = off;
select * from pg_temp.compare('select id, (select count(pad) from v3 where b = p.grp and a % 10 = p.id % 10) from p where id < 300');
select * from pg_temp.compare('select id, (select count(pad) from v3 where b = p.grp or a % 10 = p.id % 10) from p where id < 300');
reset enable_indexscan;
select * from pg_temp.compare('select id, (select count(pad) from (select pad from v3 where b = p.grp offset 0) x) from p where id < 300');
select * from pg_temp.compare('select id, (select count(pad) from (select pad, row_number() over () n from v3 where b = p.grp) x where n > 2) from p where id < 300');
reset enable_seqscan;
-- in a nested loop, whose outer rows are queued already
set enable_hashjoin = off;
set enable_mergejoin = off;
set enable_memoize = off;
select * from pg_temp.compare_all('select p.id, v.b, (select count(*) from c where pid = p.k) from p join v3 v on v.b = p.grp and v.a = p.id');
select * from pg_temp.compare('select p.id, v.b, (select count(*) from c where pid = p.k) from p join v3 v on v.b = p.grp limit 150');
select * from pg_temp.play('select p.id, v.b, (select count(*) from c where pid = p.k) from p join v3 v on v.b = p.grp', 'n n p n m100 n w50 p f l p a7 r-3 e p s n');
select * from pg_temp.compare('select p.id, x.n, (select count(*) from c where pid = p.k) from p, lateral (select count(*) as n from v3 where b = p.grp) x');
reset enable_hashjoin;
reset enable_mergejoin;
reset enable_memoize;

\set ECHO none
set client_min_messages = warning;
drop schema la_subplan cascade;
