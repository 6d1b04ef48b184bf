/* sql/pg_lookahead--0.1.0--0.2.0.sql */

-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION pg_lookahead UPDATE TO '0.2.0'" to load this file. \quit

-- New last column: why a node did not look ahead, where that would not have been safe.
DROP FUNCTION pg_lookahead_last_statement();

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
    OUT capacity bigint,
    OUT reason text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_lookahead_last_statement_0_2'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;
