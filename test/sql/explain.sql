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
-- EXPLAIN (IO) of 19: our nodes have the lines and properties that the server prints for the stream
-- of a scan, by its words, and no name is there twice.  Before 19: nothing more.
create function pg_temp.has_io() returns bool language sql as $$
    select current_setting('server_version_num')::int >= 190000;
$$;
create function pg_temp.io(q text, out properties text[], out twice bool) language plpgsql as $$
declare plan json; io text := case when pg_temp.has_io() then ', io' else '' end;
begin
    execute format('explain (analyze, costs off, timing off, summary off, buffers off, format json%s) %s', io, q) into plan;
    select array_agg(key order by key) into properties from json_each(plan -> 0 -> 'Plan')
        where key ~ 'I/O|Prefetch' and key !~ '^(Look-Ahead|Toast)';
    with recursive nodes as (select plan -> 0 -> 'Plan' as node
        union all select child from nodes, json_array_elements(node -> 'Plans') child)
    select bool_or((select count(*) > count(distinct key) from json_each(node))) into twice from nodes;
end $$;
create function pg_temp.same_io(ours text, theirs text, out same bool, out twice bool) language plpgsql as $$
declare o record; t record;
begin
    perform pg_temp.set_ahead(null);
    t := pg_temp.io(theirs);
    perform pg_temp.set_ahead((true, 64, 64, 0, 0));
    o := pg_temp.io(ours);
    same := o.properties <@ t.properties and cardinality(o.properties) >= 6 and cardinality(t.properties) = 7
        or not pg_temp.has_io();
    twice := o.twice or t.twice;
end $$;
set enable_seqscan = on;
select * from pg_temp.same_io('select * from t where a between 100 and 5000 order by a', 'select * from t');
select * from pg_temp.same_io('select * from (select * from t where id < 2000 offset 0) x join t y on y.a = x.id', 'select * from t');
-- a scan with a stream, whose server's lines are there as well, which looks ahead for values
set pg_lookahead.enable_toast = on;
create table v (id int, v text);
alter table v alter v set storage external;
insert into v select i, repeat(chr(65 + i % 26), 9000) from generate_series(1, 60) i;
select * from pg_temp.same_io('select id, length(v || id) from v', 'select * from t');
-- a bitmap heap scan at which a subquery looks ahead
set enable_indexscan = off;
set enable_bitmapscan = on;
select * from pg_temp.same_io('select id, (select b from t y where y.a = x.id) from t x where id < 2000', 'select * from t');
select (count(*) > 0) = pg_temp.has_io() as other_names
    from pg_temp.more_lines(case when pg_temp.has_io() then ', io' else '' end, 'select id, (select b from t y where y.a = x.id) from t x where id < 2000') line
    where line like '%Look-Ahead Prefetch: avg=N max=N capacity=N';
reset enable_indexscan;
set enable_bitmapscan = off;
set enable_seqscan = off;
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
