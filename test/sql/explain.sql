--
-- explain - nothing shows without ANALYZE; with it, 18 and later print what was done.
--
-- Before 18 there is no hook to print from, and nothing shows with ANALYZE either: that
-- output is explain_1.out.
--
\set ECHO none
\getenv src PG_ABS_SRCDIR
\set helper :src '/sql/scans.inc'
\set schema la_explain
\i :helper
set enable_sort = off;
create table t (id int, a int, b int);
insert into t select i, (i::bigint * 7919 % 10007)::int, i % 10 from generate_series(1, 10006) i;
create index t_a on t (a) with (fillfactor = 20);
create index t_ba on t (b, a) with (fillfactor = 20);
vacuum analyze t;

-- plans, costs and all, in every format
set client_min_messages = warning;
select * from pg_temp.compare_plans('select * from t where a > 10 order by a');
select * from pg_temp.compare_plans('(verbose, format json) select * from t where a > 10 order by a');
select * from pg_temp.compare_plans('(format yaml) select b, a from t where b in (1, 2) order by b desc, a desc limit 5');
select * from pg_temp.compare_plans('(format xml) select * from t x join t y using (a)');
select * from pg_temp.compare_plans('select * from t x where exists (select 1 from t y where y.a = x.id) and b = 3');
select * from pg_temp.compare_plans('update t set b = 1 where a = 10');
reset client_min_messages;

-- The lines that ANALYZE has more with look-ahead on, figures replaced by N, or "none".
create function pg_temp.more_lines(options text, q text) returns setof text language plpgsql as $$
declare stock text[] := '{}'; ours text[] := '{}'; line text; n int := 0;
begin
    perform pg_temp.set_ahead(null);
    for line in execute format('explain (analyze, costs off, timing off, summary off, buffers off%s) %s', options, q) loop
        stock := stock || string_to_array(regexp_replace(line, '\d+(\.\d+)?', 'N', 'g'), E'\n');
    end loop;
    perform pg_temp.set_ahead((true, 64, 64, 0, 0));
    for line in execute format('explain (analyze, costs off, timing off, summary off, buffers off%s) %s', options, q) loop
        ours := ours || string_to_array(regexp_replace(line, '\d+(\.\d+)?', 'N', 'g'), E'\n');
    end loop;
    for i in 1 .. cardinality(ours) loop
        if ours[i] is distinct from stock[i - n] then
            n := n + 1;
            return next ours[i];
        end if;
    end loop;
    if n = 0 then return next 'none'; end if;
end $$;

select count(*) filter (where line like '%Prefetch: avg=N max=N capacity=N') as prefetch,
    count(*) filter (where line like '%Look-Ahead Blocks: foreseen=N%') as blocks, count(*) as lines
    from pg_temp.more_lines('', 'select * from t where a between 100 and 5000 order by a') line;
-- one pair of lines for each node
select count(*) filter (where line like '%Prefetch: avg=N max=N capacity=N') as prefetch,
    count(*) filter (where line like '%Look-Ahead Blocks: foreseen=N%') as blocks, count(*) as lines
    from pg_temp.more_lines('', '(select id from t where a > 100 order by a) union all (select id from t where b = 2 order by b, a)') line;
-- structured formats have a property for each figure
select count(*) filter (where line ~ '^ +"(Average Prefetch Distance|Max Prefetch Distance|Prefetch Capacity)": N,$') as prefetch,
    count(*) filter (where line ~ '^ +"Look-Ahead Blocks Foreseen": N,?$') as foreseen
    from pg_temp.more_lines(', format json', 'select * from t where a between 100 and 5000 order by a') line;
-- nodes that never ran, and a row-less scan, print nothing
select * from pg_temp.more_lines('', 'select * from t where false');
select * from pg_temp.more_lines('', 'select * from t where a > 50000 order by a');
-- a nested loop, at the join; a subquery, at its topmost node
set enable_hashjoin = off;
set enable_mergejoin = off;
set enable_memoize = off;
set enable_material = off;
set pg_lookahead.enable_subplan = on;
select count(*) filter (where line like '%Prefetch: avg=N max=N capacity=N') as prefetch,
    count(*) filter (where line like '%Look-Ahead Blocks: foreseen=N%') as blocks
    from pg_temp.more_lines('', 'select count(y.id) from (select * from t where id < 2000 offset 0) x join t y on y.a = x.id') line;
select count(*) filter (where line like '%Prefetch: avg=N max=N capacity=N') as prefetch,
    count(*) filter (where line like '%Look-Ahead Blocks: foreseen=N%') as blocks
    from pg_temp.more_lines('', 'select (select max(b) from t y where y.a = x.id) from t x where id < 2000') line;
-- by a function, where there is no hook to print from: nodes that looked ahead
select count(*) filter (where line like '%Look-Ahead%') > 0 as ahead
    from (select set_config('pg_lookahead.force', 'on', false)) f, pg_lookahead_explain('select count(y.id) from t x join t y on y.a = x.id where x.id < 2000') line;
reset pg_lookahead.force;
select pg_lookahead_explain('checkpoint');
select pg_lookahead_explain('select 1; select 2');
-- asked not to
set pg_lookahead.explain = off;
select * from pg_temp.more_lines('', 'select * from t where a between 100 and 5000 order by a');
reset pg_lookahead.explain;
-- look-ahead off: nothing
create function pg_temp.lines(q text) returns int language plpgsql as $$
declare line text; n int := 0;
begin
    for line in execute 'explain (analyze, costs off, timing off, summary off) ' || q loop
        n := n + (line ~ 'Prefetch|Look-Ahead')::int;
    end loop;
    return n;
end $$;
set pg_lookahead.enable = off;
select pg_temp.lines('select * from t where a between 100 and 5000 order by a');

set client_min_messages = warning;
drop schema la_explain cascade;
