/* sql/pg_lookahead--1.1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION pg_lookahead" to load this file. \quit

-- Views and functions in SQL are parsed when they are created, so that they name objects, not words:
-- the extension may be moved to another schema, and search_path does not matter.  But while this
-- script runs, the schema of the extension is searched after pg_catalog, and an object there that
-- fits the types better would be taken.  So functions of pg_catalog are named with it, and operators
-- have operands of exactly their types.

-- ---- statistics of the server -----------------------------------------------------------
--
-- They are counted since the last reset, and need shared_preload_libraries.  Times are milliseconds.

CREATE FUNCTION pg_stat_get_lookahead(
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

COMMENT ON FUNCTION pg_stat_get_lookahead()
    IS 'figures of look-ahead in the whole server since the last reset; behind pg_stat_lookahead';

CREATE VIEW pg_stat_lookahead AS
    SELECT s.* FROM pg_stat_get_lookahead() s;

GRANT SELECT ON pg_stat_lookahead TO PUBLIC;

COMMENT ON VIEW pg_stat_lookahead
    IS 'figures of look-ahead in the whole server, by kind of scan or join';
COMMENT ON COLUMN pg_stat_lookahead.kind
    IS 'index scan, index only scan, nested loop, hash join, bitmap heap scan, bitmap index scan, index insert, foreign key, toast, subplan or tid scan';
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

-- By what became of an index build: taken over, or left to the server and why.
CREATE FUNCTION pg_stat_get_lookahead_index_build(
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
AS 'MODULE_PATHNAME', 'pg_stat_get_lookahead_index_build_1_0'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION pg_stat_get_lookahead_index_build()
    IS 'builds of btree indexes in the whole server since the last reset; behind pg_stat_lookahead_index_build';

CREATE VIEW pg_stat_lookahead_index_build AS
    SELECT s.* FROM pg_stat_get_lookahead_index_build() s;

GRANT SELECT ON pg_stat_lookahead_index_build TO PUBLIC;

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

COMMENT ON FUNCTION pg_stat_get_lookahead_statements()
    IS 'figures of look-ahead by statement; behind pg_stat_lookahead_statements';

CREATE VIEW pg_stat_lookahead_statements AS
    SELECT s.* FROM pg_stat_get_lookahead_statements() s;

GRANT SELECT ON pg_stat_lookahead_statements TO PUBLIC;

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

COMMENT ON FUNCTION pg_stat_get_lookahead_indexes()
    IS 'figures of look-ahead by table and index, of all databases; behind pg_stat_lookahead_indexes';

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

GRANT SELECT ON pg_stat_lookahead_indexes TO PUBLIC;

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

COMMENT ON FUNCTION pg_stat_get_lookahead_info()
    IS 'how full the statistics of statements and indexes are; behind pg_stat_lookahead_info';

CREATE VIEW pg_stat_lookahead_info AS
    SELECT s.* FROM pg_stat_get_lookahead_info() s;

GRANT SELECT ON pg_stat_lookahead_info TO PUBLIC;

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

-- Logical replication: what apply workers look ahead for.
CREATE FUNCTION pg_stat_get_lookahead_apply(
    OUT subid oid,
    OUT pid integer,
    OUT state text,
    OUT queue_size bigint,
    OUT queued_messages bigint,
    OUT queued_bytes bigint,
    OUT messages bigint,
    OUT changes bigint,
    OUT changes_ahead bigint,
    OUT changes_left bigint,
    OUT locked bigint,
    OUT errors bigint,
    OUT reason text,
    OUT blocks_foreseen bigint,
    OUT blocks_issued bigint,
    OUT blocks_cached bigint,
    OUT blocks_on_time bigint,
    OUT blocks_late bigint,
    OUT blocks_wasted bigint,
    OUT read_wait_time double precision,
    OUT saved_time double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_stat_get_lookahead_apply'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION pg_stat_get_lookahead_apply()
    IS 'figures of the workers that apply changes; behind pg_stat_lookahead_apply';

CREATE VIEW pg_stat_lookahead_apply AS
    SELECT a.subid, s.subname, a.pid, a.state, a.queue_size, a.queued_messages, a.queued_bytes, a.messages, a.changes, a.changes_ahead, a.changes_left, a.locked, a.errors, a.reason, a.blocks_foreseen, a.blocks_issued, a.blocks_cached, a.blocks_on_time, a.blocks_late, a.blocks_wasted, a.read_wait_time, a.saved_time
    FROM pg_stat_get_lookahead_apply() a LEFT JOIN pg_catalog.pg_subscription s ON s.oid = a.subid;

GRANT SELECT ON pg_stat_lookahead_apply TO PUBLIC;

COMMENT ON VIEW pg_stat_lookahead_apply
    IS 'workers of logical replication that apply changes: what they look ahead for';
COMMENT ON COLUMN pg_stat_lookahead_apply.subid
    IS 'subscription whose changes the worker applies';
COMMENT ON COLUMN pg_stat_lookahead_apply.subname
    IS 'name of the subscription';
COMMENT ON COLUMN pg_stat_lookahead_apply.pid
    IS 'process of the worker';
COMMENT ON COLUMN pg_stat_lookahead_apply.state
    IS 'off: look-ahead is switched off; passive: no change has waited; observing: reads are timed; ahead: it looks ahead';
COMMENT ON COLUMN pg_stat_lookahead_apply.queue_size
    IS 'bytes of memory for messages that are received ahead';
COMMENT ON COLUMN pg_stat_lookahead_apply.queued_messages
    IS 'messages in it';
COMMENT ON COLUMN pg_stat_lookahead_apply.queued_bytes
    IS 'bytes of these';
COMMENT ON COLUMN pg_stat_lookahead_apply.messages
    IS 'messages handed over to the server';
COMMENT ON COLUMN pg_stat_lookahead_apply.changes
    IS 'changes among them, without those of streamed transactions';
COMMENT ON COLUMN pg_stat_lookahead_apply.changes_ahead
    IS 'changes that were looked at before their turn';
COMMENT ON COLUMN pg_stat_lookahead_apply.changes_left
    IS 'changes that nothing was known of before their turn';
COMMENT ON COLUMN pg_stat_lookahead_apply.locked
    IS 'times that looking ahead was given up because a table was locked, or being changed';
COMMENT ON COLUMN pg_stat_lookahead_apply.errors
    IS 'errors of looking ahead, which were dropped';
COMMENT ON COLUMN pg_stat_lookahead_apply.reason
    IS 'why nothing was known of the last of these changes';
COMMENT ON COLUMN pg_stat_lookahead_apply.blocks_foreseen
    IS 'visits of blocks known in advance';
COMMENT ON COLUMN pg_stat_lookahead_apply.blocks_issued
    IS 'blocks whose reads were started early';
COMMENT ON COLUMN pg_stat_lookahead_apply.blocks_cached
    IS 'foreseen blocks that were found in shared buffers';
COMMENT ON COLUMN pg_stat_lookahead_apply.blocks_on_time
    IS 'issued blocks that were read without a wait';
COMMENT ON COLUMN pg_stat_lookahead_apply.blocks_late
    IS 'issued blocks that were still waited for';
COMMENT ON COLUMN pg_stat_lookahead_apply.blocks_wasted
    IS 'issued blocks that were not needed';
COMMENT ON COLUMN pg_stat_lookahead_apply.read_wait_time
    IS 'milliseconds that timed reads have taken';
COMMENT ON COLUMN pg_stat_lookahead_apply.saved_time
    IS 'milliseconds by which they would have taken longer, estimated';

-- Recovery: how it goes on, and what it waits for.
CREATE FUNCTION pg_stat_get_lookahead_replay(
    OUT state text,
    OUT started timestamp with time zone,
    OUT ended timestamp with time zone,
    OUT waiting_for text,
    OUT replay_lsn pg_lsn,
    OUT bytes_behind bigint,
    OUT catch_up_time double precision,
    OUT wal_bytes bigint,
    OUT records bigint,
    OUT blocks bigint,
    OUT wal_rate_1 double precision,
    OUT wal_rate_5 double precision,
    OUT wal_rate_15 double precision,
    OUT record_rate_1 double precision,
    OUT record_rate_5 double precision,
    OUT record_rate_15 double precision,
    OUT block_rate_1 double precision,
    OUT block_rate_5 double precision,
    OUT block_rate_15 double precision,
    OUT busy_time double precision,
    OUT wal_wait_time double precision,
    OUT read_wait_time double precision,
    OUT conflict_wait_time double precision,
    OUT pause_time double precision,
    OUT wal_waits bigint,
    OUT read_waits bigint,
    OUT conflict_waits bigint,
    OUT pauses bigint,
    OUT depth integer,
    OUT depth_by text,
    OUT blocks_read bigint,
    OUT blocks_advised bigint,
    OUT blocks_on_time bigint,
    OUT blocks_late bigint,
    OUT blocks_wasted bigint)
RETURNS record
AS 'MODULE_PATHNAME', 'pg_stat_get_lookahead_replay'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION pg_stat_get_lookahead_replay()
    IS 'figures of recovery since the server started; behind pg_stat_lookahead_replay';

CREATE VIEW pg_stat_lookahead_replay AS
    SELECT s.* FROM pg_stat_get_lookahead_replay() s;

GRANT SELECT ON pg_stat_lookahead_replay TO PUBLIC;

COMMENT ON VIEW pg_stat_lookahead_replay
    IS 'recovery, of a standby or after a crash: how fast it is, what it waits for, how far it reads ahead';
COMMENT ON COLUMN pg_stat_lookahead_replay.state
    IS 'crash recovery, archive recovery, standby, or ended; null: the server has not recovered since it started';
COMMENT ON COLUMN pg_stat_lookahead_replay.started
    IS 'when redo began';
COMMENT ON COLUMN pg_stat_lookahead_replay.ended
    IS 'when redo ended';
COMMENT ON COLUMN pg_stat_lookahead_replay.waiting_for
    IS 'at this moment: wal, reads, conflict or pause; processor: for none of them';
COMMENT ON COLUMN pg_stat_lookahead_replay.replay_lsn
    IS 'end of the last record that was replayed';
COMMENT ON COLUMN pg_stat_lookahead_replay.bytes_behind
    IS 'bytes of WAL from there to the end of what the sending server has, as far as is known; null without a WAL receiver';
COMMENT ON COLUMN pg_stat_lookahead_replay.catch_up_time
    IS 'milliseconds until replay has caught up, estimated; null: it does not catch up, or that is not known';
COMMENT ON COLUMN pg_stat_lookahead_replay.wal_bytes
    IS 'bytes of WAL replayed';
COMMENT ON COLUMN pg_stat_lookahead_replay.records
    IS 'records replayed';
COMMENT ON COLUMN pg_stat_lookahead_replay.blocks
    IS 'blocks that these have changed or looked at';
COMMENT ON COLUMN pg_stat_lookahead_replay.wal_rate_1
    IS 'bytes of WAL per second, an average over 1 minute';
COMMENT ON COLUMN pg_stat_lookahead_replay.wal_rate_5
    IS 'bytes of WAL per second, an average over 5 minutes';
COMMENT ON COLUMN pg_stat_lookahead_replay.wal_rate_15
    IS 'bytes of WAL per second, an average over 15 minutes';
COMMENT ON COLUMN pg_stat_lookahead_replay.record_rate_1
    IS 'records per second, an average over 1 minute';
COMMENT ON COLUMN pg_stat_lookahead_replay.record_rate_5
    IS 'records per second, an average over 5 minutes';
COMMENT ON COLUMN pg_stat_lookahead_replay.record_rate_15
    IS 'records per second, an average over 15 minutes';
COMMENT ON COLUMN pg_stat_lookahead_replay.block_rate_1
    IS 'blocks per second, an average over 1 minute';
COMMENT ON COLUMN pg_stat_lookahead_replay.block_rate_5
    IS 'blocks per second, an average over 5 minutes';
COMMENT ON COLUMN pg_stat_lookahead_replay.block_rate_15
    IS 'blocks per second, an average over 15 minutes';
COMMENT ON COLUMN pg_stat_lookahead_replay.busy_time
    IS 'milliseconds in which replay did not wait for any of the following';
COMMENT ON COLUMN pg_stat_lookahead_replay.wal_wait_time
    IS 'milliseconds in which there was no WAL to replay';
COMMENT ON COLUMN pg_stat_lookahead_replay.read_wait_time
    IS 'milliseconds of records that waited for reads';
COMMENT ON COLUMN pg_stat_lookahead_replay.conflict_wait_time
    IS 'milliseconds of records that waited for sessions';
COMMENT ON COLUMN pg_stat_lookahead_replay.pause_time
    IS 'milliseconds in which replay was paused or delayed';
COMMENT ON COLUMN pg_stat_lookahead_replay.wal_waits
    IS 'times that replay waited for WAL';
COMMENT ON COLUMN pg_stat_lookahead_replay.read_waits
    IS 'records that waited for reads';
COMMENT ON COLUMN pg_stat_lookahead_replay.conflict_waits
    IS 'records that waited for sessions';
COMMENT ON COLUMN pg_stat_lookahead_replay.pauses
    IS 'times that replay was paused or delayed';
COMMENT ON COLUMN pg_stat_lookahead_replay.depth
    IS 'reads that the server keeps in flight ahead of replay, at most; 0: it does not read ahead';
COMMENT ON COLUMN pg_stat_lookahead_replay.depth_by
    IS 'what the depth was chosen by: default, setting, calibration, learning, or memory, where reads come from';
COMMENT ON COLUMN pg_stat_lookahead_replay.blocks_read
    IS 'blocks that replay has read into shared buffers';
COMMENT ON COLUMN pg_stat_lookahead_replay.blocks_advised
    IS 'blocks whose reads were started early';
COMMENT ON COLUMN pg_stat_lookahead_replay.blocks_on_time
    IS '... that were then read without a wait';
COMMENT ON COLUMN pg_stat_lookahead_replay.blocks_late
    IS '... that were still waited for';
COMMENT ON COLUMN pg_stat_lookahead_replay.blocks_wasted
    IS '... that were not read after all';

CREATE FUNCTION pg_stat_lookahead_reset()
RETURNS void
AS 'MODULE_PATHNAME', 'pg_stat_lookahead_reset'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

REVOKE ALL ON FUNCTION pg_stat_lookahead_reset() FROM PUBLIC;

COMMENT ON FUNCTION pg_stat_lookahead_reset()
    IS 'sets all statistics of pg_lookahead to zero';

CREATE FUNCTION pg_stat_lookahead_statements_reset(
    userid oid DEFAULT 0,
    dbid oid DEFAULT 0,
    queryid bigint DEFAULT 0)
RETURNS void
AS 'MODULE_PATHNAME', 'pg_stat_lookahead_statements_reset'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

REVOKE ALL ON FUNCTION pg_stat_lookahead_statements_reset(oid, oid, bigint) FROM PUBLIC;

COMMENT ON FUNCTION pg_stat_lookahead_statements_reset(oid, oid, bigint)
    IS 'removes the statistics of the statements of a user, of a database, with an identifier; 0 is any';

-- ---- this session ------------------------------------------------------------------------

-- One row per scan node, for the last statement of this session that scanned an index.  Parallel
-- workers are not included.  The reason says why a node did not look ahead, where that would not
-- have been safe.
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
AS 'MODULE_PATHNAME', 'pg_lookahead_last_statement_1_0'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION pg_lookahead_last_statement()
    IS 'figures of look-ahead for each index scan and join of the last statement of this session that had one';

CREATE FUNCTION pg_lookahead_explain(query text)
RETURNS SETOF text
AS 'MODULE_PATHNAME', 'pg_lookahead_explain'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION pg_lookahead_explain(text)
    IS 'executes a statement, and returns its plan as EXPLAIN (ANALYZE, BUFFERS) does, with lines about look-ahead on every supported server';

-- ---- calibration of storage --------------------------------------------------------------

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
    tuple_us double precision,
    PRIMARY KEY (tablespace, pattern, depth, request_blocks));

GRANT SELECT ON pg_lookahead_calibration TO PUBLIC;

COMMENT ON TABLE pg_lookahead_calibration
    IS 'reads of the storage of tablespaces as pg_lookahead_calibrate() has measured them on this machine; not dumped';
COMMENT ON COLUMN pg_lookahead_calibration.tablespace
    IS 'OID of the tablespace';
COMMENT ON COLUMN pg_lookahead_calibration.tablespace_name
    IS 'name of the tablespace when it was measured';
COMMENT ON COLUMN pg_lookahead_calibration.measured_at
    IS 'when it was measured';
COMMENT ON COLUMN pg_lookahead_calibration.pattern
    IS 'random (single blocks), neighbours (several blocks, the first one random), sequential, or memory (a catalog that is scanned there)';
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
COMMENT ON COLUMN pg_lookahead_calibration.tuple_us
    IS 'microseconds of the processor for a tuple of a sequential scan in memory, its condition and its count, by their share in the cost of a query; only of the pattern memory';

CREATE FUNCTION pg_lookahead_claim_tablespace(tablespace name)
RETURNS oid
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE;

REVOKE ALL ON FUNCTION pg_lookahead_claim_tablespace(name) FROM PUBLIC;

COMMENT ON FUNCTION pg_lookahead_claim_tablespace(name)
    IS 'OID of a tablespace, or of the database''s, that nobody else may measure until the transaction ends; for pg_lookahead_calibrate()';

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
    OUT busy boolean,
    OUT tuple_us double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE ROWS 20;

REVOKE ALL ON FUNCTION pg_lookahead_measure_storage(oid) FROM PUBLIC;

COMMENT ON FUNCTION pg_lookahead_measure_storage(oid)
    IS 'measures the storage of a tablespace, or with 0 of the database''s, for the policies of this server; behind pg_lookahead_calibrate()';

CREATE FUNCTION pg_lookahead_storage_in_use(
    IN tablespace oid DEFAULT 0,
    OUT calibrated boolean,
    OUT random_us double precision[],
    OUT sequential_us double precision,
    OUT extra_block_us double precision,
    OUT tuple_us double precision)
RETURNS record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION pg_lookahead_storage_in_use(oid)
    IS 'microseconds per block that look-ahead goes by in a tablespace, or with 0 in the database''s: random reads with 1, 2, 4, ... 256 in flight, sequential ones, further neighbours; and of the processor for a row; measured if calibrated, else assumed';

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
                m.iops, m.blocks_per_s, m.latency_avg, m.latency_p50, m.latency_p99, m.busy, m.tuple_us
            FROM measured m JOIN pg_catalog.pg_tablespace t ON t.oid = m.oid
        RETURNING *;
END;

REVOKE ALL ON FUNCTION pg_lookahead_calibrate(name) FROM PUBLIC;

COMMENT ON FUNCTION pg_lookahead_calibrate(name)
    IS 'measures the storage of a tablespace, by default of the database''s, for some seconds, and keeps and returns what it has found';

CREATE FUNCTION pg_lookahead_forget_storage()
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

REVOKE ALL ON FUNCTION pg_lookahead_forget_storage() FROM PUBLIC;

COMMENT ON FUNCTION pg_lookahead_forget_storage()
    IS 'forgets what the policies of this server go by, of all tablespaces; behind pg_lookahead_calibration_reset()';

CREATE FUNCTION pg_lookahead_calibration_reset()
RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
BEGIN ATOMIC
    DELETE FROM pg_lookahead_calibration;
    SELECT pg_lookahead_forget_storage();
END;

REVOKE ALL ON FUNCTION pg_lookahead_calibration_reset() FROM PUBLIC;

COMMENT ON FUNCTION pg_lookahead_calibration_reset()
    IS 'forgets what has been measured, of all tablespaces';

-- The knee is defined in src/calibrate/curve.c.
CREATE FUNCTION pg_lookahead_knee(
    IN iops double precision[],
    OUT knee double precision,
    OUT iops_at_knee double precision,
    OUT best_iops double precision)
RETURNS record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;

COMMENT ON FUNCTION pg_lookahead_knee(double precision[])
    IS 'least number of reads in flight that reaches nine tenths of the rate with the most in flight, from the rates with 1, 2, 4, ...; and the rates of both, on the curve that fits best';

-- Its depth is the first measured one, as in the same file.
CREATE VIEW pg_lookahead_storage AS
    WITH curves AS (
        SELECT c.tablespace, pg_catalog.array_agg(c.iops ORDER BY c.depth) AS iops
            FROM pg_lookahead_calibration c WHERE c.pattern = 'random' GROUP BY c.tablespace),
    knees AS MATERIALIZED (
        SELECT c.tablespace, k.*,
                pg_catalog.power(2.0::double precision, pg_catalog.ceil(pg_catalog.ln(k.knee) / pg_catalog.ln(2.0::double precision)
                    - 0.000001::double precision))::integer AS depth
            FROM curves c, pg_lookahead_knee(c.iops) k),
    figures AS (
        SELECT c.tablespace, k.knee, k.iops_at_knee, k.best_iops,
                pg_catalog.max(c.measured_at) AS measured_at, pg_catalog.bool_or(c.busy) AS busy,
                pg_catalog.max(c.iops) FILTER (WHERE c.pattern = 'random' AND c.depth = 1) AS single_iops,
                pg_catalog.max(c.latency_avg) FILTER (WHERE c.pattern = 'random' AND c.depth = 1) AS single_latency,
                pg_catalog.max(c.blocks_per_s) FILTER (WHERE c.pattern = 'sequential') AS sequential,
                pg_catalog.regr_slope(1e6::double precision / c.iops, c.request_blocks::double precision)
                    FILTER (WHERE (c.pattern = 'random' OR c.pattern = 'neighbours') AND c.depth = k.depth) AS slope,
                pg_catalog.max(c.tuple_us) AS tuple_us
            FROM pg_lookahead_calibration c JOIN knees k ON k.tablespace = c.tablespace
            GROUP BY c.tablespace, k.knee, k.iops_at_knee, k.best_iops)
    SELECT f.tablespace, t.spcname AS tablespace_name, f.measured_at, f.busy, f.single_iops, f.best_iops, f.knee,
            f.best_iops * f.single_latency / 1000::double precision AS law_distance,
            1e6::double precision / f.single_iops AS random_us,
            1e6::double precision / f.iops_at_knee AS random_at_knee_us,
            1e6::double precision / f.sequential AS sequential_us,
            greatest(f.slope, 0::double precision) AS extra_block_us, f.tuple_us
        FROM figures f JOIN pg_catalog.pg_tablespace t ON t.oid = f.tablespace;

GRANT SELECT ON pg_lookahead_storage TO PUBLIC;

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
COMMENT ON COLUMN pg_lookahead_storage.tuple_us
    IS 'microseconds of the processor for a tuple of a sequential scan in memory, its condition and its count';

CREATE VIEW pg_lookahead_recommendations AS
    WITH depths AS (
        SELECT s.*, least(256, greatest(8, pg_catalog.power(2.0::double precision, pg_catalog.ceil(pg_catalog.ln(s.knee) / pg_catalog.ln(2.0::double precision)
                    - 0.1::double precision))::integer)) AS depth,
                pg_catalog.current_setting('seq_page_cost')::double precision AS seq_page_cost
            FROM pg_lookahead_storage s),
    recommended AS (
        SELECT d.tablespace, d.tablespace_name, 1 AS place, 'pg_lookahead.max_distance' AS setting, NULL::boolean AS look_ahead,
                d.depth::text AS recommended,
                pg_catalog.format('With %s reads in flight the storage makes nine tenths of the %s reads per second that it can; one at a time it makes %s. More only queue.',
                    pg_catalog.round(d.knee::numeric, 1), pg_catalog.round(d.best_iops), pg_catalog.round(d.single_iops)) AS reason
            FROM (SELECT * FROM depths ORDER BY depth DESC, tablespace LIMIT 1) d
        UNION ALL
        SELECT tablespace, tablespace_name, 2, 'effective_io_concurrency', NULL, depth::text,
                pg_catalog.format('The same for the server''s own prefetch in bitmap scans (from 18 on also in sequential scans). The law of IOPS x latency gives %s as the least.',
                    pg_catalog.round(law_distance::numeric, 1))
            FROM depths
        UNION ALL
        SELECT tablespace, tablespace_name, 3, 'maintenance_io_concurrency', NULL, depth::text,
                'The same for VACUUM and other maintenance, of which there is little at a time.'
            FROM depths
        UNION ALL
        SELECT tablespace, tablespace_name, 4, 'random_page_cost', false,
                pg_catalog.round((seq_page_cost * greatest(1::double precision, random_us / sequential_us))::numeric, 1)::text,
                pg_catalog.format('A scan that waits for one random read after the other needs %s us for each, and a block of a sequential scan takes %s us. The server''s default of 4 supposes that nine of ten random reads are cached; where they are, divide by 10, but not below %s.',
                    pg_catalog.round(random_us::numeric, 1), pg_catalog.round(sequential_us::numeric, 1), seq_page_cost)
            FROM depths
        UNION ALL
        SELECT tablespace, tablespace_name, 5, 'random_page_cost', true,
                pg_catalog.round((seq_page_cost * greatest(1::double precision, random_at_knee_us / sequential_us))::numeric, 1)::text,
                pg_catalog.format('With look-ahead a random read takes %s us, as it does at the knee; right for scans of some hundred rows and more, too low for those of a few.',
                    pg_catalog.round(random_at_knee_us::numeric, 1))
            FROM depths)
    SELECT r.tablespace_name, r.setting, r.look_ahead,
            coalesce((SELECT pg_catalog.substr(o, pg_catalog.length(r.setting) + 2) FROM pg_catalog.pg_tablespace t, pg_catalog.unnest(t.spcoptions) o
                WHERE t.oid = r.tablespace AND pg_catalog.split_part(o, '=', 1) = r.setting),
                pg_catalog.current_setting(r.setting, true)) AS current,
            r.recommended,
            CASE WHEN place = 1 THEN pg_catalog.format('ALTER SYSTEM SET %s = %s', r.setting, r.recommended)
                ELSE pg_catalog.format('ALTER TABLESPACE %I SET (%s = %s)', r.tablespace_name, r.setting, r.recommended) END AS command,
            CASE WHEN s.busy THEN r.reason || ' The storage was busy when it was measured.' ELSE r.reason END AS reason
        FROM recommended r JOIN pg_lookahead_storage s ON s.tablespace = r.tablespace
        ORDER BY r.tablespace_name, r.place;

GRANT SELECT ON pg_lookahead_recommendations TO PUBLIC;

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

-- ---- the report --------------------------------------------------------------------------
--
-- What to change, so that statements wait less.  Functions in PL/pgSQL look up the extension's
-- schema when they run, because it can be changed, and name what they find there with it: nothing
-- in another schema is ever called, whatever search_path is.

CREATE FUNCTION pg_lookahead_library(
    OUT built_for text,
    OUT server text,
    OUT disabled text[])
RETURNS record
AS 'MODULE_PATHNAME', 'pg_lookahead_library'
LANGUAGE C STRICT STABLE PARALLEL SAFE;

COMMENT ON FUNCTION pg_lookahead_library()
    IS 'for which release of the server the library was built, which one runs, and what is off because they differ';

-- Every reason that src/ gives is here, as dev/lint checks.
CREATE FUNCTION pg_lookahead_reasons(
    OUT reason text,
    OUT meaning text,
    OUT advice text)
RETURNS SETOF record
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
VALUES
    ('a function is volatile',
     'a volatile function in C is called for rows that would be taken early; how often and when it is called could be noticed',
     'Call it in an outer query, above the join; or, if it always gives the same result for the same arguments: ALTER FUNCTION ... IMMUTABLE.'),
    ('a function is not written in C, or has settings or rights of its own',
     'functions in SQL, PL/pgSQL and other languages, with SET clauses or SECURITY DEFINER, can do anything',
     'Replace it by the expression that it computes, or write it in SQL so simple that the planner inlines it (LANGUAGE sql, one SELECT, no SET clause, no SECURITY DEFINER; as volatile as its body).'),
    ('a function runs code that its arguments name, or assigns a transaction ID',
     'functions such as query_to_xml() have effects that depend on their arguments',
     'Call it in an outer query, above the join.'),
    ('a function of an extension is not immutable, or returns a set',
     'functions in C of other extensions may run any statement unless they are declared immutable',
     'Call it in an outer query, above the join; or, if it always gives the same result for the same arguments: ALTER FUNCTION ... IMMUTABLE.'),
    ('a function of any type is called for a type that is not the server''s',
     'functions such as array_cat() call those of the type, which are not known',
     'Compute the value above the join, or use a type of the server''s.'),
    ('a function is unknown', 'it was dropped while the statement ran', 'Nothing: it is gone with the next plan.'),
    ('an operator is unknown', 'it was dropped while the statement ran', 'Nothing: it is gone with the next plan.'),
    ('an operator has no hash function', 'the keys of the hash join have none that could be computed early', 'Compare columns of the same, hashable type.'),
    ('an index access method is not the server''s',
     'a scan on the outer side, or a write, uses an index whose functions are not known',
     'Use a btree, hash, GiST, SP-GiST, GIN or BRIN index there.'),
    ('a parameter is of a kind that is not known', 'another extension passes it', 'Nothing: such statements run as in stock.'),
    ('an aggregate is unknown', 'it was dropped while the statement ran', 'Nothing: it is gone with the next plan.'),
    ('a value is converted from or to a type that is not the server''s',
     'input and output functions of other types can do anything',
     'Convert above the join, or store the value in the type that it is compared in.'),
    ('a value of a type that is not the server''s is subscripted', 'subscripts of other types can do anything', 'Take the element above the join.'),
    ('an expression is of a kind that is not known', 'as in a new kind of expression, or one of another extension', 'Compute it above the join, or nothing.'),
    ('a sampling method is not the server''s', 'TABLESAMPLE by a method of an extension', 'Use SYSTEM or BERNOULLI.'),
    ('a sample is not repeatable', 'TABLESAMPLE would draw other rows', 'Add REPEATABLE (seed).'),
    ('a cursor may be asked which row of a scan it is on', 'UPDATE or DELETE with WHERE CURRENT OF takes the row from a scan of the cursor''s plan, which must not be ahead of it', 'Nothing: such rows are read as in stock.  Without a cursor they are read ahead.'),
    ('a table access method is not heap', 'how other tables are read is not known', 'Nothing: such tables are read as in stock.'),
    ('an Append is asynchronous', 'foreign tables on the outer side are read beside each other', 'Put the rows of the foreign tables into a temporary table before.'),
    ('rows are written or locked',
     'the outer side locks or writes rows, and would do so early',
     'Leave out FOR UPDATE / FOR SHARE where the rows need not be locked, or lock them in an outer query.'),
    ('a node is of a kind that is not known',
     'the outer side has a node whose effects are not known, such as a foreign table or a custom scan',
     'Put its rows into a temporary table, or a MATERIALIZED CTE in another statement, if they are few.'),
    ('the statement is not known', 'the join runs outside of a statement that was seen from its beginning', 'Nothing: it is seen from the next execution on.'),
    ('another extension executes a node', 'an extension has replaced a node''s function', 'Load pg_lookahead after that extension, or do without the other one, if the statement matters more.'),
    ('an expression has a subplan',
     'a correlated subquery or an EXISTS stays a subquery, which would run early',
     'Write the subquery as a join (LEFT JOIN LATERAL, or an aggregate joined by its key).'),
    ('system columns are read that the statement may change', 'xmin, xmax, cmin, cmax or ctid of rows that it writes', 'Leave these columns out.'),
    ('a stable function is called, and rows leave the statement between its calls',
     'in a cursor, or a loop over a query, what a stable function reads may change between two rows',
     'Fetch all rows with one command, or put the function''s value into a variable first.'),
    ('a stable function is called in a statement that has effects',
     'the statement writes, or calls volatile functions, and a stable function could see that',
     'Put the function''s value into a variable or parameter before.'),
    ('a function may raise a notice', 'such as to_tsvector(), and any function in C of an extension; notices would come early or twice', 'Store the result in a generated column and use that.'),
    ('a function of rows may fail', 'its error could not be kept until the turn of its row', 'Use the columns that are needed in place of the row.'),
    ('an expression may fail that the server might not evaluate',
     'such as x / y: an error could come for a row that the server does not come to (LIMIT, cursors, EXISTS)',
     'Divide by a constant (x / 10 cannot fail), or compute it above the join.'),
    ('not all rows may be read, and reading takes predicate locks',
     'SERIALIZABLE: rows read early stay locked, needed or not',
     'Use REPEATABLE READ where the application allows it; or leave out LIMIT, or the cursor.'),
    ('reading takes predicate locks, which a write may remove',
     'SERIALIZABLE: a statement that writes takes the locks of reads back, row by row',
     'Use REPEATABLE READ where the application allows it; or read first, into a temporary table.'),
    ('not all rows may be read, and old snapshots expire',
     'a read that is not needed could fail with "snapshot too old"',
     'ALTER SYSTEM SET old_snapshot_threshold = -1; and restart the server.'),
    ('the index''s access method is not known to allow it',
     'whether its scans may be run ahead of the executor is not known',
     'If it keeps nothing of the row that a scan has returned last: ALTER SYSTEM SET pg_lookahead.additional_access_methods = ...; SELECT pg_reload_conf(); see docs/settings.md.'),
    ('the plan reads a CTE, and so may the rest of the statement',
     'rows of a CTE are shared with another part of the statement, which would see them taken',
     'Write the CTE as a subquery of the INSERT, UPDATE or MERGE, or use its rows there only.'),
    ('the write has a subquery', 'in RETURNING, in a policy or in an action of MERGE, which would see other rows', 'Compute its value in the query that the rows come from, or in a separate statement.'),
    ('too many different values', 'of a column that has no exact sort key (index build)', 'CREATE INDEX ... (column COLLATE "C"), if that order suffices; else nothing.'),
    ('too many parallel workers', 'for a column without an exact sort key (index build)', 'SET max_parallel_maintenance_workers = 2 for the build.'),
    ('long values are compressed', 'in the index, and are several times as long without (index build)', 'Nothing: the server builds the index.'),
    ('comparison function is not built in', 'of a column without an exact sort key (index build)', 'Nothing: the server builds the index.'),
    ('functions might be called more often', 'by a build that has to begin anew, and somebody could notice (index build)', 'Nothing: the server builds the index.')
$$;

COMMENT ON FUNCTION pg_lookahead_reasons()
    IS 'reasons why a statement or an index build must not look ahead: what they mean, and what can be done';

-- What is wrong, or can be changed, with how the library is loaded and set.
CREATE FUNCTION pg_lookahead_findings_server(
    OUT code text,
    OUT section text,
    OUT severity text,
    OUT finding text,
    OUT advice text,
    OUT gain_ms double precision,
    OUT figures jsonb)
RETURNS SETOF record
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    reload constant text := ' SELECT pg_reload_conf();';
    ns text := (SELECT e.extnamespace::regnamespace::text FROM pg_extension e WHERE e.extname = 'pg_lookahead');
    major int := current_setting('server_version_num')::int / 10000;
    -- before any function of the library is called, which would load it
    loaded bool := EXISTS (SELECT FROM pg_settings WHERE name = 'pg_lookahead.enable');
    with_statements text;
    preloaded bool := false;
    libraries text;             -- null: this user may not read them
    stat_statements text := (SELECT e.extnamespace::regnamespace::text FROM pg_extension e WHERE e.extname = 'pg_stat_statements');
    trouble text;
    state text;
    attached numeric;
    reads_ms float8 := (SELECT nullif(sum(blk_read_time), 0) FROM pg_stat_database);
    seen record;
    r record;
BEGIN
    -- Not everybody may read what is preloaded.
    BEGIN
        SELECT coalesce(string_agg(quote_ident(replace(regexp_replace(l, '^"(.*)"$', '\1'), '""', '"')), ', ' ORDER BY n), '') INTO libraries
            FROM regexp_split_to_table(current_setting('shared_preload_libraries'), '\s*,\s*') WITH ORDINALITY AS x (l, n)
            WHERE l <> '';
    EXCEPTION WHEN insufficient_privilege THEN
        libraries := NULL;
    END;
    -- with pg_stat_statements before pg_lookahead
    with_statements := trim(trailing ', ' FROM regexp_replace(libraries, '("[^",]*)?pg_stat_statements"?(, |$)', ''));
    with_statements := CASE WHEN with_statements ~ 'pg_lookahead' THEN regexp_replace(with_statements, '("[^",]*)?pg_lookahead', 'pg_stat_statements, \&')
                            ELSE concat_ws(', ', nullif(with_statements, ''), 'pg_stat_statements', 'pg_lookahead') END;

    BEGIN
        EXECUTE format('SELECT sum(scans_attached) FROM %s.pg_stat_lookahead', ns) INTO attached;
        preloaded := true;
    EXCEPTION
        WHEN object_not_in_prerequisite_state THEN
            RETURN QUERY SELECT 'server.not_preloaded', 'server', 'problem',
                'The server does not preload pg_lookahead: there are no statistics, and sessions look ahead only if they load it themselves ('
                    || CASE WHEN loaded THEN 'this one has).' ELSE 'this one had not, before this call).' END,
                CASE WHEN libraries IS NULL THEN 'Add pg_lookahead to shared_preload_libraries, keeping what is there, and restart the server.'
                     ELSE format('ALTER SYSTEM SET shared_preload_libraries = %s; and restart the server.', concat_ws(', ', nullif(libraries, ''), 'pg_lookahead')) END,
                reads_ms, jsonb_build_object('loaded', loaded);
        WHEN insufficient_privilege THEN
            RETURN QUERY SELECT 'server.no_privilege', 'server', 'problem',
                format('%s may not read the statistics of look-ahead.', current_user),
                format('GRANT SELECT ON %s.pg_stat_lookahead TO %I;', ns, current_user),
                NULL::float8, '{}'::jsonb;
    END;

    EXECUTE format('SELECT l.* FROM %s.pg_lookahead_library() l', ns) INTO r;
    IF r.disabled <> '{}' THEN
        RETURN QUERY SELECT 'server.other_minor', 'server', 'problem',
            format('pg_lookahead was built for PostgreSQL %s, and this is %s. Off for that: %s.', r.built_for, r.server, array_to_string(r.disabled, ', ')),
            'Build it again for this server, install it, and restart the server: see docs/install.md.',
            reads_ms, to_jsonb(r);
    END IF;
    FOR r IN SELECT e.extversion AS installed, a.default_version AS available
             FROM pg_extension e JOIN pg_available_extensions a ON a.name = e.extname
             WHERE e.extname = 'pg_lookahead' AND a.default_version <> e.extversion
    LOOP
        RETURN QUERY SELECT 'server.old_extension', 'server', 'change',
            format('The extension is of version %s in this database, and %s is installed.', r.installed, r.available),
            'ALTER EXTENSION pg_lookahead UPDATE;', NULL::float8, to_jsonb(r);
    END LOOP;
    IF preloaded AND attached = 0 THEN
        EXECUTE format('SELECT min(stats_reset) AS since FROM %s.pg_stat_lookahead', ns) INTO r;
        RETURN QUERY SELECT 'server.nothing_seen', 'server', 'note',
            'Nothing has been seen yet: no scan or join has run with look-ahead since the statistics were reset.',
            'Come back when the server has worked for a while.', NULL::float8, to_jsonb(r);
    END IF;

    -- Settings of our own, as this session has them.
    FOR r IN SELECT s.name, s.setting,
                 CASE s.source
                     WHEN 'session' THEN format('RESET %s;', s.name)
                     WHEN 'client' THEN format('Leave %s out of the connection''s options (PGOPTIONS).', s.name)
                     WHEN 'user' THEN format('ALTER ROLE %I RESET %s;', session_user, s.name)
                     WHEN 'database' THEN format('ALTER DATABASE %I RESET %s;', current_database(), s.name)
                     WHEN 'database user' THEN format('ALTER ROLE %I IN DATABASE %I RESET %s;', session_user, current_database(), s.name)
                     WHEN 'command line' THEN format('Leave %s out of the server''s command line.', s.name)
                     ELSE format('ALTER SYSTEM SET %s = on; SELECT pg_reload_conf();', s.name)
                 END AS advice
             FROM pg_settings s
             WHERE s.name ~ '^pg_lookahead\.(enable|nestloop_reuse_tids)' AND s.boot_val = 'on' AND s.setting = 'off'
             ORDER BY s.name
    LOOP
        RETURN QUERY SELECT 'settings.off', 'settings', CASE r.name WHEN 'pg_lookahead.enable' THEN 'problem' ELSE 'change' END,
            format('%s is off.', r.name), r.advice, CASE r.name WHEN 'pg_lookahead.enable' THEN reads_ms END, jsonb_build_object('setting', r.name);
    END LOOP;
    FOR r IN SELECT split_part(c, '=', 1) AS name, d.datname, x.setrole <> 0 AS of_role, pg_get_userbyid(x.setrole) AS rolname
             FROM pg_db_role_setting x
                 CROSS JOIN unnest(x.setconfig) c
                 LEFT JOIN pg_database d ON d.oid = x.setdatabase
             WHERE c ~ '^pg_lookahead\.enable[a-z_]*=(off|false|no|0)$'
                 AND c !~ '^pg_lookahead\.(enable_index_build|enable_btree_insert)='
             ORDER BY 1, 2, 4
    LOOP
        RETURN QUERY SELECT 'settings.off_for_some', 'settings', 'change',
            concat_ws(' ', r.name, 'is off for', CASE WHEN r.of_role THEN 'role ' || quote_ident(r.rolname) END,
                      CASE WHEN r.datname IS NOT NULL THEN 'in database ' || quote_ident(r.datname) END) || '.',
            concat_ws(' ', CASE WHEN r.of_role THEN format('ALTER ROLE %I', r.rolname) END,
                      CASE WHEN r.datname IS NOT NULL AND r.of_role THEN format('IN DATABASE %I', r.datname)
                           WHEN r.datname IS NOT NULL THEN format('ALTER DATABASE %I', r.datname)
                           WHEN NOT r.of_role THEN 'ALTER ROLE ALL' END,
                      format('RESET %s;', r.name)),
            NULL::float8, to_jsonb(r);
    END LOOP;
    IF current_setting('pg_lookahead.force', true) = 'on' THEN
        RETURN QUERY SELECT 'settings.force', 'settings', 'change',
            'pg_lookahead.force is on: every scan looks ahead, also those that lose by it.',
            'It is for tests. RESET pg_lookahead.force; and ALTER SYSTEM RESET pg_lookahead.force;' || reload,
            NULL::float8, '{}'::jsonb;
    END IF;
    IF (SELECT setting FROM pg_settings WHERE name = 'pg_lookahead.backend_memory') = '0' THEN
        RETURN QUERY SELECT 'settings.backend_memory', 'settings', 'problem',
            'pg_lookahead.backend_memory is 0: no scan finds memory to look ahead.',
            'ALTER SYSTEM RESET pg_lookahead.backend_memory;' || reload, reads_ms, '{}'::jsonb;
    END IF;
    IF current_setting('pg_lookahead.excluded_access_methods', true) <> '' THEN
        RETURN QUERY SELECT 'settings.excluded_access_methods', 'settings', 'note',
            format('Indexes of these access methods are scanned as in stock: %s.', current_setting('pg_lookahead.excluded_access_methods')),
            'ALTER SYSTEM RESET pg_lookahead.excluded_access_methods;' || reload, NULL::float8,
            jsonb_build_object('excluded', current_setting('pg_lookahead.excluded_access_methods'));
    END IF;

    -- Settings of the server that look-ahead, or this report, depends on.
    IF current_setting('compute_query_id') = 'off' THEN
        RETURN QUERY SELECT 'settings.compute_query_id', 'settings', 'change',
            'compute_query_id is off: statements are not told from each other, so there is nothing to report of them.',
            'ALTER SYSTEM SET compute_query_id = on;' || reload, NULL::float8, '{}'::jsonb;
    ELSIF preloaded AND attached > 0 THEN
        EXECUTE format('SELECT i.statements, i.statements_max, i.statements_dealloc FROM %s.pg_stat_lookahead_info i', ns) INTO seen;
        IF seen.statements = 0 AND current_setting('compute_query_id') <> 'on' THEN
            RETURN QUERY SELECT 'settings.compute_query_id', 'settings', 'change',
                format('Scans have run, but no statement is in pg_stat_lookahead_statements: with compute_query_id = %s, nobody has asked for their identifiers.', current_setting('compute_query_id')),
                'ALTER SYSTEM SET compute_query_id = on;' || reload, NULL::float8, '{}'::jsonb;
        END IF;
    END IF;
    IF NOT current_setting('track_io_timing')::bool THEN
        RETURN QUERY SELECT 'settings.track_io_timing', 'settings', 'change',
            'track_io_timing is off: only waits of scans under observation are known, not those of whole statements.',
            'ALTER SYSTEM SET track_io_timing = on;' || reload || ' (Its cost: pg_test_timing.)', NULL::float8, '{}'::jsonb;
    END IF;
    IF stat_statements IS NULL THEN
        RETURN QUERY SELECT 'settings.pg_stat_statements', 'settings', 'change',
            'pg_stat_statements is not in this database: statements have numbers instead of texts here, and spilled joins are not seen.',
            CASE WHEN libraries IS NULL THEN 'If it is not there, add pg_stat_statements to shared_preload_libraries, keeping what is there, and restart the server. Then: '
                 WHEN libraries ~ 'pg_stat_statements' THEN ''
                 ELSE format('ALTER SYSTEM SET shared_preload_libraries = %s; restart the server; ',
                             with_statements) END
                || 'CREATE EXTENSION pg_stat_statements;',
            NULL::float8, '{}'::jsonb;
    ELSE
        BEGIN
            EXECUTE format('SELECT FROM %s.pg_stat_statements LIMIT 1', stat_statements);
        EXCEPTION WHEN OTHERS THEN
            GET STACKED DIAGNOSTICS trouble = MESSAGE_TEXT, state = RETURNED_SQLSTATE;
            RETURN QUERY SELECT 'settings.pg_stat_statements', 'settings', 'change',
                format('pg_stat_statements cannot be read: %s.', trouble),
                CASE state
                    WHEN '42501' THEN   -- insufficient_privilege
                        CASE WHEN has_schema_privilege(stat_statements::regnamespace, 'USAGE') THEN ''
                             ELSE format('GRANT USAGE ON SCHEMA %s TO %I; ', stat_statements, current_user) END
                            || format('GRANT SELECT ON %s.pg_stat_statements TO %I;', stat_statements, current_user)
                    WHEN '55000' THEN   -- object_not_in_prerequisite_state
                        CASE WHEN libraries IS NULL THEN 'Add pg_stat_statements to shared_preload_libraries, keeping what is there, and restart the server.'
                             ELSE format('ALTER SYSTEM SET shared_preload_libraries = %s; and restart the server.', with_statements) END
                    ELSE format('See what is wrong: SELECT * FROM %s.pg_stat_statements LIMIT 1;', stat_statements) END,
                NULL::float8, '{}'::jsonb;
        END;
        IF preloaded AND libraries ~ 'pg_lookahead.*pg_stat_statements' THEN
            RETURN QUERY SELECT 'settings.pg_stat_statements', 'settings', 'note',
                'pg_stat_statements stands behind pg_lookahead in shared_preload_libraries, and hides the identifiers of utility statements: of COPY, CALL and others no figures are kept.',
                format('ALTER SYSTEM SET shared_preload_libraries = %s; and restart the server.', with_statements), NULL::float8, '{}'::jsonb;
        END IF;
    END IF;
    IF current_setting('default_transaction_isolation') = 'serializable' THEN
        RETURN QUERY SELECT 'settings.serializable', 'settings', 'change',
            'default_transaction_isolation is serializable: scans look ahead within one index page only, and joins in statements that write not at all.',
            'Where the application allows it: ALTER SYSTEM SET default_transaction_isolation = ''repeatable read'';' || reload,
            NULL::float8, '{}'::jsonb;
    END IF;
    IF coalesce(current_setting('old_snapshot_threshold', true), '-1') <> '-1' THEN
        RETURN QUERY SELECT 'settings.old_snapshot_threshold', 'settings', 'problem',
            format('old_snapshot_threshold is %s: scans and nested loops run as in stock.', current_setting('old_snapshot_threshold')),
            'ALTER SYSTEM SET old_snapshot_threshold = -1; and restart the server.', reads_ms, '{}'::jsonb;
    END IF;
    IF coalesce(current_setting('debug_io_direct', true), '') ~ 'data'
        AND (major < 18 OR current_setting('io_method', true) = 'sync' OR pg_is_in_recovery()) THEN
        RETURN QUERY SELECT 'settings.io_direct', 'settings', 'problem',
            'debug_io_direct includes data, and this server has no asynchronous reads to use for that: nothing is read ahead.',
            CASE WHEN major >= 18 AND NOT pg_is_in_recovery() THEN 'ALTER SYSTEM SET io_method = worker; and restart the server.'
                 ELSE 'ALTER SYSTEM RESET debug_io_direct; and restart the server.' END,
            reads_ms, '{}'::jsonb;
    END IF;
    IF major < 18 AND current_setting('effective_io_concurrency')::int <= 1 THEN
        RETURN QUERY SELECT 'settings.effective_io_concurrency', 'settings',
            CASE WHEN current_setting('effective_io_concurrency') = '0' OR NOT loaded OR current_setting('pg_lookahead.enable_bitmap_scan', true) = 'off' THEN 'change' ELSE 'note' END,
            format('effective_io_concurrency is %s: ', current_setting('effective_io_concurrency'))
                || CASE WHEN current_setting('effective_io_concurrency') = '0' THEN 'bitmap heap scans read one block after the other.'
                        WHEN loaded THEN format('bitmap heap scans keep %s reads in flight where look-ahead is on (pg_lookahead.max_distance), and one where it is off.', current_setting('pg_lookahead.max_distance', true))
                        ELSE 'bitmap heap scans read one block ahead.' END,
            'ALTER SYSTEM SET effective_io_concurrency = 64;' || reload, NULL::float8,
            jsonb_build_object('effective_io_concurrency', current_setting('effective_io_concurrency')::int);
    END IF;
    FOR r IN SELECT t.spcname AS tablespace, split_part(o, '=', 2) AS effective_io_concurrency
             FROM pg_tablespace t CROSS JOIN unnest(t.spcoptions) o
             WHERE o ~ '^effective_io_concurrency=\d+$' AND split_part(o, '=', 2)::int < 16
             ORDER BY 1
    LOOP
        RETURN QUERY SELECT 'settings.tablespace', 'settings', 'change',
            format('Tablespace %I has effective_io_concurrency = %s: ', r.tablespace, r.effective_io_concurrency)
                || CASE r.effective_io_concurrency WHEN '0' THEN 'nothing is read ahead there.' ELSE 'no scan keeps more reads in flight there.' END,
            format('ALTER TABLESPACE %I RESET (effective_io_concurrency); unless its disk must be spared.', r.tablespace),
            NULL::float8, to_jsonb(r);
    END LOOP;

    -- Index access methods of this database that are left alone.
    FOR r IN SELECT a.amname, count(*) AS indexes, min(c.oid::regclass::text) AS example
             FROM pg_class c JOIN pg_am a ON a.oid = c.relam
             WHERE c.relkind = 'i' AND a.amtype = 'i'
                 AND a.amname NOT IN ('btree', 'hash', 'gist', 'spgist', 'gin', 'brin', 'hnsw', 'ivfflat', 'rum')
                 AND NOT a.amname = ANY (regexp_split_to_array(coalesce(current_setting('pg_lookahead.additional_access_methods', true), ''), '[\s",]+'))
             GROUP BY a.amname ORDER BY a.amname
    LOOP
        RETURN QUERY SELECT 'settings.access_method', 'settings', 'note',
            format('Indexes of access method %I (%s, such as %s) are scanned as in stock: whether their scans may be run ahead is not known.', r.amname, r.indexes, r.example),
            format('If it keeps nothing of the row that a scan has returned last: ALTER SYSTEM SET pg_lookahead.additional_access_methods = %s;%s',
                   concat_ws(', ', NULLIF(current_setting('pg_lookahead.additional_access_methods', true), ''), quote_ident(r.amname)), reload),
            NULL::float8, to_jsonb(r);
    END LOOP;

    -- The tables of entries.
    IF preloaded THEN
        FOR r IN SELECT s.name FROM pg_settings s WHERE s.name IN ('pg_lookahead.max_statements', 'pg_lookahead.max_indexes') AND s.setting = '0'
        LOOP
            RETURN QUERY SELECT 'settings.no_entries', 'settings', 'change', format('%s is 0: there are no such statistics.', r.name),
                format('ALTER SYSTEM RESET %s; and restart the server.', r.name), NULL::float8, to_jsonb(r);
        END LOOP;
        FOR r IN EXECUTE format($q$
            SELECT x.* FROM %s.pg_stat_lookahead_info i,
                LATERAL (VALUES ('statements', i.statements, i.statements_max, i.statements_dealloc),
                                ('indexes', i.indexes, i.indexes_max, i.indexes_dealloc)) x (what, entries, most, dealloc)
            WHERE x.dealloc > 0 AND x.entries >= x.most * 0.9$q$, ns)
        LOOP
            RETURN QUERY SELECT 'settings.entries', 'settings', 'change',
                format('The table of %s is full: of %s entries, %s were given up for others, and their figures are lost.', r.what, r.most, r.dealloc),
                format('ALTER SYSTEM SET pg_lookahead.max_%s = %s; and restart the server.', r.what, least(r.most * 4, 1000000)),
                NULL::float8, to_jsonb(r);
        END LOOP;
    END IF;
EXCEPTION WHEN insufficient_privilege THEN
    -- what was found before stays
    GET STACKED DIAGNOSTICS trouble = MESSAGE_TEXT;
    RETURN QUERY SELECT 'server.no_privilege', 'server', 'note',
        format('%s may not read all of the statistics: %s.', current_user, trouble),
        format('Grant %I SELECT on that.', current_user), NULL::float8, '{}'::jsonb;
END
$$;

COMMENT ON FUNCTION pg_lookahead_findings_server()
    IS 'findings about how the library is loaded, and about settings; behind pg_lookahead_report()';

-- Which statements wait for reads, and why look-ahead does not help them more.
CREATE FUNCTION pg_lookahead_findings_statements(
    OUT code text,
    OUT section text,
    OUT severity text,
    OUT finding text,
    OUT advice text,
    OUT gain_ms double precision,
    OUT figures jsonb)
RETURNS SETOF record
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    -- a statement that has waited for less, or lost less, is not worth a change
    worth_ms CONSTANT float8 := 10;
    ns text := (SELECT e.extnamespace::regnamespace::text FROM pg_extension e WHERE e.extname = 'pg_lookahead');
    stat_statements text := (SELECT e.extnamespace::regnamespace::text FROM pg_extension e WHERE e.extname = 'pg_stat_statements');
    -- as JSON, since its columns' names depend on its version
    texts text := '(SELECT NULL::oid AS userid, NULL::oid AS dbid, NULL::bigint AS queryid, NULL::jsonb AS j)';
    entries text;
    work_mem_kb float8 := (SELECT setting FROM pg_settings WHERE name = 'work_mem')::float8;
    distance int := coalesce((SELECT setting FROM pg_settings WHERE name = 'pg_lookahead.max_distance')::int, 64);
    ours text;
    why text;
    spilled_mb float8;
    trouble text;
    -- of which EXPLAIN shows a plan, behind comments; and those that run a cursor's query
    explainable text := '^([\s(]|/\*.*?\*/|--[^\n]*\n)*(SELECT|WITH|VALUES|TABLE|INSERT|UPDATE|DELETE|MERGE|CREATE\s+MATERIALIZED\s+VIEW|CREATE\s+(UNLOGGED\s+|TEMP\w*\s+)?TABLE\s+\S+\s+AS)\M';
    of_cursor text := '^(\s|/\*.*?\*/|--[^\n]*\n)*(FETCH|MOVE|CLOSE)\M';
    r record;
BEGIN
    BEGIN
        EXECUTE format('SELECT FROM %s.pg_stat_lookahead_statements LIMIT 1', ns);
    EXCEPTION WHEN object_not_in_prerequisite_state OR insufficient_privilege THEN
        RETURN;
    END;
    IF stat_statements IS NOT NULL THEN
        BEGIN
            EXECUTE format('SELECT FROM %s.pg_stat_statements LIMIT 1', stat_statements);
            texts := format('(SELECT p.userid, p.dbid, p.queryid, to_jsonb(p) AS j FROM %s.pg_stat_statements p)', stat_statements);
        EXCEPTION WHEN OTHERS THEN
            NULL;               -- pg_lookahead_findings_server() tells
        END;
    END IF;

    -- waited: what is still waited for.  Where a statement looked ahead, or the server does not
    -- measure, that is what its scans have waited under observation.  fast: its reads were served
    -- from the operating system's cache, or by the kernel's read-ahead.
    entries := format($q$
        SELECT s.*, p.j,
            CASE WHEN s.scans_activated > 0 THEN s.wait_time ELSE greatest(s.wait_time, s.read_time) END AS waited,
            s.scans_activated = 0 AND s.read_time > 0 AND s.read_time < s.blocks_read * %s AS fast,
            coalesce(regexp_replace(left(p.j->>'query', 1000), '\s+', ' ', 'g'), 'statement ' || s.queryid) AS label,
            p.j->>'query' ~* %L AS explainable,
            coalesce((p.j->>'temp_blks_written')::bigint, 0) AS temp_blocks,
            (p.j->>'calls')::bigint AS calls
        FROM %s.pg_stat_lookahead_statements s
            LEFT JOIN %s p ON p.userid = s.userid AND p.dbid = s.dbid AND p.queryid = s.queryid
                AND coalesce((p.j->>'toplevel')::bool, true) = s.toplevel
        $q$, coalesce((SELECT setting FROM pg_settings WHERE name = 'pg_lookahead.min_read_time')::float8, 0.025), explainable, ns, texts);

    -- those that wait most
    FOR r IN EXECUTE format($q$
        SELECT e.*, CASE WHEN length(label) > 100 THEN left(label, 97) || '...' ELSE label END AS text
        FROM (%s) e WHERE queryid IS NOT NULL AND waited >= 1 ORDER BY waited DESC, queryid LIMIT 10$q$, entries)
    LOOP
        ours := format('%s ms waited for reads (executions: %s)', to_char(r.waited, 'FM999,999,999,990'), r.executions);
        spilled_mb := r.temp_blocks * current_setting('block_size')::float8 / 1048576 / greatest(r.calls, r.executions, 1);
        figures := to_jsonb(r) - 'j' - 'label' - 'explainable' || jsonb_build_object('queryid', r.queryid::text);
        gain_ms := r.waited;
        section := 'statements';
        severity := 'change';
        IF spilled_mb >= 1 AND cardinality(r.reasons) = 0 THEN
            code := 'statement.spilled';
            gain_ms := CASE WHEN NOT r.fast THEN r.waited END;
            why := format('%s MB written to temporary files by each: sorts, or hash joins of several batches, which the server executes alone', to_char(spilled_mb, 'FM999,999,990'));
            advice := format('SET work_mem = ''%sMB''; for this statement, and look whether %s.',
                             (2 ^ ceil(log(2, (work_mem_kb / 1024 + spilled_mb)::numeric)))::bigint,
                             CASE WHEN r.explainable THEN 'EXPLAIN (ANALYZE) still says Batches > 1' ELSE 'temp_blks_written of pg_stat_statements still grows' END);
        ELSIF r.fast THEN
            code := 'statement.fast_reads';
            severity := 'note';
            gain_ms := NULL;
            why := format('%s ms for each of %s blocks: the operating system had them in its cache, or reads them ahead', round((r.read_time / r.blocks_read)::numeric, 3), r.blocks_read);
            advice := 'Look-ahead would gain nothing. Larger shared_buffers would save these reads.';
        ELSIF cardinality(r.reasons) > 0 THEN
            code := 'statement.refused';
            why := 'not looked ahead everywhere: ' || array_to_string(r.reasons, '; ');
            EXECUTE format('SELECT string_agg(x.advice, '' '' ORDER BY x.reason) FROM %s.pg_lookahead_reasons() x WHERE x.reason = ANY ($1)', ns)
                INTO advice USING r.reasons;
        ELSIF r.blocks_late > 0.2 * (r.blocks_on_time + r.blocks_late) AND r.blocks_on_time + r.blocks_late >= 100 THEN
            code := 'statement.late';
            why := format('of %s blocks that were read ahead, %s%% came late', r.blocks_on_time + r.blocks_late,
                          round(100.0 * r.blocks_late / (r.blocks_on_time + r.blocks_late)));
            advice := format('SET pg_lookahead.max_distance = %s; for this statement. If it comes as late, the disk is at its limit.', least(distance * 2, 1024));
        ELSIF r.blocks_wasted > 0.3 * r.blocks_issued AND r.blocks_issued >= 100 THEN
            code := 'statement.wasted';
            why := format('of %s blocks whose reads were started early, %s%% were not needed', r.blocks_issued, round(100.0 * r.blocks_wasted / r.blocks_issued));
            advice := format('SET pg_lookahead.max_distance = %s; for this statement: it stops before it has read what lies ahead.', greatest(distance / 4, 1));
        ELSIF r.scans_activated > 0 THEN
            code := 'statement.ahead';
            severity := 'note';
            why := format('it looks ahead, and %s of %s blocks came on time', r.blocks_on_time, r.blocks_issued);
            advice := 'What is left are the first reads of scans, and those of other nodes. Nothing to change.';
        ELSIF r.blocks_read < 16 * r.executions THEN
            code := 'statement.short';
            severity := 'note';
            why := format('%s blocks read by each: too few to look ahead', round(r.blocks_read / greatest(r.executions, 1)::numeric, 1));
            advice := 'Larger shared_buffers, if it is often executed.';
        ELSIF r.explainable IS FALSE THEN
            code := 'statement.not_begun';
            severity := 'note';
            why := 'nothing in it began to look ahead';
            advice := 'Larger shared_buffers, if it reads the same blocks again.';
        ELSE
            code := 'statement.not_begun';
            severity := 'note';
            why := 'no scan began to look ahead: its reads are those of sequential scans or bitmap heap scans, or follow the order of the table';
            advice := CASE WHEN r.explainable THEN 'EXPLAIN (ANALYZE, BUFFERS) says which.' ELSE 'EXPLAIN (ANALYZE, BUFFERS) says which, if it takes the statement.' END
                || ' An index, or SET random_page_cost lower, if an index scan of few rows would do.';
        END IF;
        IF r.waited < worth_ms THEN
            severity := 'note';
        END IF;
        finding := format('%s; %s: %s', ours, why, r.text);
        RETURN NEXT;
    END LOOP;

    -- reasons, over all statements
    FOR r IN EXECUTE format($q$
        SELECT x.reason, count(*) AS statements, sum(e.executions)::bigint AS executions, coalesce(sum(e.waited) FILTER (WHERE NOT e.fast), 0) AS waited,
            (array_agg(e.label ORDER BY e.waited DESC, e.executions DESC, e.queryid))[1] AS example,
            coalesce(min(a.meaning), 'a reason of another version') AS meaning, min(a.advice) AS advice
        FROM (%s) e CROSS JOIN unnest(e.reasons) x (reason) LEFT JOIN %s.pg_lookahead_reasons() a ON a.reason = x.reason
        WHERE e.queryid IS NOT NULL GROUP BY x.reason ORDER BY 4 DESC, 1$q$, entries, ns)
    LOOP
        RETURN QUERY SELECT 'reason', 'statements', CASE WHEN r.waited >= worth_ms THEN 'change' ELSE 'note' END,
            format('Refused (statements: %s, executions: %s, waited: %s ms): %s - %s. The first: %s', r.statements, r.executions,
                   to_char(r.waited, 'FM999,999,999,990'), r.reason, r.meaning,
                   CASE WHEN length(r.example) > 100 THEN left(r.example, 97) || '...' ELSE r.example END),
            r.advice, CASE WHEN r.waited >= 1 THEN r.waited END, to_jsonb(r) - 'advice' - 'meaning';
    END LOOP;

    -- what it has saved
    FOR r IN EXECUTE format($q$
        SELECT e.*, CASE WHEN length(label) > 100 THEN left(label, 97) || '...' ELSE label END AS text
        FROM (%s) e WHERE queryid IS NOT NULL AND saved_time >= 1 ORDER BY saved_time DESC, queryid LIMIT 5$q$, entries)
    LOOP
        RETURN QUERY SELECT 'statement.saved', 'statements', 'good',
            format('About %s ms saved, +- %s (executions: %s): %s', to_char(r.saved_time, 'FM999,999,999,990'),
                   to_char(r.saved_time_error, 'FM999,999,999,990'), r.executions, r.text),
            NULL::text, NULL::float8, to_jsonb(r) - 'j' - 'label' - 'explainable' || jsonb_build_object('queryid', r.queryid::text);
    END LOOP;

    -- what it has cost
    FOR r IN EXECUTE format($q$
        SELECT e.*, CASE WHEN length(label) > 100 THEN left(label, 97) || '...' ELSE label END AS text
        FROM (%s) e WHERE queryid IS NOT NULL AND saved_time + saved_time_error <= -1 ORDER BY saved_time, queryid LIMIT 5$q$, entries)
    LOOP
        RETURN QUERY SELECT 'statement.loses', 'statements', CASE WHEN r.saved_time <= -worth_ms THEN 'change' ELSE 'note' END,
            format('About %s ms lost by look-ahead, +- %s (executions: %s): %s', to_char(-r.saved_time, 'FM999,999,999,990'),
                   to_char(r.saved_time_error, 'FM999,999,999,990'), r.executions, r.text),
            'SET pg_lookahead.enable = off; for this statement, and compare. If it is as much faster then, that is a bug.', -r.saved_time,
            to_jsonb(r) - 'j' - 'label' - 'explainable' || jsonb_build_object('queryid', r.queryid::text);
    END LOOP;

    -- statements that wait, and of which nothing is known
    FOR r IN EXECUTE format($q$
        SELECT p.j->>'query' AS query, p.queryid::text AS queryid, (p.j->>'calls')::bigint AS calls,
            coalesce(p.j->>'shared_blk_read_time', p.j->>'blk_read_time')::float8 AS waited,
            left(regexp_replace(left(p.j->>'query', 1000), '\s+', ' ', 'g'), 100) AS text
        FROM %s p
        WHERE p.queryid IS NOT NULL AND coalesce(p.j->>'shared_blk_read_time', p.j->>'blk_read_time')::float8 >= 100
            AND NOT EXISTS (SELECT FROM %s.pg_stat_lookahead_statements s
                            WHERE s.userid = p.userid AND s.dbid = p.dbid AND s.queryid = p.queryid)
        ORDER BY 3 DESC, 1 LIMIT 3$q$, texts, ns)
    LOOP
        RETURN QUERY SELECT 'statement.unseen', 'statements', 'note',
            format('%s ms waited for reads (executions: %s); nothing of it is in the statistics of look-ahead: %s', to_char(r.waited, 'FM999,999,999,990'), r.calls, r.text),
            CASE WHEN r.query ~* explainable THEN
                'If no scan or join in it can look ahead: sequential scans are the server''s own, and EXPLAIN (ANALYZE, BUFFERS) says whether an index would do.'
            WHEN r.query ~* of_cursor THEN
                'These are reads of the cursor''s query, whose figures are counted when the cursor is closed.'
            ELSE
                'What look-ahead did for queries in it is counted for them (toplevel is false), and for it if pg_stat_statements stands before pg_lookahead in shared_preload_libraries. Maintenance is the server''s own.'
            END,
            NULL::float8, to_jsonb(r) - 'query';
    END LOOP;

    -- what this user may not see
    EXECUTE format('SELECT count(*) AS statements, sum(wait_time) AS waited FROM %s.pg_stat_lookahead_statements WHERE queryid IS NULL', ns) INTO r;
    IF r.statements > 0 THEN
        RETURN QUERY SELECT 'statement.hidden', 'statements', 'note',
            format('Statements of other users are not shown: %s.', r.statements),
            format('GRANT pg_read_all_stats TO %I;', current_user), NULL::float8, to_jsonb(r);
    END IF;
EXCEPTION WHEN insufficient_privilege THEN
    -- what was found before stays
    GET STACKED DIAGNOSTICS trouble = MESSAGE_TEXT;
    RETURN QUERY SELECT 'server.no_privilege', 'server', 'note',
        format('%s may not read all of the statistics: %s.', current_user, trouble),
        format('Grant %I SELECT on that.', current_user), NULL::float8, '{}'::jsonb;
END
$$;

COMMENT ON FUNCTION pg_lookahead_findings_statements()
    IS 'findings about statements that wait; behind pg_lookahead_report()';

-- How far ahead, what the disk can do, which indexes gain, and which builds were left alone.
CREATE FUNCTION pg_lookahead_findings_reads(
    OUT code text,
    OUT section text,
    OUT severity text,
    OUT finding text,
    OUT advice text,
    OUT gain_ms double precision,
    OUT figures jsonb)
RETURNS SETOF record
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    ns text := (SELECT e.extnamespace::regnamespace::text FROM pg_extension e WHERE e.extname = 'pg_lookahead');
    distance int := (SELECT setting FROM pg_settings WHERE name = 'pg_lookahead.max_distance');
    total record;
    knee int;
    entries text;
    trouble text;
    r record;
BEGIN
    BEGIN
        EXECUTE format($q$
            SELECT k.*, 100 * late / NULLIF(on_time + late, 0) AS late_percent, 100 * wasted / NULLIF(issued, 0) AS wasted_percent
            FROM (SELECT sum(scans_activated) AS activated, sum(blocks_issued) AS issued, sum(blocks_on_time) AS on_time,
                      sum(blocks_late) AS late, sum(blocks_wasted) AS wasted, sum(wait_time) AS waited,
                      sum(saved_time) AS saved, sum(saved_time_error) AS saved_error, min(stats_reset) AS since
                  FROM %s.pg_stat_lookahead) k$q$, ns) INTO total;
    EXCEPTION WHEN object_not_in_prerequisite_state OR insufficient_privilege THEN
        RETURN;
    END;
    IF total.activated > 0 THEN
        RETURN QUERY SELECT 'server.summary', 'server', 'good',
            format('Look-ahead has begun %s times, and started the reads of %s blocks early', to_char(total.activated, 'FM999,999,999,990'), to_char(total.issued, 'FM999,999,999,990'))
                || coalesce(format(': %s%% came on time', round(100 - total.late_percent)), '')
                || format('. About %s ms (+- %s) of waiting saved, %s ms still waited.', to_char(total.saved, 'FM999,999,999,990'),
                          to_char(total.saved_error, 'FM999,999,999,990'), to_char(total.waited, 'FM999,999,999,990')),
            NULL::text, NULL::float8, to_jsonb(total);
    END IF;

    -- what pg_lookahead_calibrate() has found, if it was asked
    EXECUTE format('SELECT ceil(max(knee))::int FROM %s.pg_lookahead_storage', ns) INTO knee;
    IF knee IS NULL THEN
        RETURN QUERY SELECT 'disk.not_calibrated', 'disk', 'note',
            'The storage has not been measured, so what it can do is not known here.',
            format('SELECT * FROM %s.pg_lookahead_calibrate(); it reads for some seconds as fast as it can.', ns), NULL::float8, '{}'::jsonb;
    END IF;
    -- (numbers, which have several spellings; any random_page_cost between the two is a choice)
    FOR r IN EXECUTE format($q$
        SELECT x.tablespace_name, x.setting, x.look_ahead, x.current, x.recommended, x.command, x.reason
        FROM (SELECT y.*, y.recommended::numeric AS wanted,
                  CASE WHEN y.current ~ '^[0-9]+(\.[0-9]*)?$' THEN y.current::numeric END AS is_now,
                  min(y.recommended::numeric) OVER same AS least, max(y.recommended::numeric) OVER same AS most
              FROM %s.pg_lookahead_recommendations y WINDOW same AS (PARTITION BY y.tablespace_name, y.setting)) x
        WHERE x.is_now IS NULL OR CASE x.setting WHEN 'random_page_cost' THEN x.is_now NOT BETWEEN x.least AND x.most ELSE x.is_now <> x.wanted END$q$, ns)
    LOOP
        RETURN QUERY SELECT 'disk.recommended', 'disk', CASE WHEN r.setting = 'random_page_cost' THEN 'note' ELSE 'change' END,
            format('The storage of tablespace %I suits %s = %s%s; now it is %s. %s', r.tablespace_name, r.setting, r.recommended,
                   CASE WHEN r.look_ahead THEN ' for scans that look ahead' WHEN NOT r.look_ahead THEN ' for scans that do not' ELSE '' END,
                   coalesce(r.current, 'not set'), r.reason),
            r.command || CASE WHEN r.command LIKE 'ALTER SYSTEM%' THEN '; SELECT pg_reload_conf();' ELSE ';' END,
            CASE WHEN r.setting = 'pg_lookahead.max_distance' AND r.current::int < r.recommended::int THEN total.waited END, to_jsonb(r);
    END LOOP;

    IF total.late_percent > 20 AND total.on_time + total.late >= 1000 THEN
        IF knee IS NOT NULL AND distance >= knee OR distance >= 256 THEN
            RETURN QUERY SELECT 'disk.limit', 'disk', 'note',
                format('%s%% of the blocks that were read ahead came late, with up to %s in flight for each scan: the disk is at its limit.', round(total.late_percent), distance),
                'More in flight would not help: a faster disk, more memory (shared_buffers), or fewer sessions that read at the same time.',
                total.waited, to_jsonb(total) || jsonb_build_object('max_distance', distance, 'knee', knee);
        ELSE
            RETURN QUERY SELECT 'settings.max_distance', 'settings', 'change',
                format('%s%% of the blocks that were read ahead came late: pg_lookahead.max_distance = %s is too small for this disk, or the disk is at its limit.', round(total.late_percent), distance),
                format('ALTER SYSTEM SET pg_lookahead.max_distance = %s; SELECT pg_reload_conf(); and SELECT pg_stat_lookahead_reset(); if as many come late then, it is the disk.', least(distance * 2, 1024)),
                total.waited, to_jsonb(total) || jsonb_build_object('max_distance', distance, 'knee', knee);
        END IF;
    END IF;
    IF total.wasted_percent > 30 AND total.issued >= 1000 THEN
        RETURN QUERY SELECT 'settings.wasted', 'settings', 'change',
            format('%s%% of the blocks whose reads were started early were not needed: statements stop early.', round(total.wasted_percent)),
            format('ALTER SYSTEM SET pg_lookahead.max_distance = %s; SELECT pg_reload_conf();', greatest(distance / 2, 1)),
            NULL::float8, to_jsonb(total) || jsonb_build_object('max_distance', distance);
    END IF;

    -- the server's own measurement of reads, from 16 on
    IF to_regclass('pg_catalog.pg_stat_io') IS NOT NULL AND current_setting('track_io_timing')::bool THEN
        EXECUTE $q$SELECT sum(reads) AS reads, sum(read_time) AS read_ms, min(stats_reset) AS since FROM pg_catalog.pg_stat_io
            WHERE object = 'relation' AND context = 'normal' AND backend_type IN ('client backend', 'background worker')$q$ INTO r;
        IF r.reads >= 100 THEN
            RETURN QUERY SELECT 'disk.latency', 'disk', 'note',
                format('A read took %s ms on average, over %s reads of sessions: what was in the operating system''s cache included.', round((r.read_ms / r.reads)::numeric, 3), r.reads),
                NULL::text, NULL::float8, to_jsonb(r);
        END IF;
    END IF;

    -- indexes of this database; bitmap scans may have used several for the blocks of a table
    entries := format($q$SELECT i.*, CASE WHEN indexrelname IS NULL THEN format('several indexes of %%I.%%I', schemaname, relname)
        ELSE format('%%I.%%I', schemaname, indexrelname) END AS name FROM %s.pg_stat_lookahead_indexes i$q$, ns);
    FOR r IN EXECUTE entries || ' WHERE saved_time >= 1 ORDER BY saved_time DESC, relid, indexrelid LIMIT 10'
    LOOP
        RETURN QUERY SELECT 'index.saved', 'indexes', 'good',
            format('Scans of %s have waited about %s ms less (+- %s): %s blocks of %I read ahead, %s of them late.', r.name,
                   to_char(r.saved_time, 'FM999,999,999,990'), to_char(r.saved_time_error, 'FM999,999,999,990'),
                   to_char(r.blocks_issued, 'FM999,999,999,990'), r.relname, to_char(r.blocks_late, 'FM999,999,999,990')),
            NULL::text, NULL::float8, to_jsonb(r);
    END LOOP;
    FOR r IN EXECUTE entries || ' WHERE blocks_issued >= 1000 AND blocks_wasted > 0.5 * blocks_issued ORDER BY blocks_wasted DESC, relid, indexrelid LIMIT 5'
    LOOP
        RETURN QUERY SELECT 'index.wasted', 'indexes', 'change',
            format('Of %s blocks of %I read ahead by scans of %s, %s%% were not needed.', to_char(r.blocks_issued, 'FM999,999,999,990'), r.relname,
                   r.name, round(100.0 * r.blocks_wasted / r.blocks_issued)),
            format('SET pg_lookahead.max_distance = %s; in the functions or for the role that reads a few rows of it at a time (ALTER FUNCTION ... SET, ALTER ROLE ... SET).', greatest(distance / 4, 1)),
            NULL::float8, to_jsonb(r);
    END LOOP;
    FOR r IN EXECUTE entries || ' WHERE wait_time >= 100 AND wait_time > saved_time ORDER BY wait_time DESC, relid, indexrelid LIMIT 5'
    LOOP
        RETURN QUERY SELECT 'index.waits', 'indexes', 'note',
            format('Scans of %s have waited %s ms for reads, more than look-ahead has saved (%s ms).', r.name,
                   to_char(r.wait_time, 'FM999,999,999,990'), to_char(r.saved_time, 'FM999,999,999,990')),
            'The findings about statements say why. If most of them are look-ups of single rows: INCLUDE (columns) makes index-only scans of them.',
            r.wait_time, to_jsonb(r);
    END LOOP;

    -- builds
    FOR r IN EXECUTE format($q$SELECT b.builds, b.index_entries, b.reason, x.meaning, x.advice
        FROM %1$s.pg_stat_lookahead_index_build b LEFT JOIN %1$s.pg_lookahead_reasons() x USING (reason)
        WHERE b.reason IS NOT NULL AND b.builds > 0 ORDER BY b.index_entries DESC$q$, ns)
    LOOP
        RETURN QUERY SELECT 'build.left', 'builds', 'note',
            format('Index builds left to the server: %s. %s: %s.', r.builds, r.reason, coalesce(r.meaning, 'a reason of another version')), r.advice, NULL::float8, to_jsonb(r);
    END LOOP;
EXCEPTION WHEN insufficient_privilege THEN
    -- what was found before stays
    GET STACKED DIAGNOSTICS trouble = MESSAGE_TEXT;
    RETURN QUERY SELECT 'server.no_privilege', 'server', 'note',
        format('%s may not read all of the statistics: %s.', current_user, trouble),
        format('Grant %I SELECT on that.', current_user), NULL::float8, '{}'::jsonb;
END
$$;

COMMENT ON FUNCTION pg_lookahead_findings_reads()
    IS 'findings about reads, the disk, indexes and index builds; behind pg_lookahead_report()';

-- What a standby waits for.
CREATE FUNCTION pg_lookahead_findings_replay(
    OUT code text,
    OUT section text,
    OUT severity text,
    OUT finding text,
    OUT advice text,
    OUT gain_ms double precision,
    OUT figures jsonb)
RETURNS SETOF record
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    ns text := (SELECT e.extnamespace::regnamespace::text FROM pg_extension e WHERE e.extname = 'pg_lookahead');
    r record;
BEGIN
    IF NOT pg_is_in_recovery() THEN
        RETURN;
    END IF;
    EXECUTE format('SELECT s.* FROM %s.pg_stat_lookahead_replay s', ns) INTO r;
    IF r.bytes_behind < 16 * 1024 * 1024 OR r.bytes_behind IS NULL THEN
        RETURN;
    END IF;
    IF r.read_wait_time >= 0.25 * (r.busy_time + r.read_wait_time) THEN
        RETURN QUERY SELECT 'replay.reads', 'replay', 'change',
            format('Replay is %s behind and waits for reads, with up to %s in flight.', pg_size_pretty(r.bytes_behind), r.depth),
            CASE r.depth_by WHEN 'setting' THEN 'ALTER SYSTEM RESET maintenance_io_concurrency; ALTER SYSTEM RESET recovery_prefetch; SELECT pg_reload_conf(); then pg_lookahead chooses how many.'
                 ELSE 'The disk is at its limit, or full-page images end what can be read ahead: a faster disk, more shared_buffers.' END,
            r.read_wait_time, to_jsonb(r);
    ELSIF r.conflict_wait_time >= 0.25 * (r.busy_time + r.conflict_wait_time) THEN
        RETURN QUERY SELECT 'replay.conflict', 'replay', 'change',
            format('Replay is %s behind and waits for sessions of this server.', pg_size_pretty(r.bytes_behind)),
            'A shorter max_standby_streaming_delay, shorter statements here, or hot_standby_feedback = on.',
            r.conflict_wait_time, to_jsonb(r);
    ELSE
        RETURN QUERY SELECT 'replay.behind', 'replay', 'note',
            format('Replay is %s behind.', pg_size_pretty(r.bytes_behind)),
            format('See what it waits for: SELECT * FROM %s.pg_stat_lookahead_replay;', ns),
            NULL::float8, to_jsonb(r);
    END IF;
EXCEPTION WHEN insufficient_privilege OR object_not_in_prerequisite_state THEN
    NULL;                       -- pg_lookahead_findings_server() tells
END
$$;

COMMENT ON FUNCTION pg_lookahead_findings_replay()
    IS 'findings about replay on a standby; behind pg_lookahead_report()';

-- What postgres_fdw could ask other servers with fewer requests.  The server does not count the
-- requests, nor what they wait for: where pg_stat_statements is there, it says what was inserted,
-- and, on the server that is asked, how many rows each FETCH has got.
CREATE FUNCTION pg_lookahead_findings_foreign(
    OUT code text,
    OUT section text,
    OUT severity text,
    OUT finding text,
    OUT advice text,
    OUT gain_ms double precision,
    OUT figures jsonb)
RETURNS SETOF record
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    default_fetch constant int := 100;
    request_bytes constant int := 1024 * 1024;  -- of rows in a request: it is in memory twice, here and on its way
    stat_statements text := (SELECT e.extnamespace::regnamespace::text FROM pg_extension e WHERE e.extname = 'pg_stat_statements');
    texts text := '(SELECT NULL::text AS query, 0::bigint AS calls, 0::bigint AS rows WHERE false)';
    tables text;
    command text;
    trouble text;
    r record;
BEGIN
    IF stat_statements IS NOT NULL THEN
        BEGIN
            EXECUTE format('SELECT FROM %s.pg_stat_statements LIMIT 1', stat_statements);
            texts := format('(SELECT to_jsonb(p)->>''query'' AS query, p.calls, (to_jsonb(p)->>''rows'')::bigint AS rows FROM %s.pg_stat_statements p
                              WHERE p.dbid = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database()))', stat_statements);
        EXCEPTION WHEN OTHERS THEN
            NULL;               -- pg_lookahead_findings_server() tells
        END;
    END IF;

    -- foreign tables of postgres_fdw; a table's options override those of its server
    tables := $q$
        SELECT t.ftrelid AS relid, t.ftserver, s.srvname, c.relname, t.ftrelid::regclass::text AS name, greatest(c.reltuples, 0)::bigint AS rows,
            CASE WHEN c.reltuples >= 1 AND c.relpages > 0 THEN c.relpages * current_setting('block_size')::float8 / c.reltuples END AS width,
            o.fetch_size, o.batch_size, o.async_capable, o.updatable
        FROM pg_foreign_table t
            JOIN pg_class c ON c.oid = t.ftrelid
            JOIN pg_foreign_server s ON s.oid = t.ftserver
            JOIN pg_depend d ON d.classid = 'pg_foreign_data_wrapper'::regclass AND d.objid = s.srvfdw AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
            JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'postgres_fdw'
            CROSS JOIN LATERAL (SELECT coalesce(max(x.option_value) FILTER (WHERE x.option_name = 'fetch_size'), '100')::int AS fetch_size,
                                    coalesce(max(x.option_value) FILTER (WHERE x.option_name = 'batch_size'), '1')::int AS batch_size,
                                    coalesce(max(x.option_value) FILTER (WHERE x.option_name = 'async_capable'), 'false')::bool AS async_capable,
                                    coalesce(max(x.option_value) FILTER (WHERE x.option_name = 'updatable'), 'true')::bool AS updatable
                                FROM (SELECT * FROM pg_options_to_table(t.ftoptions)
                                      UNION ALL
                                      SELECT v.* FROM pg_options_to_table(s.srvoptions) v
                                      WHERE v.option_name NOT IN (SELECT w.option_name FROM pg_options_to_table(t.ftoptions) w)) x) o
        WHERE NOT pg_is_other_temp_schema(c.relnamespace)$q$;
    -- how an option of a server is set
    command := $q$format('ALTER SERVER %%I OPTIONS (%%s %%s %%L);', %1$s, CASE WHEN EXISTS (
                    SELECT FROM pg_foreign_server s, pg_options_to_table(s.srvoptions) o WHERE s.srvname = %1$s AND o.option_name = %2$L) THEN 'SET' ELSE 'ADD' END, %2$L, %3$s)$q$;

    -- fetch_size: rows of about 1 MB in one request, as a power of ten, if that is several times as many
    FOR r IN EXECUTE format($q$
        SELECT x.*, %s AS advice
        FROM (SELECT DISTINCT ON (ftserver) y.*, count(*) OVER (PARTITION BY ftserver) AS tables, ceil(rows / fetch_size::numeric)::bigint AS requests
              FROM (SELECT z.*, (10 ^ least(floor(log((%s / z.width)::numeric)), 4))::int AS suits FROM (%s) z WHERE z.width IS NOT NULL) y
              WHERE rows >= 10000 AND suits >= 5 * fetch_size
              ORDER BY ftserver, rows / fetch_size::numeric DESC, name) x
        ORDER BY x.requests DESC, x.srvname$q$, format(command, 'x.srvname', 'fetch_size', 'x.suits'), request_bytes, tables)
    LOOP
        RETURN QUERY SELECT 'foreign.fetch_size', 'foreign', 'change',
            format('Scans of foreign tables of server %I get %s rows with each request (tables with 10,000 rows and more: %s). All of %s, %s rows of %s bytes, takes %s requests, each as long as the network takes there and back.',
                   r.srvname, r.fetch_size, r.tables, r.name, to_char(r.rows, 'FM999,999,999,990'), round(r.width), to_char(r.requests, 'FM999,999,999,990')),
            r.advice || format(' That would be %s requests of about %s kB, which are in memory for each such scan.', to_char(ceil(r.rows / r.suits::numeric), 'FM999,999,999,990'), round(r.width * r.suits / 1024)),
            NULL::float8, to_jsonb(r) - 'advice' - 'ftserver' - 'async_capable' - 'batch_size' - 'updatable';
    END LOOP;

    -- the other side of it: what postgres_fdw of others has got from here
    FOR r IN EXECUTE format($q$
        SELECT sum(calls)::bigint AS requests, sum(rows)::bigint AS rows, sum(rows) / sum(calls) AS rows_per_request
        FROM %s p WHERE query ~ '^FETCH (\d+|\$\d+) FROM c\d+$' HAVING sum(calls) >= 1000 AND sum(rows) BETWEEN 0.5 * %s * sum(calls) AND %2$s * sum(calls)$q$,
        texts, default_fetch)
    LOOP
        RETURN QUERY SELECT 'foreign.fetched', 'foreign', 'note',
            format('Another server''s postgres_fdw gets %s rows with each request from here: %s requests for %s rows, each as long as the network takes there and back.',
                   round(r.rows_per_request), to_char(r.requests, 'FM999,999,999,990'), to_char(r.rows, 'FM999,999,999,990')),
            'There: ALTER SERVER ... OPTIONS (ADD fetch_size ''1000''); more where rows are short.', NULL::float8, to_jsonb(r);
    END LOOP;

    -- async_capable: an Append over several servers
    FOR r IN EXECUTE format($q$
        SELECT i.inhparent::regclass::text AS name, count(*) AS tables, count(DISTINCT f.ftserver) AS servers,
            count(DISTINCT f.ftserver) FILTER (WHERE NOT f.async_capable) AS waiting,
            (SELECT string_agg(%s, ' ' ORDER BY v) FROM unnest(array_agg(DISTINCT f.srvname) FILTER (WHERE NOT f.async_capable)) v) AS advice
        FROM (%s) f JOIN pg_inherits i ON i.inhrelid = f.relid
        GROUP BY i.inhparent HAVING count(DISTINCT f.ftserver) >= 2$q$, format(command, 'v', 'async_capable', $v$'true'$v$), tables)
    LOOP
        IF r.waiting > 0 THEN
            RETURN QUERY SELECT 'foreign.async_capable', 'foreign', 'change',
                format('Scans of %s ask its %s servers one after the other (foreign tables: %s), and wait for each: %s of them are not async_capable.', r.name, r.servers, r.tables, r.waiting),
                r.advice || ' All of them would work at the same time. (EXPLAIN then says Async Foreign Scan; joins are not run ahead over such an Append.)',
                NULL::float8, to_jsonb(r) - 'advice';
        ELSIF current_setting('enable_async_append') = 'off' THEN
            RETURN QUERY SELECT 'foreign.async_append', 'foreign', 'change',
                format('enable_async_append is off: scans of %s ask its %s servers one after the other, although all are async_capable.', r.name, r.servers),
                'RESET enable_async_append; and ALTER SYSTEM RESET enable_async_append; SELECT pg_reload_conf();', NULL::float8, to_jsonb(r) - 'advice';
        END IF;
    END LOOP;

    -- batch_size: rows that were inserted one by one, by name of the table or of what it is a partition of
    FOR r IN EXECUTE format($q$
        SELECT x.*, %s AS advice
        FROM (SELECT f.srvname, count(DISTINCT f.relid) AS tables, (array_agg(f.name ORDER BY p.rows DESC, f.name))[1] AS name,
                  (array_agg(p.calls ORDER BY p.rows DESC))[1] AS calls, max(p.rows) AS rows
              FROM (%s) f
                  CROSS JOIN LATERAL (SELECT p.calls, p.rows
                      FROM (SELECT regexp_replace(c.relname, '([^[:alnum:]_])', '\\\1', 'g') AS name FROM pg_class c
                            WHERE c.oid = f.relid OR c.oid IN (SELECT pg_partition_ancestors(f.relid))) n
                          JOIN %s p ON p.query ~* ('^\s*(insert\s+into|copy)\s+([^\s(]+\.)?("' || n.name || '"|' || n.name || ')(\s|\()')
                              AND p.query !~* '^\s*copy\s[^;]*\sto\s'
                      WHERE p.rows >= 1000 AND p.rows >= 10 * p.calls ORDER BY p.rows DESC LIMIT 1) p
              WHERE f.batch_size <= 1 AND f.updatable AND NOT EXISTS (
                  SELECT FROM pg_trigger t WHERE t.tgrelid = f.relid AND NOT t.tgisinternal AND t.tgtype & 1 = 1 AND t.tgtype & 4 = 4)
              GROUP BY f.srvname) x
        ORDER BY x.rows DESC, x.srvname$q$, format(command, 'x.srvname', 'batch_size', $v$'100'$v$), tables, texts)
    LOOP
        RETURN QUERY SELECT 'foreign.batch_size', 'foreign', 'change',
            format('Rows are inserted into foreign tables of server %I with a request each (tables: %s, such as %s): one statement has inserted %s rows (executions: %s).',
                   r.srvname, r.tables, r.name, to_char(r.rows, 'FM999,999,999,990'), to_char(r.calls, 'FM999,999,999,990')),
            r.advice || ' Then a request has 100 of them. (Statements with RETURNING, and before 16 COPY, send single rows all the same.)', NULL::float8, to_jsonb(r) - 'advice';
    END LOOP;
EXCEPTION WHEN insufficient_privilege THEN
    -- what was found before stays
    GET STACKED DIAGNOSTICS trouble = MESSAGE_TEXT;
    RETURN QUERY SELECT 'server.no_privilege', 'server', 'note',
        format('%s may not read all of the statistics: %s.', current_user, trouble),
        format('Grant %I SELECT on that.', current_user), NULL::float8, '{}'::jsonb;
END
$$;

COMMENT ON FUNCTION pg_lookahead_findings_foreign()
    IS 'findings about foreign tables of postgres_fdw; behind pg_lookahead_report()';

-- All findings.  pg_lookahead_report() and pg_lookahead_report_json() show them.
CREATE FUNCTION pg_lookahead_findings(
    OUT code text,
    OUT section text,
    OUT severity text,
    OUT finding text,
    OUT advice text,
    OUT gain_ms double precision,
    OUT figures jsonb)
RETURNS SETOF record
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
    SELECT * FROM pg_lookahead_findings_server()
    UNION ALL SELECT * FROM pg_lookahead_findings_statements()
    UNION ALL SELECT * FROM pg_lookahead_findings_reads()
    UNION ALL SELECT * FROM pg_lookahead_findings_replay()
    UNION ALL SELECT * FROM pg_lookahead_findings_foreign();
END;

COMMENT ON FUNCTION pg_lookahead_findings()
    IS 'all findings, with codes and figures; behind pg_lookahead_report()';

CREATE FUNCTION pg_lookahead_report(
    OUT section text,
    OUT severity text,
    OUT finding text,
    OUT advice text,
    OUT gain text)
RETURNS SETOF record
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
    SELECT f.section, f.severity, f.finding, f.advice, 'up to ' || pg_catalog.to_char(f.gain_ms, 'FM999,999,999,990') || ' ms'
    FROM pg_lookahead_findings() f
    ORDER BY pg_catalog.array_position(ARRAY['problem', 'change', 'note', 'good'], f.severity), f.gain_ms DESC NULLS LAST, f.code, f.finding;
END;

COMMENT ON FUNCTION pg_lookahead_report()
    IS 'what to change so that statements wait less: findings, advice, and the waiting that it could save at most';

CREATE FUNCTION pg_lookahead_report_json()
RETURNS jsonb
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
    SELECT pg_catalog.jsonb_build_object(
        'version', 1,
        'time', pg_catalog.now(),
        'database', pg_catalog.current_database(),
        'server', pg_catalog.current_setting('server_version'),
        'extension', (SELECT e.extversion FROM pg_catalog.pg_extension e WHERE e.extname = 'pg_lookahead'),
        'findings', coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object('code', f.code, 'section', f.section, 'severity', f.severity,
            'finding', f.finding, 'advice', f.advice, 'gain_ms', f.gain_ms, 'figures', f.figures)
            ORDER BY pg_catalog.array_position(ARRAY['problem', 'change', 'note', 'good'], f.severity), f.gain_ms DESC NULLS LAST, f.code, f.finding), '[]'))
    FROM pg_lookahead_findings() f;
END;

COMMENT ON FUNCTION pg_lookahead_report_json()
    IS 'the findings of pg_lookahead_report() for programs, with codes and figures';
