--
-- adjust_costs - plans by what reads cost on this storage: where it is not to change anything.
--
-- What it changes depends on a measurement, so that is in t/025_adjust_costs.pl.
--
set client_min_messages = warning;
create extension if not exists pg_lookahead;
reset client_min_messages;
create schema la_adjust_costs;
set search_path = la_adjust_costs, public;

create table ac (id int primary key, k int, v int, w text);
insert into ac select i, (hashint4(i) & 2147483647) % 3000, i % 10, repeat('w', 100)
    from generate_series(1, 3000) i;
create index ac_k on ac (k);
create index ac_v on ac using hash (v);
create index ac_brin on ac using brin (id);
create table ac_part (id int, k int) partition by range (id);
create table ac_part1 partition of ac_part for values from (0) to (1000);
create table ac_part2 partition of ac_part for values from (1000) to (2000);
insert into ac_part select i, i * 7 % 1000 from generate_series(0, 1999) i;
create index on ac_part (k);
create temp table ac_temp as select * from ac;
create index on ac_temp (k);
vacuum (analyze) ac, ac_part, ac_temp;

-- statements, and whether their plans have the same costs with other settings
create table ac_queries (n serial, query text);
insert into ac_queries (query) values
    ('select * from ac where k = 7'),
    ('select * from ac where k between 100 and 200 order by k'),
    ('select * from ac where k between 100 and 200 and v = 3'),
    ('select * from ac where k = 7 or v = 3'),
    ('select * from ac order by k limit 3'),
    ('select count(*) from ac where id < 100'),
    ('select * from ac a join ac b on b.k = a.id where a.k < 30'),
    ('select * from ac a, lateral (select * from ac b where b.k > a.k order by k limit 2) s'),
    ('select * from ac_part where k = 3'),
    ('select * from ac a join ac_part p on p.k = a.k where a.id < 10'),
    ('select * from ac_temp where k < 10'),
    ('update ac set v = 3 where k = 3'),
    ('select exists (select from ac where k = 4)'),
    ('select * from ac where ctid = ''(0,1)'''),
    ('select * from ac where ctid > ''(3,1)'''),
    ('select n from ac_queries where n > 3');
create function ac_plan(query text) returns text language plpgsql as $$
declare
    line text;
    plan text := '';
begin
    for line in execute 'explain (verbose) ' || query loop
        plan := plan || line || E'\n';
    end loop;
    return plan;
end $$;
-- the plans with these settings that differ from those with others
create function ac_differ(settings text, others text) returns setof text language plpgsql as $$
declare
    q record;
    one text;
    other text;
begin
    for q in select * from ac_queries order by n loop
        perform set_config(split_part(s, '=', 1), split_part(s, '=', 2), true)
            from unnest(string_to_array(settings, ' ')) s;
        one := ac_plan(q.query);
        perform set_config(split_part(s, '=', 1), split_part(s, '=', 2), true)
            from unnest(string_to_array(others, ' ')) s;
        other := ac_plan(q.query);
        if one is distinct from other then
            return next q.query || E'\n' || one || E'\n' || other;
        end if;
    end loop;
end $$;

show pg_lookahead.adjust_costs;
-- off, as without look-ahead
select ac_differ('pg_lookahead.adjust_costs=off pg_lookahead.enable=on', 'pg_lookahead.enable=off');
-- nothing is adjusted with look-ahead off
select ac_differ('pg_lookahead.adjust_costs=on pg_lookahead.enable=off',
                 'pg_lookahead.adjust_costs=off pg_lookahead.enable=on');

-- what is in memory has stock's costs, calibrated or not
select sum(v), max(w) <> '' from ac;
select sum(v) from ac where k >= 0;
select ac_differ('pg_lookahead.adjust_costs=on', 'pg_lookahead.adjust_costs=off');
begin;
set local enable_seqscan = off;
set local max_parallel_workers_per_gather = 2;
set local parallel_setup_cost = 0;
set local parallel_tuple_cost = 0;
set local min_parallel_index_scan_size = 0;
set local min_parallel_table_scan_size = 0;
select ac_differ('pg_lookahead.adjust_costs=on', 'pg_lookahead.adjust_costs=off');
rollback;

-- in a transaction, with cursors
set pg_lookahead.adjust_costs = on;
begin;
declare c cursor for select * from ac where id = 5 for update;
fetch c;
update ac set v = 4 where current of c;
select v from ac where id = 5;
rollback;
set pg_lookahead.adjust_costs = perhaps;
reset pg_lookahead.adjust_costs;
