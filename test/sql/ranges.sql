--
-- ranges - rows that an inner side looks up by a range: as-of joins, overlaps, the next row.
--
-- A line has whether the rows are stock's, in its order, and whether as many blocks were foreseen as
-- the statement takes rows, each of which has a block of its own; "few" are less, "more" are up to
-- twice as many, and "many" are more than that.
-- The first outer rows are not looked ahead of.
--
set client_min_messages = warning;
create extension if not exists pg_lookahead;
create schema la_ranges;
set search_path = la_ranges, public;
create table p (dev int, ts int, n numeric, s text collate "C", d date, v text) with (fillfactor = 10);
insert into p
    select i % 20, i, i / 10.0, lpad(i::text, 5, '0'), date '2026-01-01' + i, repeat('v', 4000)
    from generate_series(1, 1000) i order by hashint4(i);
insert into p select 3, null, null, null, null, 'null' from generate_series(1, 3);
alter table p alter v set storage plain;
create index p_dev on p (dev, ts);
create index p_ts on p (ts);
create index p_ts_desc on p (ts desc nulls first, dev);
create index p_n on p (n);
create index p_s on p (s);
create index p_d on p (d);
create table q (like p) with (fillfactor = 10);
insert into q select * from p union all select i % 20, null, null, null, null, 'null' from generate_series(1, 200) i;
create index q_dev on q (dev, ts desc nulls first);
create table o (id int primary key, dev int, ts int, big bigint, n numeric, s text collate "C", d date);
insert into o
    select i, i % 20, case when i % 50 <> 7 then 1 + (hashint4(i) & 511) * 2 end, (hashint4(i) & 511) * 2,
        (hashint4(i) & 1023) / 10.0, lpad((hashint4(i) & 511)::text, 5, '0'), date '2026-01-01' + (hashint4(i) & 511)
    from generate_series(1, 200) i;
create index q_ts on q (ts);
create table parts (like p) partition by list (dev);
select format('create table parts_%s partition of parts for values in (%s) with (fillfactor = 10)', i, i) from generate_series(0, 19) i \gexec
insert into parts select * from p where ts is not null;
create index on parts (ts);
-- a function of a user's may do anything
create function compare(int, int) returns int language internal immutable strict as 'btint4cmp';
create operator class ops for type int using btree as operator 1 <, operator 2 <=, operator 3 =, operator 4 >=, operator 5 >, function 1 compare(int, int);
create table r (like p) with (fillfactor = 10);
insert into r select * from p where ts is not null;
create index on r (dev, ts ops);
create table w (like p) with (fillfactor = 10);
insert into w select * from p where ts is not null;
create index on w (dev, n, ts);
vacuum (freeze, analyze) p, o;
analyze q, r, parts, w;
set max_parallel_workers_per_gather = 0;
set enable_hashjoin = off;
set enable_mergejoin = off;
set enable_material = off;
set enable_memoize = off;
set enable_bitmapscan = off;
set enable_seqscan = off;
set enable_sort = off;
set enable_incremental_sort = off;
set jit = off;

-- taken: rows of p, where they are not those of the result
create table shape (n serial, name text, statement text, taken int);
insert into shape (name, statement) values
('the row before', 'select o.id, l.* from o, lateral (select ts, v from p where p.dev = o.dev and p.ts <= o.ts order by p.dev desc, p.ts desc limit 1) l'),
('the row before, strictly', 'select o.id, l.* from o, lateral (select ts, v from p where p.dev = o.dev and p.ts < o.ts order by p.dev desc, p.ts desc limit 1) l'),
('the row behind', 'select o.id, l.* from o, lateral (select ts, v from p where p.dev = o.dev and p.ts >= o.ts order by p.dev, p.ts limit 1) l'),
('two rows behind, strictly', 'select o.id, l.* from o, lateral (select ts, v from p where p.dev = o.dev and p.ts > o.ts order by p.dev, p.ts limit 2) l'),
('the last row of all', 'select o.id, l.* from o, lateral (select ts, v from p where p.dev = o.dev and p.ts is not null order by p.dev desc, p.ts desc limit 1) l'),
('three values', 'select o.id, p.ts, p.v from o join p on p.ts between o.ts and o.ts + 2'),
('three values of which two count', 'select o.id, p.ts, p.v from o join p on p.ts >= o.ts and p.ts < o.ts + 2'),
('one of three values', 'select o.id, p.ts, p.v from o join p on p.ts > o.ts and p.ts < o.ts + 2'),
('backward', 'select o.id, l.* from o, lateral (select ts, v from p where ts between o.ts and o.ts + 2 order by ts desc offset 0) l'),
('an index in descending order', 'select o.id, l.* from o, lateral (select ts, v from p where ts between o.ts and o.ts + 2 order by ts desc nulls first, dev offset 0) l'),
('within a device', 'select o.id, p.ts, p.v from o join p on p.dev = o.dev and p.ts between o.ts - 50 and o.ts'),
('a beginning only', 'select o.id, l.* from o, lateral (select ts, v from p where p.dev = o.dev and p.ts > 930 order by p.dev, p.ts offset 0) l'),
('an end only', 'select o.id, l.* from o, lateral (select ts, v from p where p.dev = o.dev and p.ts < 70 order by p.dev, p.ts offset 0) l'),
('a key of another type', 'select o.id, l.* from o, lateral (select ts, v from p where p.ts >= o.big and p.ts < o.big + 2 order by ts offset 0) l'),
('a numeric', 'select o.id, p.ts, p.v from o join p on p.n between o.n and o.n + 0.1'),
('a text', 'select o.id, l.* from o, lateral (select ts, v from p where p.s > o.s order by p.s limit 1) l'),
('a date', 'select o.id, l.* from o, lateral (select ts, v from p where p.d >= o.d order by p.d limit 1) l'),
('two beginnings', 'select o.id, p.ts, p.v from o join p on p.dev = o.dev and p.ts > o.ts and p.ts > o.ts + 10 and p.ts < o.ts + 40'),
('a key that fails', 'select o.id, p.ts, p.v from o join p on p.ts between 1000 / (o.id - 150) and 1000 / (o.id - 150) + 1 where o.id <> 150'),
('EXISTS', 'select o.id from o where exists (select from p where p.ts >= o.ts and p.ts < o.ts + 10 and p.v <> ''null'' offset 0)'),
('an aggregate', 'select o.id, (select max(p.v) from p where p.ts between o.ts and o.ts + 2) from o'),
('the greatest before', 'select o.id, (select max(ts) from q where q.dev = o.dev and q.ts <= o.ts) from o'),
('the least behind', 'select o.id, (select min(ts) from q where q.dev = o.dev and q.ts > o.ts) from o'),
('the least behind, of all devices', 'select o.id, (select min(ts) from q where q.ts > o.ts) from o'),
('up to the nulls', 'select o.id, p.ts, p.v from o join p on p.dev = o.dev and p.ts > o.ts and o.ts > 930'),
('from the nulls on', 'select o.id, l.* from o, lateral (select ts, v from p where p.dev = o.dev and p.ts > o.ts order by p.dev desc, p.ts desc limit 2) l'),
('null, then the end', 'select o.id, l.* from o, lateral (select ts, n from q where q.dev = o.dev and q.ts < o.ts order by q.dev, q.ts desc nulls first limit 2) l where o.ts > 1'),
('two ends', 'select o.id, l.* from o, lateral (select ts, v from p where p.dev = o.dev and p.ts <= o.ts and p.ts <= o.ts + 1 order by p.dev desc, p.ts desc limit 1) l'),
('the second row before', 'select o.id, l.* from o, lateral (select ts, v from p where p.dev = o.dev and p.ts <= o.ts order by p.dev desc, p.ts desc limit 1 offset 1) l where o.ts > 20'),
('EXISTS, a filter', 'select o.id from o where exists (select from p where p.ts between o.ts - 300 and o.ts + 300 and p.v <> ''x'')'),
('a filter, then one row', 'select o.id, l.* from o, lateral (select ts, n from q where q.dev = o.dev and q.ts <= o.ts and q.v <> ''x'' order by q.ts desc limit 1) l'),
('equal, a filter, then one row', 'select o.id, l.* from o, lateral (select ts, n from q where q.dev = o.dev and q.v <> ''x'' order by q.ts desc nulls first limit 1) l'),
('one row of partitions', 'select o.id, l.* from o, lateral (select ts, n from parts where parts.ts > o.ts limit 1) l'),
('equal, one row of partitions', 'select o.id, l.* from o, lateral (select ts, n from parts where parts.ts = o.ts limit 1) l'),
('a bound of another operator class', 'select o.id, r.ts, r.v from o join r on r.dev = o.dev and r.ts > o.ts and o.dev < 5'),
('a column between, most blocks are waste', 'select o.id, w.ts, w.v from o, generate_series(1, 20), w where w.dev = o.dev and w.ts = o.ts'),
('no row can match', 'select o.id, p.n from o join p on p.dev = o.dev and p.ts > o.ts and p.ts is null'),
('to the end of the index', 'select o.id, (select max(p.v) from p where p.ts >= o.ts) from o where id <= 20');
update shape set taken = 2 * 196 where name = 'the second row before';
update shape set taken = 585 where name = 'an aggregate';
update shape set taken = 1500 where name ~ 'waste'; -- of more than 30,000

-- the rows in their order, and how many; or the error
create function result(statement text, ahead text, out answer text, out n bigint) language plpgsql as $$
begin
    perform set_config('pg_lookahead.enable', ahead, true);
    execute format('select md5(string_agg(q::text, ''|'')), count(*) from (%s) q', statement) into answer, n;
    perform set_config('pg_lookahead.enable', 'on', true);
exception when others then
    answer := sqlerrm;
end $$;
create table report (n int, foreseen bigint);
set pg_lookahead.force = on;

\set ECHO none
\o /dev/null
select statement, format('insert into report select %s, coalesce(sum(blocks_foreseen), 0) from pg_lookahead_last_statement() where kind in (''nested loop'', ''subplan'')', n)
    from shape order by n \gexec
\o
\set ECHO all
select name, case when a.answer is not distinct from b.answer then 'same' else 'DIFFERS: ' || coalesce(a.answer, '') || coalesce(b.answer, '') end as rows, a.n,
        case when foreseen > coalesce(taken, a.n) * 2 + 4 then 'many' when foreseen > coalesce(taken, a.n) then 'more' when foreseen = 0 then 'none' when foreseen < coalesce(taken, a.n) * 0.9 then 'few' else 'as many' end as foreseen
    from shape join report using (n), result(statement, 'off') a, result(statement, 'on') b order by shape.n;
-- a bound that is a parameter of the statement
prepare before(bigint, bigint) as
    select o.id, l.v from o, lateral (select v from p where p.dev = o.dev and p.ts <= o.ts order by p.dev desc, p.ts desc limit $1 offset $2) l;
set plan_cache_mode = force_generic_plan;
\o /dev/null
execute before(1, 0);
\o
select blocks_foreseen between 170 and 192 as as_many from pg_lookahead_last_statement() where kind = 'nested loop';
\o /dev/null
execute before(1, 1);
\o
select blocks_foreseen between 340 and 384 as as_many from pg_lookahead_last_statement() where kind = 'nested loop';
execute before(-1, 0);
execute before(null, null) \g /dev/null
drop schema la_ranges cascade;
