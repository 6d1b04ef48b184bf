--
-- shapes - what looks ahead in everyday statements: a line for each shape.
--
-- The shapes are those that applications and ORMs write.  A line has the kinds of look-ahead that
-- foresaw blocks, with those kinds that were refused and the reason, so that a refusal that appears
-- or goes shows in a diff.  Each statement runs without look-ahead, too: "DIFFERS" is a fault.
--
set client_min_messages = warning;
create extension if not exists pg_lookahead;
create schema la_shapes;
set search_path = la_shapes, public;
set max_parallel_workers_per_gather = 0;
set enable_memoize = off;
set enable_hashjoin = off;
set enable_mergejoin = off;
set jit = off;
set timezone = 'UTC';
set pg_lookahead.force = on;
create table parent (id int primary key, n int, j jsonb, k text, x int, ts timestamptz, d date, s text);
insert into parent select i, (i * 7919) % 997 + 1, jsonb_build_object('id', (i * 7919) % 997 + 1), 'k' || (i * 7919) % 997 + 1,
        (i * 7919) % 997 + 1, timestamptz '2026-01-01' + (i * 7919) % 997 * interval '1 day',
        date '2026-01-01' + (i * 7919) % 997, ((i * 7919) % 997 + 1)::text
    from generate_series(1, 1000) i;
create table child (id int primary key, p int, v int, k text, u uuid, ts timestamptz, d date, filler text);
insert into child select i, (i * 31) % 997 + 1, i, 'k' || (i * 31) % 997 + 1, md5(((i * 31) % 997 + 1)::text)::uuid,
        timestamptz '2026-01-01' + (i * 31) % 997 * interval '1 day', date '2026-01-01' + (i * 31) % 997, repeat('f', 200)
    from generate_series(1, 2000) i;
create index child_p on child (p);
create index child_k on child (k);
create index child_u on child (u);
create index child_ts on child (ts);
create index child_d on child (d);
create table parts (id int, p int, v int) partition by hash (p);
create table parts_0 partition of parts for values with (modulus 2, remainder 0);
create table parts_1 partition of parts for values with (modulus 2, remainder 1);
insert into parts select id, p, v from child;
create index parts_p on parts (p);
create table docs (k int primary key, doc text);
alter table docs alter column doc set storage external;
insert into docs select i, repeat(md5(i::text), 100) from generate_series(1, 200) i;
vacuum analyze;

-- the rows as one value, in any order that the statement leaves open; or the error
create function result(statement text, ahead text) returns text language plpgsql as $$
declare r text;
begin
    perform set_config('pg_lookahead.enable', ahead, true);
    execute format('with q as materialized (%s) select md5(string_agg(q::text, ''|'' order by q::text)) from q', statement) into r;
    perform set_config('pg_lookahead.enable', 'on', true);
    return coalesce(r, 'nothing');
exception when others then
    return sqlerrm;
end $$;

-- a table for writes, as it was
create table target (like child including indexes);
create function restore() returns void language sql as
    'truncate target; insert into target select * from child';
select from restore();
create table report (n int, what text);

-- what the last statement did; from 18 on the server itself reads ahead for bitmap heap scans
create view last as
    select kind || coalesce(': ' || reason, '') as what from pg_lookahead_last_statement()
        where kind <> 'bitmap heap scan' and (blocks_foreseen > 0 or leaf_pages_issued > 0 or reason is not null);

\pset format unaligned
\pset tuples_only on
\pset fieldsep ' => '

create table shape (n serial, name text, statement text);
insert into shape (name, statement) values
-- joins
('inner join', 'select p.id, c.v from parent p join child c on c.p = p.n'),
('join, key may fail', 'select p.id, c.v from parent p join child c on c.p = p.n + 1'),
('join, a JSON field cast', 'select p.id, c.v from parent p join child c on c.p = (p.j->>''id'')::int'),
('join, a date of a timestamptz', 'select count(c.v) from parent p join child c on c.d = p.ts::date'),
('left join', 'select p.id, c.v from parent p left join child c on c.p = p.n'),
('semi join', 'select p.id from parent p where exists (select from child c where c.p = p.n and c.v > 0)'),
('anti join', 'select p.id from parent p where not exists (select from child c where c.p = p.n and c.v < 0)'),
('lateral, limit', 'select p.id, x.v from parent p cross join lateral (select c.v from child c where c.p = p.n order by c.v limit 1) x'),
('lateral, left join', 'select p.id, x.n from parent p left join lateral (select count(*) as n from child c where c.p = p.n) x on true'),
('join with VALUES', 'select c.v from (values (1), (5), (9), (100), (300), (500)) x(p) join child c on c.p = x.p'),
('join with unnest', 'select c.v from unnest(array[1, 5, 9, 100, 300, 500]) x(p) join child c on c.p = x.p'),
('join with unnest, key may fail', 'select c.v from unnest(array[1, 5, 9, 100, 300, 500]) x(p) join child c on c.p = x.p * 2 + 1'),
('IN (SELECT ...)', 'select c.v from child c where c.p in (select n from parent where id < 100)'),
('= ANY (ARRAY(SELECT ...))', 'select c.v from child c where c.p = any (array(select n from parent where id < 100))'),
('= ANY (list)', 'select c.v, c.filler from child c where c.p = any (''{1,5,9,100,300,500,600,700}'')'),
('join of partitions', 'select p.id, c.v from parent p join parts c on c.p = p.n'),
('three tables', 'select a.id, b.v, c.v from parent a join child b on b.p = a.n join child c on c.id = b.v'),
('a CTE', 'with x as materialized (select n from parent) select c.v from x join child c on c.p = x.n'),
('recursive', 'with recursive r as (select 1 as p, 1 as depth union all select c.v, r.depth + 1 from r join child c on c.p = r.p where r.depth < 4) select count(*) from r'),
('DISTINCT ON', 'select distinct on (c.p) c.p, c.v from parent p join child c on c.p = p.n order by c.p, c.v'),
('window', 'select c.v, row_number() over (partition by c.p order by c.v) from parent p join child c on c.p = p.n'),
('keyset page', 'select id, filler from child where id > 500 order by id limit 200'),
('order by another column', 'select id, filler from child order by p, id limit 300'),
('as-of join', 'select p.id, x.v from parent p cross join lateral (select c.v from child c where c.p <= p.n order by c.p desc limit 1) x'),
('a range', 'select id, filler from child where p between 100 and 400'),
-- subqueries
('subquery', 'select (select c.v from child c where c.p = x.n order by c.v limit 1) from parent x'),
('subquery, count', 'select (select count(c.v) from child c where c.p = x.n) from parent x'),
('subquery, a JSON field cast', 'select (select count(c.v) from child c where c.p = (x.j->>''id'')::int) from parent x'),
('subquery, a text cast', 'select (select count(c.v) from child c where c.p = x.s::int) from parent x'),
('subquery, key may fail', 'select (select count(c.v) from child c where c.p = x.n + 1) from parent x'),
('subquery, a date of a timestamptz', 'select (select count(c.v) from child c where c.d = x.ts::date) from parent x'),
('subquery, date_trunc', 'select (select count(c.v) from child c where c.ts = date_trunc(''day'', x.ts)) from parent x'),
('subquery, extract', 'select (select count(c.v) from child c where c.p = extract(doy from x.ts)::int) from parent x'),
('subquery, timestamptz + interval', 'select (select count(c.v) from child c where c.ts = x.ts + interval ''1 day'') from parent x'),
('subquery, format', 'select (select count(c.v) from child c where c.k = format(''k%s'', x.n)) from parent x'),
('subquery, concat', 'select (select count(c.v) from child c where c.k = concat(''k'', x.n)) from parent x'),
('subquery, md5 as uuid', 'select (select count(c.v) from child c where c.u = md5(x.n::text)::uuid) from parent x'),
('subquery, its filter may fail', 'select (select sum(c.v) from child c where c.p = x.n and 100 / c.v >= 0) from parent x'),
('subquery, its result may fail', 'select (select sum(1000 / c.v) from child c where c.p = x.n) from parent x'),
('subquery of partitions', 'select (select count(c.v) from parts c where c.p = x.n) from parent x'),
('subquery of partitions, a JSON field cast', 'select (select count(c.v) from parts c where c.p = (x.j->>''id'')::int) from parent x'),
('subquery in a filter', 'select x.id from parent x where (select count(c.v) from child c where c.p = x.n) > 1'),
('subquery behind a filter that may fail', 'select (select count(c.v) from child c where c.p = x.n) from parent x where 1000 / x.id > 0'),
('EXISTS in an output column', 'select x.id, exists (select from child c where c.p = x.n and c.v > 0) from parent x'),
('subquery in CASE', 'select case when x.id % 2 = 0 then (select count(c.v) from child c where c.p = x.n) end from parent x'),
('subquery in COALESCE', 'select coalesce(nullif(x.x, x.x), (select max(c.v) from child c where c.p = x.n)) from parent x'),
('subquery in ORDER BY', 'select x.id from parent x order by (select max(c.v) from child c where c.p = x.n), x.id'),
('subquery over generate_series', 'select (select count(c.v) from child c where c.p = x.p) from (select 1 + hashint8(i) % 100 as p from generate_series(1, 500) i offset 0) x'),
('subquery over a function''s rows', 'select (select count(c.v) from child c where c.p = i) from generate_series(1, 500) i'),
('subquery over VALUES', 'select (select count(c.v) from child c where c.p = x.p) from (values (1), (5), (9), (100), (300), (500)) x(p)'),
-- JSON
('json_agg of a column', 'select x.id, (select json_agg(c.v order by c.v) from child c where c.p = x.n) from parent x'),
('jsonb_agg of a column', 'select x.id, (select jsonb_agg(c.v order by c.v) from child c where c.p = x.n) from parent x'),
('json_build_object', 'select x.id, (select json_agg(json_build_object(''v'', c.v) order by c.v) from child c where c.p = x.n) from parent x'),
('jsonb_build_object', 'select x.id, (select jsonb_agg(jsonb_build_object(''v'', c.v, ''k'', c.k) order by c.v) from child c where c.p = x.n) from parent x'),
('row_to_json of a subquery', 'select x.id, (select row_to_json(q) from (select c.id, c.v from child c where c.p = x.n order by c.v limit 1) q) from parent x'),
('json_agg of a subquery', 'select x.id, (select json_agg(q) from (select c.id, c.v, c.ts from child c where c.p = x.n order by c.v) q) from parent x'),
('lateral json_agg of a subquery', 'select x.id, q.rows from parent x left join lateral (select coalesce(json_agg(q), ''[]'') as rows from (select c.id, c.v from child c where c.p = x.n order by c.v) q) q on true'),
('to_jsonb of a row', 'select x.id, (select jsonb_agg(to_jsonb(c) order by c.v) from child c where c.p = x.n) from parent x'),
('jsonb_object_agg', 'select x.id, (select jsonb_object_agg(c.k, c.v) from child c where c.p = x.n) from parent x'),
('string_agg', 'select x.id, (select string_agg(c.k, '','' order by c.v) from child c where c.p = x.n) from parent x'),
('array_agg', 'select x.id, (select array_agg(c.v order by c.v) from child c where c.p = x.n) from parent x'),
('join with json_build_object', 'select json_build_object(''p'', p.id, ''v'', c.v) from parent p join child c on c.p = p.n'),
-- documents
('values out of line', 'select sum(length(doc)) from docs where k between 1 and 100'),
('values out of line, sorted', 'select sum(length(doc)) from (select doc from docs where k between 1 and 100 order by md5(k::text) offset 0) s'),
('values out of line, an aggregate', 'select sum(length(doc::text)) from (select doc from docs where k between 1 and 100 order by k) s'),
('values out of line, a sort below an aggregate', 'select sum(length(doc::text)) from (select doc from docs where k between 1 and 60 or k between 100 and 160 order by md5(k::text)) s'),
('values out of line, a sort below groups', 'select k % 10, sum(length(doc)) from (select k, doc from docs where k % 2 = 0 order by k % 10) s group by k % 10'),
-- addresses of rows
('ctid of an outer row', 'select c.id, c.filler from (select ctid as at from child where p between 100 and 300 offset 0) a join child c on c.ctid = a.at'),
('ctid = ANY (ARRAY(SELECT ...))', 'select id, filler from child where ctid = any (array(select ctid from child where p between 100 and 300))'),
('ctid IN (SELECT ... LIMIT)', 'select id, filler from child where ctid in (select ctid from child where p between 100 and 300 limit 200)'),
-- writes
('INSERT', 'insert into target select 5000 + id, n, id from parent'),
('upsert', 'insert into target select id, n, id from parent on conflict (id) do update set v = excluded.v'),
('UPDATE ... FROM', 'update target c set v = p.id from parent p where c.p = p.n'),
('UPDATE, a JSON field cast', 'update target c set v = p.id from parent p where c.p = (p.j->>''id'')::int'),
('DELETE ... USING', 'delete from target c using parent p where c.p = p.n'),
('MERGE', 'merge into target c using parent p on c.id = p.id when matched then update set v = p.n when not matched then insert (id, p) values (p.id, p.n)'),
('queue', 'select id from child where p between 100 and 400 order by p limit 50 for update skip locked'),
('UPDATE of a queue', 'update target set v = 0 where id in (select id from target where p between 100 and 300 order by p limit 50 for update skip locked)'),
('DELETE by ctid', 'delete from target where ctid = any (array(select ctid from target where p between 100 and 300))'),
('UPDATE by ctid', 'update target set v = 0 where ctid in (select ctid from target where p between 100 and 300 limit 200)'),
('INSERT, clock_timestamp()', 'insert into target (id, p, ts) select 5000 + id, n, clock_timestamp() from parent');

-- each statement by itself, then what it did
\set ECHO none
\o /dev/null
select statement, format('insert into report select %s, what from last', n),
        case when statement ~ '^(insert|update|delete|merge)' then 'select restore()'
             else format('insert into report select %s, ''DIFFERS'' where result(%L, ''on'') <> result(%L, ''off'')', n, statement, statement) end
    from shape order by n \gexec
\o
\set ECHO all
select name, coalesce(string_agg(distinct what, ', '), '-') from shape left join report using (n) group by n, name order by n;

drop schema la_shapes cascade;
