/* sql/pg_lookahead--0.1.0--0.2.0.sql */

-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION pg_lookahead UPDATE TO '0.2.0'" to load this file. \quit

-- Views keep what users have built on them and granted: their columns are renamed in place, and
-- the functions beneath them, whose result types change, are exchanged.

-- scans_armed becomes scans_activated.
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
    OUT stats_reset timestamp with time zone)
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
COMMENT ON FUNCTION pg_stat_lookahead_reset()
    IS 'sets the figures of pg_stat_lookahead and pg_stat_lookahead_index_build to zero';
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
