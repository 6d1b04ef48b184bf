/* sql/pg_lookahead--0.1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION pg_lookahead" to load this file. \quit

-- Counters of the whole server since the last reset.  Needs
-- shared_preload_libraries.
CREATE FUNCTION pg_stat_get_lookahead(
    OUT kind text,
    OUT scans_attached bigint,
    OUT scans_armed bigint,
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
    OUT stats_reset timestamp with time zone)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_stat_get_lookahead'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

CREATE VIEW pg_stat_lookahead AS
    SELECT * FROM pg_stat_get_lookahead();

GRANT SELECT ON pg_stat_lookahead TO PUBLIC;

CREATE FUNCTION pg_stat_lookahead_reset()
RETURNS void
AS 'MODULE_PATHNAME', 'pg_stat_lookahead_reset'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

REVOKE ALL ON FUNCTION pg_stat_lookahead_reset() FROM PUBLIC;

-- The same figures, one row per scan node, for the last statement of this
-- session that scanned an index.  Parallel workers are not included.
CREATE FUNCTION pg_lookahead_last_statement(
    OUT kind text,
    OUT relation regclass,
    OUT index regclass,
    OUT scans_attached bigint,
    OUT scans_armed bigint,
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
    OUT capacity bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_lookahead_last_statement'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

-- Index builds since the last reset, by what became of them: taken over, or left to
-- the server and why.  Times are milliseconds.  Needs shared_preload_libraries.
CREATE FUNCTION pg_stat_get_lookahead_index_build(
    OUT outcome text,
    OUT builds bigint,
    OUT parallel_builds bigint,
    OUT spilled_builds bigint,
    OUT index_rows bigint,
    OUT scan_time double precision,
    OUT sort_time double precision,
    OUT load_time double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_stat_get_lookahead_index_build'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

CREATE VIEW pg_stat_lookahead_index_build AS
    SELECT * FROM pg_stat_get_lookahead_index_build();

GRANT SELECT ON pg_stat_lookahead_index_build TO PUBLIC;
