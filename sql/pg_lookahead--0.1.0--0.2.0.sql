/* sql/pg_lookahead--0.1.0--0.2.0.sql */

-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION pg_lookahead UPDATE TO '0.2.0'" to load this file. \quit

-- Views keep what users have built on them and granted: their columns are renamed in place, and
-- the functions beneath them, whose result types change, are exchanged.

-- scans_armed becomes scans_activated; the times are new.
CREATE FUNCTION pg_stat_get_lookahead_new(
    OUT kind text,
    OUT scans_attached bigint,
    OUT scans_activated bigint,
    OUT blocks_foreseen bigint,
    OUT blocks_issued bigint,
    OUT blocks_cached bigint,
    OUT blocks_skipped_recent bigint,
    OUT blocks_skipped_sequential bigint,
    OUT blocks_on_time bigint,
    OUT blocks_late bigint,
    OUT blocks_wasted bigint,
    OUT entries_killed bigint,
    OUT leaf_pages_issued bigint,
    OUT stats_reset timestamp with time zone,
    OUT wait_time double precision,
    OUT saved_time double precision,
    OUT saved_time_error double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_stat_get_lookahead'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

ALTER VIEW pg_stat_lookahead RENAME COLUMN scans_armed TO scans_activated;
CREATE OR REPLACE VIEW pg_stat_lookahead AS
    SELECT s.* FROM pg_stat_get_lookahead_new() s;
DROP FUNCTION pg_stat_get_lookahead();
ALTER FUNCTION pg_stat_get_lookahead_new() RENAME TO pg_stat_get_lookahead;

-- outcome is divided into status and, as the new last column, reason; index_rows becomes
-- index_entries.
CREATE FUNCTION pg_stat_get_lookahead_index_build_new(
    OUT status text,
    OUT builds bigint,
    OUT parallel_builds bigint,
    OUT spilled_builds bigint,
    OUT index_entries bigint,
    OUT scan_time double precision,
    OUT sort_time double precision,
    OUT load_time double precision,
    OUT reason text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_stat_get_lookahead_index_build_0_2'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

ALTER VIEW pg_stat_lookahead_index_build RENAME COLUMN outcome TO status;
ALTER VIEW pg_stat_lookahead_index_build RENAME COLUMN index_rows TO index_entries;
CREATE OR REPLACE VIEW pg_stat_lookahead_index_build AS
    SELECT s.* FROM pg_stat_get_lookahead_index_build_new() s;
DROP FUNCTION pg_stat_get_lookahead_index_build();
ALTER FUNCTION pg_stat_get_lookahead_index_build_new() RENAME TO pg_stat_get_lookahead_index_build;

-- scans_armed becomes scans_activated; the new last column says why a node did not look ahead,
-- where that would not have been safe.
DROP FUNCTION pg_lookahead_last_statement();

CREATE FUNCTION pg_lookahead_last_statement(
    OUT kind text,
    OUT relation regclass,
    OUT index regclass,
    OUT scans_attached bigint,
    OUT scans_activated bigint,
    OUT blocks_foreseen bigint,
    OUT blocks_issued bigint,
    OUT blocks_cached bigint,
    OUT blocks_skipped_recent bigint,
    OUT blocks_skipped_sequential bigint,
    OUT blocks_on_time bigint,
    OUT blocks_late bigint,
    OUT blocks_wasted bigint,
    OUT entries_killed bigint,
    OUT leaf_pages_issued bigint,
    OUT avg_distance double precision,
    OUT max_distance bigint,
    OUT capacity bigint,
    OUT reason text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_lookahead_last_statement_0_2'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

-- Every object says what it is for.
COMMENT ON FUNCTION pg_stat_get_lookahead()
    IS 'figures of look-ahead in the whole server since the last reset; behind pg_stat_lookahead';
COMMENT ON FUNCTION pg_stat_get_lookahead_index_build()
    IS 'builds of btree indexes in the whole server since the last reset; behind pg_stat_lookahead_index_build';
COMMENT ON FUNCTION pg_lookahead_last_statement()
    IS 'figures of look-ahead for each index scan and join of the last statement of this session that had one';

COMMENT ON VIEW pg_stat_lookahead
    IS 'figures of look-ahead in the whole server, by kind of scan or join';
COMMENT ON COLUMN pg_stat_lookahead.kind
    IS 'index scan, index only scan, nested loop, hash join, bitmap heap scan, bitmap index scan, index insert or foreign key';
COMMENT ON COLUMN pg_stat_lookahead.scans_attached
    IS 'scans under observation; joins that were executed';
COMMENT ON COLUMN pg_stat_lookahead.scans_activated
    IS 'times that a scan or join began to look ahead';
COMMENT ON COLUMN pg_stat_lookahead.blocks_foreseen
    IS 'heap block visits known before their time';
COMMENT ON COLUMN pg_stat_lookahead.blocks_issued
    IS 'foreseen blocks whose read was started early';
COMMENT ON COLUMN pg_stat_lookahead.blocks_cached
    IS 'foreseen blocks that were found in shared buffers';
COMMENT ON COLUMN pg_stat_lookahead.blocks_skipped_recent
    IS 'foreseen blocks that were foreseen a moment before, too, and not looked at again';
COMMENT ON COLUMN pg_stat_lookahead.blocks_skipped_sequential
    IS 'foreseen blocks that were left to the read-ahead of the kernel';
COMMENT ON COLUMN pg_stat_lookahead.blocks_on_time
    IS 'issued blocks that were then read without a wait';
COMMENT ON COLUMN pg_stat_lookahead.blocks_late
    IS 'issued blocks that were still waited for';
COMMENT ON COLUMN pg_stat_lookahead.blocks_wasted
    IS 'issued blocks that were never visited';
COMMENT ON COLUMN pg_stat_lookahead.entries_killed
    IS 'dead index entries reported to the index';
COMMENT ON COLUMN pg_stat_lookahead.leaf_pages_issued
    IS 'index pages whose read was started early';
COMMENT ON COLUMN pg_stat_lookahead.stats_reset
    IS 'when the figures were last reset';
COMMENT ON COLUMN pg_stat_lookahead.wait_time
    IS 'milliseconds that timed reads took';
COMMENT ON COLUMN pg_stat_lookahead.saved_time
    IS 'milliseconds that they would have taken longer without look-ahead, an estimate';
COMMENT ON COLUMN pg_stat_lookahead.saved_time_error
    IS 'milliseconds by which the estimate may be wrong';

COMMENT ON VIEW pg_stat_lookahead_index_build
    IS 'builds of btree indexes in the whole server, by what became of them';
COMMENT ON COLUMN pg_stat_lookahead_index_build.status
    IS 'built by pg_lookahead, or left to the server';
COMMENT ON COLUMN pg_stat_lookahead_index_build.builds
    IS 'builds that came to their end';
COMMENT ON COLUMN pg_stat_lookahead_index_build.parallel_builds
    IS 'builds with workers';
COMMENT ON COLUMN pg_stat_lookahead_index_build.spilled_builds
    IS 'builds whose rows did not fit into the memory of the session that built';
COMMENT ON COLUMN pg_stat_lookahead_index_build.index_entries
    IS 'index entries written';
COMMENT ON COLUMN pg_stat_lookahead_index_build.scan_time
    IS 'milliseconds spent on reading the table and collecting rows';
COMMENT ON COLUMN pg_stat_lookahead_index_build.sort_time
    IS 'milliseconds spent on the last sort';
COMMENT ON COLUMN pg_stat_lookahead_index_build.load_time
    IS 'milliseconds spent on merging, and on writing pages';
COMMENT ON COLUMN pg_stat_lookahead_index_build.reason
    IS 'why the build was left to the server';

-- Statistics by statement and by index.

CREATE FUNCTION pg_stat_get_lookahead_statements(
    OUT userid oid,
    OUT dbid oid,
    OUT toplevel boolean,
    OUT queryid bigint,
    OUT executions bigint,
    OUT scans_activated bigint,
    OUT blocks_foreseen bigint,
    OUT blocks_issued bigint,
    OUT blocks_cached bigint,
    OUT blocks_skipped_recent bigint,
    OUT blocks_skipped_sequential bigint,
    OUT blocks_on_time bigint,
    OUT blocks_late bigint,
    OUT blocks_wasted bigint,
    OUT blocks_evicted bigint,
    OUT blocks_not_started bigint,
    OUT entries_killed bigint,
    OUT leaf_pages_issued bigint,
    OUT blocks_read bigint,
    OUT read_time double precision,
    OUT wait_time double precision,
    OUT saved_time double precision,
    OUT saved_time_error double precision,
    OUT reasons text[],
    OUT stats_since timestamp with time zone)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_stat_get_lookahead_statements'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

CREATE VIEW pg_stat_lookahead_statements AS
    SELECT s.* FROM pg_stat_get_lookahead_statements() s;

CREATE FUNCTION pg_stat_get_lookahead_indexes(
    OUT dbid oid,
    OUT relid oid,
    OUT indexrelid oid,
    OUT scans_activated bigint,
    OUT blocks_foreseen bigint,
    OUT blocks_issued bigint,
    OUT blocks_cached bigint,
    OUT blocks_skipped_recent bigint,
    OUT blocks_skipped_sequential bigint,
    OUT blocks_on_time bigint,
    OUT blocks_late bigint,
    OUT blocks_wasted bigint,
    OUT blocks_evicted bigint,
    OUT blocks_not_started bigint,
    OUT entries_killed bigint,
    OUT leaf_pages_issued bigint,
    OUT wait_time double precision,
    OUT saved_time double precision,
    OUT saved_time_error double precision,
    OUT stats_since timestamp with time zone)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_stat_get_lookahead_indexes'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

CREATE VIEW pg_stat_lookahead_indexes AS
    SELECT s.relid,
           n.nspname AS schemaname,
           t.relname,
           s.indexrelid,
           i.relname AS indexrelname,
           s.scans_activated,
           s.blocks_foreseen,
           s.blocks_issued,
           s.blocks_cached,
           s.blocks_skipped_recent,
           s.blocks_skipped_sequential,
           s.blocks_on_time,
           s.blocks_late,
           s.blocks_wasted,
           s.blocks_evicted,
           s.blocks_not_started,
           s.entries_killed,
           s.leaf_pages_issued,
           s.wait_time,
           s.saved_time,
           s.saved_time_error,
           s.stats_since
    FROM pg_stat_get_lookahead_indexes() s
    JOIN pg_catalog.pg_database d ON d.oid = s.dbid AND d.datname = pg_catalog.current_database()
    JOIN pg_catalog.pg_class t ON t.oid = s.relid
    JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
    LEFT JOIN pg_catalog.pg_class i ON i.oid = s.indexrelid;

CREATE FUNCTION pg_stat_get_lookahead_info(
    OUT statements bigint,
    OUT statements_max bigint,
    OUT statements_dealloc bigint,
    OUT indexes bigint,
    OUT indexes_max bigint,
    OUT indexes_dealloc bigint,
    OUT stats_reset timestamp with time zone)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_stat_get_lookahead_info'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

CREATE VIEW pg_stat_lookahead_info AS
    SELECT s.* FROM pg_stat_get_lookahead_info() s;

CREATE FUNCTION pg_stat_lookahead_statements_reset(
    userid oid DEFAULT 0,
    dbid oid DEFAULT 0,
    queryid bigint DEFAULT 0)
RETURNS void
AS 'MODULE_PATHNAME', 'pg_stat_lookahead_statements_reset'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

REVOKE ALL ON FUNCTION pg_stat_lookahead_statements_reset(oid, oid, bigint) FROM PUBLIC;

CREATE FUNCTION pg_lookahead_explain(query text)
RETURNS SETOF text
AS 'MODULE_PATHNAME', 'pg_lookahead_explain'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

GRANT SELECT ON pg_stat_lookahead_statements, pg_stat_lookahead_indexes, pg_stat_lookahead_info
    TO PUBLIC;

COMMENT ON FUNCTION pg_stat_get_lookahead_statements()
    IS 'figures of look-ahead by statement; behind pg_stat_lookahead_statements';
COMMENT ON FUNCTION pg_stat_get_lookahead_indexes()
    IS 'figures of look-ahead by table and index, of all databases; behind pg_stat_lookahead_indexes';
COMMENT ON FUNCTION pg_stat_get_lookahead_info()
    IS 'how full the statistics of statements and indexes are; behind pg_stat_lookahead_info';
COMMENT ON FUNCTION pg_stat_lookahead_statements_reset(oid, oid, bigint)
    IS 'removes the statistics of the statements of a user, of a database, with an identifier; 0 is any';
COMMENT ON FUNCTION pg_stat_lookahead_reset()
    IS 'sets all statistics of pg_lookahead to zero';
COMMENT ON FUNCTION pg_lookahead_explain(text)
    IS 'executes a statement, and returns its plan as EXPLAIN (ANALYZE, BUFFERS) does, with lines about look-ahead on every supported server';

COMMENT ON VIEW pg_stat_lookahead_statements
    IS 'figures of look-ahead by statement, for all executions that have read blocks, looked ahead, or were not allowed to';
COMMENT ON COLUMN pg_stat_lookahead_statements.userid
    IS 'who has executed the statement';
COMMENT ON COLUMN pg_stat_lookahead_statements.dbid
    IS 'the database in which it was executed';
COMMENT ON COLUMN pg_stat_lookahead_statements.toplevel
    IS 'a client has sent it; else a function, trigger or utility statement has executed it';
COMMENT ON COLUMN pg_stat_lookahead_statements.queryid
    IS 'identifier of the statement, as in pg_stat_statements';
COMMENT ON COLUMN pg_stat_lookahead_statements.executions
    IS 'executions that have read blocks, looked ahead, or were not allowed to';
COMMENT ON COLUMN pg_stat_lookahead_statements.scans_activated
    IS 'times that a scan, join or write began to look ahead';
COMMENT ON COLUMN pg_stat_lookahead_statements.blocks_foreseen
    IS 'block visits known before their time';
COMMENT ON COLUMN pg_stat_lookahead_statements.blocks_issued
    IS 'foreseen blocks whose read was started early';
COMMENT ON COLUMN pg_stat_lookahead_statements.blocks_cached
    IS 'foreseen blocks that were found in shared buffers';
COMMENT ON COLUMN pg_stat_lookahead_statements.blocks_skipped_recent
    IS 'foreseen blocks that were foreseen a moment before, too, and not looked at again';
COMMENT ON COLUMN pg_stat_lookahead_statements.blocks_skipped_sequential
    IS 'foreseen blocks that were left to the read-ahead of the kernel';
COMMENT ON COLUMN pg_stat_lookahead_statements.blocks_on_time
    IS 'issued blocks that were then read without a wait';
COMMENT ON COLUMN pg_stat_lookahead_statements.blocks_late
    IS 'issued blocks that were still waited for';
COMMENT ON COLUMN pg_stat_lookahead_statements.blocks_wasted
    IS 'issued blocks that were never visited';
COMMENT ON COLUMN pg_stat_lookahead_statements.blocks_evicted
    IS 'of the late blocks, those that had been read before and were evicted from memory meanwhile';
COMMENT ON COLUMN pg_stat_lookahead_statements.blocks_not_started
    IS 'foreseen blocks that were not cached, and whose read could not be started';
COMMENT ON COLUMN pg_stat_lookahead_statements.entries_killed
    IS 'dead index entries reported to the index';
COMMENT ON COLUMN pg_stat_lookahead_statements.leaf_pages_issued
    IS 'index pages whose read was started early';
COMMENT ON COLUMN pg_stat_lookahead_statements.blocks_read
    IS 'blocks that the statement has read into buffers, by look-ahead or without';
COMMENT ON COLUMN pg_stat_lookahead_statements.read_time
    IS 'milliseconds that these reads took, as the server measures it with track_io_timing; else 0';
COMMENT ON COLUMN pg_stat_lookahead_statements.wait_time
    IS 'milliseconds that reads took in scans and joins that pg_lookahead has timed';
COMMENT ON COLUMN pg_stat_lookahead_statements.saved_time
    IS 'milliseconds that these reads would have taken longer without look-ahead, an estimate; negative: it has cost so much';
COMMENT ON COLUMN pg_stat_lookahead_statements.saved_time_error
    IS 'milliseconds by which the estimate may be wrong for want of timed single reads';
COMMENT ON COLUMN pg_stat_lookahead_statements.reasons
    IS 'why scans, joins or writes were not allowed to look ahead';
COMMENT ON COLUMN pg_stat_lookahead_statements.stats_since
    IS 'when the first of these executions ended';
COMMENT ON VIEW pg_stat_lookahead_indexes
    IS 'figures of look-ahead by table and index of the current database; a null index: several, or a bitmap scan''s heap blocks';
COMMENT ON COLUMN pg_stat_lookahead_indexes.relid
    IS 'the table';
COMMENT ON COLUMN pg_stat_lookahead_indexes.schemaname
    IS 'its schema';
COMMENT ON COLUMN pg_stat_lookahead_indexes.relname
    IS 'its name';
COMMENT ON COLUMN pg_stat_lookahead_indexes.indexrelid
    IS 'the index, or null';
COMMENT ON COLUMN pg_stat_lookahead_indexes.indexrelname
    IS 'its name, or null';
COMMENT ON COLUMN pg_stat_lookahead_indexes.scans_activated
    IS 'times that a scan, join or write began to look ahead';
COMMENT ON COLUMN pg_stat_lookahead_indexes.blocks_foreseen
    IS 'block visits known before their time';
COMMENT ON COLUMN pg_stat_lookahead_indexes.blocks_issued
    IS 'foreseen blocks whose read was started early';
COMMENT ON COLUMN pg_stat_lookahead_indexes.blocks_cached
    IS 'foreseen blocks that were found in shared buffers';
COMMENT ON COLUMN pg_stat_lookahead_indexes.blocks_skipped_recent
    IS 'foreseen blocks that were foreseen a moment before, too, and not looked at again';
COMMENT ON COLUMN pg_stat_lookahead_indexes.blocks_skipped_sequential
    IS 'foreseen blocks that were left to the read-ahead of the kernel';
COMMENT ON COLUMN pg_stat_lookahead_indexes.blocks_on_time
    IS 'issued blocks that were then read without a wait';
COMMENT ON COLUMN pg_stat_lookahead_indexes.blocks_late
    IS 'issued blocks that were still waited for';
COMMENT ON COLUMN pg_stat_lookahead_indexes.blocks_wasted
    IS 'issued blocks that were never visited';
COMMENT ON COLUMN pg_stat_lookahead_indexes.blocks_evicted
    IS 'of the late blocks, those that had been read before and were evicted from memory meanwhile';
COMMENT ON COLUMN pg_stat_lookahead_indexes.blocks_not_started
    IS 'foreseen blocks that were not cached, and whose read could not be started';
COMMENT ON COLUMN pg_stat_lookahead_indexes.entries_killed
    IS 'dead index entries reported to the index';
COMMENT ON COLUMN pg_stat_lookahead_indexes.leaf_pages_issued
    IS 'index pages whose read was started early';
COMMENT ON COLUMN pg_stat_lookahead_indexes.wait_time
    IS 'milliseconds that reads took in scans and joins that pg_lookahead has timed';
COMMENT ON COLUMN pg_stat_lookahead_indexes.saved_time
    IS 'milliseconds that these reads would have taken longer without look-ahead, an estimate; negative: it has cost so much';
COMMENT ON COLUMN pg_stat_lookahead_indexes.saved_time_error
    IS 'milliseconds by which the estimate may be wrong for want of timed single reads';
COMMENT ON COLUMN pg_stat_lookahead_indexes.stats_since
    IS 'when the first of these scans ended';
COMMENT ON VIEW pg_stat_lookahead_info
    IS 'how full the statistics of statements and indexes are; dealloc: entries that have given way to others';
COMMENT ON COLUMN pg_stat_lookahead_info.statements
    IS 'entries of pg_stat_lookahead_statements';
COMMENT ON COLUMN pg_stat_lookahead_info.statements_max
    IS 'how many there can be (pg_lookahead.max_statements)';
COMMENT ON COLUMN pg_stat_lookahead_info.statements_dealloc
    IS 'entries of statements that have given way to others';
COMMENT ON COLUMN pg_stat_lookahead_info.indexes
    IS 'entries of tables and indexes, of all databases';
COMMENT ON COLUMN pg_stat_lookahead_info.indexes_max
    IS 'how many there can be (pg_lookahead.max_indexes)';
COMMENT ON COLUMN pg_stat_lookahead_info.indexes_dealloc
    IS 'entries of tables and indexes that have given way to others';
COMMENT ON COLUMN pg_stat_lookahead_info.stats_reset
    IS 'when all statistics were last reset';
-- ---- calibration of storage -------------------------------------------------------------
--
-- Bodies of functions are parsed here and now, so that they name objects, not words: the
-- extension may be moved to another schema, and search_path does not matter.

-- The table is not for dumps: what it says is of the storage of this machine, and wrong wherever a
-- dump is restored.  So pg_extension_config_dump() is not called for it.  pg_upgrade, which takes
-- files along, keeps its rows.
CREATE TABLE pg_lookahead_calibration (
    tablespace oid NOT NULL,
    tablespace_name name NOT NULL,
    measured_at timestamp with time zone NOT NULL,
    pattern text NOT NULL,
    depth integer NOT NULL,
    request_blocks integer NOT NULL,
    iops double precision NOT NULL,
    blocks_per_s double precision NOT NULL,
    latency_avg double precision NOT NULL,
    latency_p50 double precision NOT NULL,
    latency_p99 double precision NOT NULL,
    busy boolean NOT NULL,
    PRIMARY KEY (tablespace, pattern, depth, request_blocks));

GRANT SELECT ON pg_lookahead_calibration TO PUBLIC;

CREATE FUNCTION pg_lookahead_claim_tablespace(tablespace name)
RETURNS oid
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

REVOKE ALL ON FUNCTION pg_lookahead_claim_tablespace(name) FROM PUBLIC;

CREATE FUNCTION pg_lookahead_measure_storage(
    IN tablespace oid,
    OUT pattern text,
    OUT depth integer,
    OUT request_blocks integer,
    OUT iops double precision,
    OUT blocks_per_s double precision,
    OUT latency_avg double precision,
    OUT latency_p50 double precision,
    OUT latency_p99 double precision,
    OUT busy boolean)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE ROWS 20;

REVOKE ALL ON FUNCTION pg_lookahead_measure_storage(oid) FROM PUBLIC;

CREATE FUNCTION pg_lookahead_storage_in_use(
    IN tablespace oid DEFAULT 0,
    OUT calibrated boolean,
    OUT random_us double precision[],
    OUT sequential_us double precision,
    OUT extra_block_us double precision)
RETURNS record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

-- Whoever may execute it needs no other privilege.
CREATE FUNCTION pg_lookahead_calibrate(tablespace name DEFAULT NULL)
RETURNS SETOF pg_lookahead_calibration
LANGUAGE sql VOLATILE CALLED ON NULL INPUT SECURITY DEFINER PARALLEL UNSAFE ROWS 20
BEGIN ATOMIC
    -- before the rows are looked for, so that two sessions do not replace the same ones
    SELECT pg_lookahead_claim_tablespace($1);
    DELETE FROM pg_lookahead_calibration c
        WHERE c.tablespace = (SELECT pg_lookahead_claim_tablespace($1))
            OR NOT EXISTS (SELECT FROM pg_catalog.pg_tablespace t WHERE t.oid = c.tablespace);
    WITH measured AS MATERIALIZED (
        SELECT claimed.oid, m.*
            FROM (SELECT pg_lookahead_claim_tablespace($1) AS oid) claimed,
                pg_lookahead_measure_storage(claimed.oid) m)
    INSERT INTO pg_lookahead_calibration
        SELECT m.oid, t.spcname, (SELECT pg_catalog.clock_timestamp()), m.pattern, m.depth, m.request_blocks,
                m.iops, m.blocks_per_s, m.latency_avg, m.latency_p50, m.latency_p99, m.busy
            FROM measured m JOIN pg_catalog.pg_tablespace t ON t.oid = m.oid
        RETURNING *;
END;

REVOKE ALL ON FUNCTION pg_lookahead_calibrate(name) FROM PUBLIC;

CREATE FUNCTION pg_lookahead_forget_storage()
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

REVOKE ALL ON FUNCTION pg_lookahead_forget_storage() FROM PUBLIC;

CREATE FUNCTION pg_lookahead_calibration_reset()
RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
BEGIN ATOMIC
    DELETE FROM pg_lookahead_calibration;
    SELECT pg_lookahead_forget_storage();
END;

REVOKE ALL ON FUNCTION pg_lookahead_calibration_reset() FROM PUBLIC;

-- The knee is defined in src/calibrate/curve.c.
CREATE FUNCTION pg_lookahead_knee(
    IN iops double precision[],
    OUT knee double precision,
    OUT iops_at_knee double precision,
    OUT best_iops double precision)
RETURNS record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;

CREATE VIEW pg_lookahead_storage AS
    WITH curves AS (
        SELECT tablespace, array_agg(iops ORDER BY depth) AS iops
            FROM pg_lookahead_calibration WHERE pattern = 'random' GROUP BY tablespace),
    knees AS MATERIALIZED (
        SELECT c.tablespace, k.*, 2 ^ ceil(log(2, round(k.knee::numeric, 6)) - 0.000001) AS depth
            FROM curves c, pg_lookahead_knee(c.iops) k),
    figures AS (
        SELECT c.tablespace, k.knee, k.iops_at_knee, k.best_iops,
                max(measured_at) AS measured_at, bool_or(busy) AS busy,
                max(iops) FILTER (WHERE pattern = 'random' AND c.depth = 1) AS single_iops,
                max(latency_avg) FILTER (WHERE pattern = 'random' AND c.depth = 1) AS single_latency,
                max(blocks_per_s) FILTER (WHERE pattern = 'sequential') AS sequential,
                regr_slope(1e6 / iops, request_blocks) FILTER (WHERE pattern <> 'sequential' AND c.depth = k.depth) AS slope
            FROM pg_lookahead_calibration c JOIN knees k ON k.tablespace = c.tablespace
            GROUP BY c.tablespace, k.knee, k.iops_at_knee, k.best_iops)
    SELECT tablespace, spcname AS tablespace_name, measured_at, busy, single_iops, best_iops, knee,
            best_iops * single_latency / 1000 AS law_distance,
            1e6 / single_iops AS random_us,
            1e6 / iops_at_knee AS random_at_knee_us,
            1e6 / sequential AS sequential_us,
            greatest(slope, 0) AS extra_block_us
        FROM figures JOIN pg_tablespace t ON t.oid = tablespace;

GRANT SELECT ON pg_lookahead_storage TO PUBLIC;

CREATE VIEW pg_lookahead_recommendations AS
    WITH depths AS (
        SELECT s.*, least(256, greatest(8, 2 ^ ceil(log(2, s.knee::numeric) - 0.1)))::integer AS depth,
                current_setting('seq_page_cost')::double precision AS seq_page_cost
            FROM pg_lookahead_storage s),
    recommended AS (
        SELECT d.tablespace, d.tablespace_name, 1 AS place, 'pg_lookahead.max_distance' AS setting, NULL::boolean AS look_ahead,
                d.depth::text AS recommended,
                format('With %s reads in flight the storage makes nine tenths of the %s reads per second that it can; one at a time it makes %s. More only queue.',
                    round(d.knee::numeric, 1), round(d.best_iops), round(d.single_iops)) AS reason
            FROM (SELECT * FROM depths ORDER BY depth DESC, tablespace LIMIT 1) d
        UNION ALL
        SELECT tablespace, tablespace_name, 2, 'effective_io_concurrency', NULL, depth::text,
                format('The same for the server''s own prefetch in bitmap scans (from 18 on also in sequential scans). The law of IOPS x latency gives %s as the least.',
                    round(law_distance::numeric, 1))
            FROM depths
        UNION ALL
        SELECT tablespace, tablespace_name, 3, 'maintenance_io_concurrency', NULL, depth::text,
                'The same for VACUUM and other maintenance, of which there is little at a time.'
            FROM depths
        UNION ALL
        SELECT tablespace, tablespace_name, 4, 'random_page_cost', false,
                round((seq_page_cost * greatest(1, random_us / sequential_us))::numeric, 1)::text,
                format('A scan that waits for one random read after the other needs %s us for each, and a block of a sequential scan takes %s us. The server''s default of 4 supposes that nine of ten random reads are cached; where they are, divide by 10, but not below %s.',
                    round(random_us::numeric, 1), round(sequential_us::numeric, 1), seq_page_cost)
            FROM depths
        UNION ALL
        SELECT tablespace, tablespace_name, 5, 'random_page_cost', true,
                round((seq_page_cost * greatest(1, random_at_knee_us / sequential_us))::numeric, 1)::text,
                format('With look-ahead a random read takes %s us, as it does at the knee; right for scans of some hundred rows and more, too low for those of a few.',
                    round(random_at_knee_us::numeric, 1))
            FROM depths)
    SELECT r.tablespace_name, r.setting, r.look_ahead,
            coalesce((SELECT substr(o, length(r.setting) + 2) FROM pg_tablespace t, unnest(t.spcoptions) o
                WHERE t.oid = r.tablespace AND split_part(o, '=', 1) = r.setting),
                current_setting(r.setting, true)) AS current,
            r.recommended,
            CASE WHEN place = 1 THEN format('ALTER SYSTEM SET %s = %s', r.setting, r.recommended)
                ELSE format('ALTER TABLESPACE %I SET (%s = %s)', r.tablespace_name, r.setting, r.recommended) END AS command,
            CASE WHEN s.busy THEN r.reason || ' The storage was busy when it was measured.' ELSE r.reason END AS reason
        FROM recommended r JOIN pg_lookahead_storage s ON s.tablespace = r.tablespace
        ORDER BY r.tablespace_name, r.place;

GRANT SELECT ON pg_lookahead_recommendations TO PUBLIC;

COMMENT ON TABLE pg_lookahead_calibration
    IS 'reads of the storage of tablespaces as pg_lookahead_calibrate() has measured them on this machine; not dumped';
COMMENT ON COLUMN pg_lookahead_calibration.tablespace
    IS 'OID of the tablespace';
COMMENT ON COLUMN pg_lookahead_calibration.tablespace_name
    IS 'name of the tablespace when it was measured';
COMMENT ON COLUMN pg_lookahead_calibration.measured_at
    IS 'when it was measured';
COMMENT ON COLUMN pg_lookahead_calibration.pattern
    IS 'random (single blocks), neighbours (several blocks, the first one random) or sequential';
COMMENT ON COLUMN pg_lookahead_calibration.depth
    IS 'requests in flight';
COMMENT ON COLUMN pg_lookahead_calibration.request_blocks
    IS 'blocks of a request';
COMMENT ON COLUMN pg_lookahead_calibration.iops
    IS 'requests per second';
COMMENT ON COLUMN pg_lookahead_calibration.blocks_per_s
    IS 'blocks per second';
COMMENT ON COLUMN pg_lookahead_calibration.latency_avg
    IS 'milliseconds from the start of a request to its end, on average';
COMMENT ON COLUMN pg_lookahead_calibration.latency_p50
    IS 'milliseconds that half of the requests did not exceed, within 5%';
COMMENT ON COLUMN pg_lookahead_calibration.latency_p99
    IS 'milliseconds that 99 of 100 requests did not exceed, within 5%';
COMMENT ON COLUMN pg_lookahead_calibration.busy
    IS 'others used the storage meanwhile, or its rate was not steady';
COMMENT ON FUNCTION pg_lookahead_claim_tablespace(name)
    IS 'OID of a tablespace, or of the database''s, that nobody else may measure until the transaction ends; for pg_lookahead_calibrate()';
COMMENT ON FUNCTION pg_lookahead_measure_storage(oid)
    IS 'measures the storage of a tablespace, or with 0 of the database''s, for the policies of this server; behind pg_lookahead_calibrate()';
COMMENT ON FUNCTION pg_lookahead_storage_in_use(oid)
    IS 'microseconds per block that look-ahead goes by in a tablespace, or with 0 in the database''s: random reads with 1, 2, 4, ... 256 in flight, sequential ones, further neighbours; measured if calibrated, else assumed';
COMMENT ON FUNCTION pg_lookahead_calibrate(name)
    IS 'measures the storage of a tablespace, by default of the database''s, for some seconds, and keeps and returns what it has found';
COMMENT ON FUNCTION pg_lookahead_forget_storage()
    IS 'forgets what the policies of this server go by, of all tablespaces; behind pg_lookahead_calibration_reset()';
COMMENT ON FUNCTION pg_lookahead_calibration_reset()
    IS 'forgets what has been measured, of all tablespaces';
COMMENT ON FUNCTION pg_lookahead_knee(double precision[])
    IS 'least number of reads in flight that reaches nine tenths of the rate with the most in flight, from the rates with 1, 2, 4, ...; and the rates of both, on the curve that fits best';

COMMENT ON VIEW pg_lookahead_storage
    IS 'what follows from pg_lookahead_calibration, by tablespace';
COMMENT ON COLUMN pg_lookahead_storage.tablespace
    IS 'OID of the tablespace';
COMMENT ON COLUMN pg_lookahead_storage.tablespace_name
    IS 'name of the tablespace';
COMMENT ON COLUMN pg_lookahead_storage.measured_at
    IS 'when it was measured';
COMMENT ON COLUMN pg_lookahead_storage.busy
    IS 'others used the storage meanwhile, or its rate was not steady';
COMMENT ON COLUMN pg_lookahead_storage.single_iops
    IS 'random reads per second, one at a time';
COMMENT ON COLUMN pg_lookahead_storage.best_iops
    IS 'random reads per second with 256 in flight, on the curve that fits what was measured';
COMMENT ON COLUMN pg_lookahead_storage.knee
    IS 'least number of reads in flight that reaches nine tenths of best_iops';
COMMENT ON COLUMN pg_lookahead_storage.law_distance
    IS 'best_iops x latency of a single read: reads in flight without which best_iops cannot be reached';
COMMENT ON COLUMN pg_lookahead_storage.random_us
    IS 'microseconds for each random read, one at a time';
COMMENT ON COLUMN pg_lookahead_storage.random_at_knee_us
    IS 'microseconds for each random read, with as many in flight as the knee says';
COMMENT ON COLUMN pg_lookahead_storage.sequential_us
    IS 'microseconds for each block of sequential reads';
COMMENT ON COLUMN pg_lookahead_storage.extra_block_us
    IS 'microseconds that a further neighbouring block adds to a request, at the knee';

COMMENT ON VIEW pg_lookahead_recommendations
    IS 'settings that suit the storage as it was measured; nothing is set';
COMMENT ON COLUMN pg_lookahead_recommendations.tablespace_name
    IS 'name of the tablespace whose storage is the reason';
COMMENT ON COLUMN pg_lookahead_recommendations.setting
    IS 'name of the setting';
COMMENT ON COLUMN pg_lookahead_recommendations.look_ahead
    IS 'whether the value is for scans that look ahead; null: for all';
COMMENT ON COLUMN pg_lookahead_recommendations.current
    IS 'value in force in this session for the tablespace';
COMMENT ON COLUMN pg_lookahead_recommendations.recommended
    IS 'value that suits the storage';
COMMENT ON COLUMN pg_lookahead_recommendations.command
    IS 'statement that would set it';
COMMENT ON COLUMN pg_lookahead_recommendations.reason
    IS 'why';
