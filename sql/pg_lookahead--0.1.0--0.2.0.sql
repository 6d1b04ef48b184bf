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
