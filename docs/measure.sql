-- measure.sql - what look-ahead gains on a table of yours: stock against look-ahead, in pairs.
--
--   sudo -u postgres psql -X -q -d DATABASE < docs/measure.sql
--   sudo -u postgres psql -X -q -d DATABASE -v table=orders < docs/measure.sql
--
-- As a superuser, with the caches empty (docs/start.md says how).  It takes the table that is named, or else
-- the largest that has a btree index in another order than the table's rows.  Five times each, stock and
-- look-ahead read 500 rows through that index, other rows each time.  The library is loaded by this
-- session only.  Nothing stays: not the extension either, unless it was there before.

\set ON_ERROR_STOP 1
\pset footer off
\pset pager off
set client_min_messages = warning;
\if :{?table}
\else
    \set table ''
\endif

load 'pg_lookahead';
select count(*) = 0 as is_new from pg_extension where extname = 'pg_lookahead' \gset
create extension if not exists pg_lookahead;
set max_parallel_workers_per_gather = 0;
set enable_seqscan = off;
set enable_bitmapscan = off;

-- the largest table with a btree index in another order than its rows
create temporary table chosen as
    select c.oid::regclass as relation, i.indexrelid::regclass as index, a.attname as attribute,
           s.correlation, pg_relation_size(c.oid) as bytes, s.histogram_bounds::text::text[] as bounds
    from pg_index i
        join pg_class c on c.oid = i.indrelid
        join pg_class x on x.oid = i.indexrelid
        join pg_am m on m.oid = x.relam
        join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0]
        join pg_stats s on s.schemaname = c.relnamespace::regnamespace::name
            and s.tablename = c.relname and s.attname = a.attname and not s.inherited
    where m.amname = 'btree' and i.indisvalid and i.indpred is null and c.relkind = 'r'
        and abs(s.correlation) < 0.5 and cardinality(s.histogram_bounds::text::text[]) > 60
        and case when :'table' = ''
            then c.relnamespace <> 'pg_catalog'::regnamespace and pg_relation_size(c.oid) >= 20 * 1024 * 1024
            else c.oid = to_regclass(:'table') end
    order by c.relpages desc limit 1;
select count(*) = 0 as is_none from chosen \gset
\if :is_none
    \echo 'No table of 20 MB, or not the one that was named, has statistics (ANALYZE) and a btree'
    \echo 'index in another order than its rows. docs/start.md has statements that make one.'
    \if :is_new
        drop extension pg_lookahead;
    \endif
    \quit
\endif
select relation as "table", index, round(correlation::numeric, 2) as correlation,
       pg_size_pretty(bytes) as size
from chosen;

-- 500 rows in the order of the index, from the nth bound of the column's histogram on
create function pg_temp.query(n int) returns text language sql as $$
    select format('select count(*), max(ctid) from (select ctid from %1$s where %2$I >= %3$L order by %2$I limit 500) s',
                  relation, attribute, bounds[n])
    from chosen
$$;
create function pg_temp.milliseconds(query text, look_ahead boolean) returns numeric language plpgsql as $$
declare
    began timestamptz;
begin
    perform set_config('pg_lookahead.enable', look_ahead::text, false);
    began := clock_timestamp();
    execute query;
    return round((extract(epoch from clock_timestamp() - began) * 1000)::numeric, 1);
end
$$;

-- catalogs and the index's upper pages are read once before, uncounted
select pg_temp.milliseconds(pg_temp.query(1), false) as uncounted \gset
create temporary table measured as
    select pair, pg_temp.milliseconds(pg_temp.query(10 * pair), false) as stock,
           pg_temp.milliseconds(pg_temp.query(10 * pair + 5), true) as ahead
    from generate_series(1, 5) pair;
select coalesce(sum(scans_activated), 0) as activated, coalesce(sum(blocks_issued), 0) as issued,
       coalesce(string_agg(distinct kind || ' by ' || index, ', '), 'no scan') as scans,
       coalesce(string_agg(distinct reason, '; '), '') as reasons
from pg_lookahead_last_statement() \gset
select pair, stock as "stock, ms", ahead as "look-ahead, ms", round(stock / greatest(ahead, 0.1), 2) as "times as fast"
from measured order by pair;

\pset format unaligned
\pset tuples_only on
select format('Look-ahead, %s: scans that began %s, reads started early %s', :'scans', :activated, :issued);
select case
    when :activated = 0 and :'reasons' <> '' then 'It did not begin: ' || :'reasons'
    when sum(stock) < 25 then format(
        E'Stock took %s ms for 500 rows: they were in memory.\nEmpty the caches first (docs/start.md).',
        round(avg(stock), 1))
    when :activated = 0 then 'It did not begin: docs/statistics.md says how to find out why.'
    else format(E'It is %s times as fast as stock on this table, cold.\nSingle pairs: %s to %s times',
                round(sum(stock) / greatest(sum(ahead), 0.1), 1), min(round(stock / greatest(ahead, 0.1), 1)),
                max(round(stock / greatest(ahead, 0.1), 1)))
    end
from measured;

drop table chosen, measured;
\if :is_new
    drop extension pg_lookahead;
\endif
