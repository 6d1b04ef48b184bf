/*
 * compat.h
 *	  The only place that knows which server it is compiled for.
 *
 * It names the differences between PostgreSQL 15, 16, 17, 18 and 19 that matter to the
 * extension, each with the upstream commit that made it, so that the rooms read the same for
 * every version.  dev/lint refuses version checks anywhere else.
 *
 * src/base/compat.h
 */
#ifndef LA_COMPAT_H
#define LA_COMPAT_H

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 200000
#error "pg_lookahead supports PostgreSQL 15 to 19, and no newer one yet"
#endif

/* ---- release and build ----------------------------------------------------- */

/* The releases of the headers and of the running server; test/t/016_minor.pl sets others. */
#ifndef LA_BUILT_VERSION
#define LA_BUILT_VERSION		PG_VERSION
#endif
#ifndef LA_BUILT_VERSION_NUM
#define LA_BUILT_VERSION_NUM	PG_VERSION_NUM
#endif
#ifndef LA_RUNNING_VERSION_NUM
#define LA_RUNNING_VERSION_NUM \
	atoi(GetConfigOption("server_version_num", false, false))
#endif

/* 16 declares the macros of varlena values in varatt.h (commit d952373a987b). */
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

#include "miscadmin.h"
#include "storage/fd.h"
#include "storage/lmgr.h"

/*
 * What this backend has counted of a relation and not reported yet.  16 renamed the
 * members, and 17 returns a copy.
 */
#include "pgstat.h"
#if PG_VERSION_NUM >= 160000
#define la_count_scans(entry)	((entry)->counts.numscans)
#define la_count_returned(entry)	((entry)->counts.tuples_returned)
#else
#define la_count_scans(entry)	((entry)->t_counts.t_numscans)
#define la_count_returned(entry)	((entry)->t_counts.t_tuples_returned)
#endif
#if PG_VERSION_NUM >= 170000
#define la_count_free(entry)	pfree(entry)
#else
#define la_count_free(entry)	((void) (entry))
#endif

/*
 * The number of this process among those that MaxBackends counts, from 0 on; another one, or a
 * negative one, if it is none of these.  17 numbers processes from 0 on (commit 024c52111757).
 */
#include "storage/proc.h"
#if PG_VERSION_NUM >= 170000
#define la_backend_number()	((int) MyProcNumber)
#else
#include "storage/backendid.h"
#define la_backend_number()	((int) MyBackendId - 1)
#endif

/* ---- buffers and files ----------------------------------------------------- */

/* The name of a relation's first file, allocated.  18 returns it in a structure. */
#if PG_VERSION_NUM >= 180000
#define la_relation_path(rel) \
	pstrdup(relpath(RelationGetSmgr(rel)->smgr_rlocator, MAIN_FORKNUM).str)
#elif PG_VERSION_NUM >= 160000
#define la_relation_path(rel)	relpath(RelationGetSmgr(rel)->smgr_rlocator, MAIN_FORKNUM)
#else
#define la_relation_path(rel)	relpath(RelationGetSmgr(rel)->smgr_rnode, MAIN_FORKNUM)
#endif

/* 16 renamed RelFileNode to RelFileLocator (commit b0a55e43299c). */
#if PG_VERSION_NUM >= 160000
#define LaRelFileLocator		RelFileLocator
#define la_tablespace			spcOid
#define la_block_locator(block)	((block)->rlocator)
#define la_rel_locator(rel)		((rel)->rd_locator)
#define la_rel_file_number(rel)	((rel)->rd_locator.relNumber)
#define la_init_buffer_tag(tag, rel, block) \
	InitBufferTag(&(tag), &(rel)->rd_locator, MAIN_FORKNUM, block)
#else
#define LaRelFileLocator		RelFileNode
#define la_tablespace			spcNode
#define la_block_locator(block)	((block)->rnode)
#define la_rel_locator(rel)		((rel)->rd_node)
#define la_rel_file_number(rel)	((rel)->rd_node.relNode)
#define la_init_buffer_tag(tag, rel, block) \
	INIT_BUFFERTAG(tag, (rel)->rd_node, MAIN_FORKNUM, block)
#endif

/*
 * 19 made the state of a buffer 64 bits wide (commit dac328c8a682).  There
 * ReadRecentBuffer() counts as a use of the buffer, and if this backend has pinned the
 * buffer already and its read is in progress, it keeps a pin although it returns false, so
 * it must not be called then (commit 819dc118c0f6).  Before 19, la_count_recent_use()
 * counts the use.  It tries only once: if another process has changed the state meanwhile,
 * that one has just used the buffer.
 *
 * The state is read without a lock, and orders nothing: who goes on to the page pins it, by an
 * atomic exchange, and locks it.
 */
#if PG_VERSION_NUM >= 190000
#define la_buffer_state(buffer) \
	pg_atomic_read_u64(&GetBufferDescriptor((buffer) - 1)->state)
#define la_recent_is_valid(buffer)	((la_buffer_state(buffer) & BM_VALID) != 0)
#define la_count_recent_use(buffer) ((void) 0)
#else
#define la_buffer_state(buffer) \
	pg_atomic_read_u32(&GetBufferDescriptor((buffer) - 1)->state)
#define la_recent_is_valid(buffer)	true
#define la_count_recent_use(buffer) \
	do { \
		uint32		state_ = la_buffer_state(buffer); \
		if (BUF_STATE_GET_USAGECOUNT(state_) < BM_MAX_USAGE_COUNT && \
			(state_ & BM_LOCKED) == 0) \
			(void) pg_atomic_compare_exchange_u32(&GetBufferDescriptor((buffer) - 1)->state, \
												  &state_, state_ + BUF_USAGECOUNT_ONE); \
	} while (0)
#endif

/* 16 reads into memory that is aligned for direct I/O (commit faeedbcefd40). */
#if PG_VERSION_NUM >= 160000
#define LaIOAlignedBlock	PGIOAlignedBlock
#else
#define LaIOAlignedBlock	PGAlignedBlock
#endif

/* 17 exports how many more buffers a backend may pin (commit 210622c60e1a). */
#if PG_VERSION_NUM >= 170000
#define la_limit_additional_pins(pins, local) \
	((local) ? LimitAdditionalLocalPins(pins) : LimitAdditionalPins(pins))
#else
#define la_limit_additional_pins(pins, local)	((void) 0)
#endif

/* 17 prefetches ranges of blocks. */
#if PG_VERSION_NUM >= 170000
#define la_smgr_prefetches_ranges	true
#define la_smgr_prefetch(smgr, first, nblocks) \
	smgrprefetch(smgr, MAIN_FORKNUM, first, nblocks)
#else
#define la_smgr_prefetches_ranges	false
#define la_smgr_prefetch(smgr, first, nblocks) \
	do { \
		for (BlockNumber i_ = 0; i_ < (nblocks); i_++) \
			(void) smgrprefetch(smgr, MAIN_FORKNUM, (first) + i_); \
	} while (0)
#endif

/*
 * 16 added debug_io_direct (commit d4e71df6d757).  posix_fadvise() has no effect on
 * files opened with O_DIRECT.
 */
#if PG_VERSION_NUM >= 160000
#define la_direct_io()		((io_direct_flags & IO_DIRECT_DATA) != 0)
#else
#define la_direct_io()		false
#endif

/* 18 reads asynchronously (commit da7226993fd4 and its successors). */
#if PG_VERSION_NUM >= 180000
#define LA_HAVE_AIO 1
#endif

/* 19 has a minimum for each type of process. */
#if PG_VERSION_NUM >= 190000
#define la_log_min_messages		log_min_messages[MyBackendType]
#else
#define la_log_min_messages		log_min_messages
#endif

/* What is left of an operation after an error. */
#if PG_VERSION_NUM >= 180000
#include "storage/aio_subsys.h"
#define la_aio_error_cleanup()	pgaio_error_cleanup()
#else
#define la_aio_error_cleanup()	((void) 0)
#endif

/* Before 18 no header declares it. */
#if PG_VERSION_NUM >= 180000
#include "storage/bufpage.h"
#else
extern PGDLLIMPORT bool ignore_checksum_failure;
#endif

/* From 16 on a resource owner knows of reads into buffers. */
#if PG_VERSION_NUM >= 160000
#define la_abort_buffer_io()	((void) 0)
#else
#include "storage/bufmgr.h"
#define la_abort_buffer_io()	AbortBufferIO()
#endif

/*
 * 19 lets an operation wait for a read of the block that another operation, perhaps of
 * another process, has started.  Its own result is then not known (commit 999dec9ec6a8).
 */
#if PG_VERSION_NUM >= 190000
#define la_read_is_of_another(operation)	((operation)->foreign_io)
#else
#define la_read_is_of_another(operation)	false
#endif

/*
 * 16 counts buffer hits in pg_stat_io (commit a9c70b46dbe1), 18 also bytes (commit
 * f92c854cf406).
 */
#if PG_VERSION_NUM >= 180000
#define la_count_io_hit() \
	pgstat_count_io_op(IOOBJECT_RELATION, IOCONTEXT_NORMAL, IOOP_HIT, 1, 0)
#elif PG_VERSION_NUM >= 160000
#define la_count_io_hit() \
	pgstat_count_io_op(IOOBJECT_RELATION, IOCONTEXT_NORMAL, IOOP_HIT)
#else
#define la_count_io_hit()	((void) 0)
#endif

/*
 * 17 writes new files in bulk (commit 8af256524893).  Before 17, pages are written one by
 * one, and 16 requires their memory to be aligned for O_DIRECT (commit faeedbcefd40).
 */
#if PG_VERSION_NUM >= 170000
#define LA_BULK_WRITE 1
#elif PG_VERSION_NUM >= 160000
#define la_alloc_page(context) \
	MemoryContextAllocAligned(context, BLCKSZ, PG_IO_ALIGN_SIZE, 0)
#else
#define la_alloc_page(context)	MemoryContextAlloc(context, BLCKSZ)
#endif

/* ---- index access methods -------------------------------------------------- */

/*
 * 19 has one constant routine for all indexes of an access method; before 19, each index
 * has a copy of its own (commit bc6374cd76ab).
 */
#if PG_VERSION_NUM >= 190000
#define la_routine_is_shared(index) \
	((index)->rd_indam == GetIndexAmRoutine((index)->rd_amhandler))
#else
#define la_routine_is_shared(index) false
#endif

/* 17 calls an index when a statement has inserted its last row (commit c1ec02be1d79). */
#if PG_VERSION_NUM >= 170000
#define la_set_insert_cleanup(routine, function) \
	((routine)->aminsertcleanup = (function))
#else
#define la_set_insert_cleanup(routine, function)	((void) (function))
#endif

/*
 * 18 passes a node's counters to the scan (commit 0fbceae841cb), and 19 allocates these
 * separately (commit f026fbf059f2).  19 needs to know whether the statement changes the
 * scanned table (commit 50eb5faea295).
 */
#if PG_VERSION_NUM >= 190000
#define la_index_beginscan(ss, index, snap, instr, nkeys, norderbys) \
	index_beginscan((ss)->ss_currentRelation, index, snap, instr, nkeys, norderbys, \
					ScanRelIsReadOnly(ss) ? SO_HINT_REL_READ_ONLY : SO_NONE)
#define la_iss_instrument(node)		((node)->iss_Instrument)
#define la_ioss_instrument(node)	((node)->ioss_Instrument)
#define la_table_beginscan_parallel(rel, scan) \
	table_beginscan_parallel(rel, scan, SO_NONE)
#define la_table_scan_flags(ss) \
	((ScanRelIsReadOnly(ss) ? SO_HINT_REL_READ_ONLY : SO_NONE) | \
	 (((ss)->ps.state->es_instrument & INSTRUMENT_IO) != 0 ? SO_SCAN_INSTRUMENT : SO_NONE))
#define la_table_beginscan(ss, snapshot) \
	table_beginscan((ss)->ss_currentRelation, snapshot, 0, NULL, la_table_scan_flags(ss))
#define la_table_beginscan_tidrange(rel, snap, first, last) \
	table_beginscan_tidrange(rel, snap, first, last, SO_NONE)
#elif PG_VERSION_NUM >= 180000
#define la_index_beginscan(ss, index, snap, instr, nkeys, norderbys) \
	index_beginscan((ss)->ss_currentRelation, index, snap, instr, nkeys, norderbys)
#define la_iss_instrument(node)		(&(node)->iss_Instrument)
#define la_ioss_instrument(node)	(&(node)->ioss_Instrument)
#else
#define la_index_beginscan(ss, index, snap, instr, nkeys, norderbys) \
	index_beginscan((ss)->ss_currentRelation, index, snap, nkeys, norderbys)
#define la_iss_instrument(node)		NULL
#define la_ioss_instrument(node)	NULL
#endif
#if PG_VERSION_NUM < 190000
#define la_table_beginscan_parallel(rel, scan)	table_beginscan_parallel(rel, scan)
#define la_table_beginscan(ss, snapshot) \
	table_beginscan((ss)->ss_currentRelation, snapshot, 0, NULL)
#define la_table_beginscan_tidrange(rel, snap, first, last) \
	table_beginscan_tidrange(rel, snap, first, last)
#endif

/* 18 counts index searches for EXPLAIN ANALYZE (commit 0fbceae841cb); TID ranges are in a union. */
#if PG_VERSION_NUM >= 180000
#define la_tidrange_last(scan)	(&(scan)->st.tidrange.rs_maxtid)
#define la_count_index_search(scan, n) \
	((scan)->instrument ? (void) ((scan)->instrument->nsearches += (n)) : (void) 0)
#else
#define la_tidrange_last(scan)	(&(scan)->rs_maxtid)
#define la_count_index_search(scan, n)	((void) 0)
#endif

/* 19 sets a fake LSN with each change of an index page that is not logged. */
#if PG_VERSION_NUM >= 190000
#define la_set_fake_lsn(rel, page)	PageSetLSN(page, XLogGetFakeLSN(rel))
#else
#define la_set_fake_lsn(rel, page)	((void) 0)
#endif

/* ---- locks and foreign keys -------------------------------------------------- */

/*
 * Has this transaction locked a table of this database?  Before 17, the server has only functions
 * that need the table to be open, and LockHeldByMe() for one mode.
 */
static inline bool
la_is_locked_by_me(Oid table)
{
#if PG_VERSION_NUM >= 170000
	return CheckRelationOidLockedByMe(table, AccessShareLock, true);
#else
	LOCKTAG		tag;

	SET_LOCKTAG_RELATION(tag, MyDatabaseId, table);
	for (LOCKMODE mode = AccessShareLock; mode <= AccessExclusiveLock; mode++)
	{
		if (LockHeldByMe(&tag, mode))
			return true;
	}
	return false;
#endif
}

/*
 * Take a lock without waiting, and without an error if there is no room for it: returns
 * LOCKACQUIRE_NOT_AVAIL.  18 can report failures in the log.
 */
#if PG_VERSION_NUM >= 180000
#define la_lock_at_once(tag, mode, locallock) \
	LockAcquireExtended(tag, mode, false, true, false, locallock, false)
#else
#define la_lock_at_once(tag, mode, locallock) \
	LockAcquireExtended(tag, mode, false, true, false, locallock)
#endif

/*
 * 19 makes the checks of foreign keys by index scans, for so many rows at a time (commit
 * b7b27eb41a5c), but for those of partitioned tables, for which it makes queries as before.
 */
#if PG_VERSION_NUM >= 190000
#define LA_CHECKS_AT_A_TIME		64
#else
#define LA_CHECKS_AT_A_TIME		1
#endif

/* ---- heap ------------------------------------------------------------------ */

/*
 * 17 removed old_snapshot_threshold (commit f691f5b80a85).  Where it is set, reading a
 * leaf page early could raise "snapshot too old" early.
 */
#if PG_VERSION_NUM < 170000
#define la_early_reads_may_fail()	(old_snapshot_threshold >= 0)
#else
#define la_early_reads_may_fail()	false
#endif

/*
 * 19 keeps track of the block and the visibility map page of an index scan's heap buffer
 * (commits c7d09595e46f, 99bf1f8aa6cd), and pruning sets the visibility map if the
 * statement does not change the table (commit 50eb5faea295).  So in 19 a page is pruned for
 * the scan that turns to it; before 19, by whatever makes its buffer current.
 */
#if PG_VERSION_NUM >= 190000
#define la_prune(rel, buffer)	((void) 0)
#define la_heap_turned_to(fetch, block) \
	((fetch)->xs_blk == (block) ? (void) 0 : \
	 ((fetch)->xs_blk = (block), \
	  heap_page_prune_opt((fetch)->xs_base.rel, (fetch)->xs_cbuf, \
						  &(fetch)->xs_vmbuffer, \
						  ((fetch)->xs_base.flags & SO_HINT_REL_READ_ONLY) != 0)))
#else
#define la_prune(rel, buffer)		heap_page_prune_opt(rel, buffer)
#define la_heap_turned_to(fetch, block) ((void) 0)
#endif

/* ---- planner --------------------------------------------------------------- */

/* 18 sorts SetOp's inputs by its operators, too, and renamed them (commit 27627929528e). */
#if PG_VERSION_NUM >= 180000
#define la_setop_operators(plan)	((plan)->cmpOperators)
#define la_setop_collations(plan)	((plan)->cmpCollations)
#else
#define la_setop_operators(plan)	((plan)->dupOperators)
#define la_setop_collations(plan)	((plan)->dupCollations)
#endif

/* 19 calls extensions once the planner's relation is complete (commit 91f33a2ae92a). */
#if PG_VERSION_NUM >= 190000
#define la_relation_hook_type	build_simple_rel_hook_type
#define la_relation_hook		build_simple_rel_hook
#define LA_RELATION_HOOK_ARGS	PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte
#define LA_RELATION_HOOK_PASS	root, rel, rte
#define LA_RELATION_HOOK_OID	(rte->relid)
#else
#define la_relation_hook_type	get_relation_info_hook_type
#define la_relation_hook		get_relation_info_hook
#define LA_RELATION_HOOK_ARGS \
	PlannerInfo *root, Oid relid, bool inhparent, RelOptInfo *rel
#define LA_RELATION_HOOK_PASS	root, relid, inhparent, rel
#define LA_RELATION_HOOK_OID	relid
#endif

/* 19 passes EXPLAIN's state to the planner. */
#if PG_VERSION_NUM >= 190000
#define LA_PLANNER_ARGS \
	Query *parse, const char *query_string, int cursorOptions, \
	ParamListInfo boundParams, ExplainState *es
#define LA_PLANNER_PASS	parse, query_string, cursorOptions, boundParams, es
#else
#define LA_PLANNER_ARGS \
	Query *parse, const char *query_string, int cursorOptions, \
	ParamListInfo boundParams
#define LA_PLANNER_PASS	parse, query_string, cursorOptions, boundParams
#endif

/* ---- executor -------------------------------------------------------------- */

/* 18 dropped execute_once (commit 3eea7a0c97e9). */
#if PG_VERSION_NUM >= 180000
#define LA_EXECUTOR_RUN_ARGS \
	QueryDesc *queryDesc, ScanDirection direction, uint64 count
#define LA_EXECUTOR_RUN_PASS	queryDesc, direction, count
#else
#define LA_EXECUTOR_RUN_ARGS \
	QueryDesc *queryDesc, ScanDirection direction, uint64 count, \
	bool execute_once
#define LA_EXECUTOR_RUN_PASS	queryDesc, direction, count, execute_once
#endif

/* 16 moved what is checked out of the range table (commit a61b1f74823c). */
#if PG_VERSION_NUM >= 160000
#define LA_CHECK_PERMS_ARGS \
	List *rangeTable, List *rteperminfos, bool ereport_on_violation
#define LA_CHECK_PERMS_PASS	rangeTable, rteperminfos, ereport_on_violation
#else
#define LA_CHECK_PERMS_ARGS	List *rangeTable, bool ereport_on_violation
#define LA_CHECK_PERMS_PASS	rangeTable, ereport_on_violation
#endif

/* 17 tells the time of reads of shared blocks from that of local ones (commit 295c36c0c1fa). */
#if PG_VERSION_NUM >= 170000
#define la_block_read_seconds(usage) \
	(INSTR_TIME_GET_DOUBLE((usage).shared_blk_read_time) + \
	 INSTR_TIME_GET_DOUBLE((usage).local_blk_read_time))
#else
#define la_block_read_seconds(usage)	INSTR_TIME_GET_DOUBLE((usage).blk_read_time)
#endif

/* 19 has no initial size of a hash table in shared memory. */
#if PG_VERSION_NUM >= 190000
#define la_shmem_init_hash(name, entries, info, flags) \
	ShmemInitHash(name, entries, info, flags)
#else
#define la_shmem_init_hash(name, entries, info, flags) \
	ShmemInitHash(name, entries, entries, info, flags)
#endif

/* 18 can also return the relations of the subplans (commit cbc127917e04). */
#if PG_VERSION_NUM >= 180000
#define la_find_matching_subplans(pruning) \
	ExecFindMatchingSubPlans(pruning, false, NULL)
#else
#define la_find_matching_subplans(pruning) \
	ExecFindMatchingSubPlans(pruning, false)
#endif

/* 19 has a separate structure for instrumentation of plan nodes (commit 5a79e78501f4). */
#if PG_VERSION_NUM >= 190000
#define LaNodeInstrumentation	NodeInstrumentation
#define la_instr_start_time(instrument)	((instrument)->instr.starttime)
#else
#define LaNodeInstrumentation	Instrumentation
#define la_instr_start_time(instrument)	((instrument)->starttime)
#endif

/*
 * The columns that a query reads of a table in its range table, as pg_attribute numbers them in a
 * Bitmapset; false: not known, as of a partition.  16 keeps them apart (commit a61b1f74823c).
 */
#include "nodes/execnodes.h"
#include "parser/parsetree.h"
#include "parser/parse_relation.h"
static inline bool
la_selected_columns(EState *estate, Index rti, const Bitmapset **columns)
{
	RangeTblEntry *rte = rt_fetch(rti, estate->es_range_table);

#if PG_VERSION_NUM >= 160000
	if (rte->perminfoindex == 0 ||
		(int) rte->perminfoindex > list_length(estate->es_rteperminfos))
		return false;
	*columns = getRTEPermissionInfo(estate->es_rteperminfos, rte)->selectedCols;
#else
	if (rte->requiredPerms == 0)
		return false;
	*columns = rte->selectedCols;
#endif
	return true;
}

/* Tables of one query are known to another one with the same permissions. */
static inline void
la_share_permissions(Query *query, const Query *of)
{
#if PG_VERSION_NUM >= 160000
	query->rteperminfos = of->rteperminfos;
#endif
}

/* Attributes of a descriptor have been changed: renew what is known of their places in a row. */
static inline void
la_tupdesc_changed(TupleDesc desc)
{
	for (int i = 0; i < desc->natts; i++)
#if PG_VERSION_NUM >= 180000
		populate_compact_attribute(desc, i);
#else
		TupleDescAttr(desc, i)->attcacheoff = -1;
#endif
#if PG_VERSION_NUM >= 190000
	TupleDescFinalize(desc);
#endif
}

/* 17 reads ahead of sequential scans itself (commit b7b0f3f27241). */
#if PG_VERSION_NUM >= 170000
#define la_table_scans_read_ahead	true
#else
#define la_table_scans_read_ahead	false
#endif

/* 19 has no TTS_FLAG_SLOW, and slots are created with flags (commit c456e3911380). */
#if PG_VERSION_NUM >= 190000
#define la_slot_position_flags	0
#define la_alloc_table_slot(list, desc, ops)	ExecAllocTableSlot(list, desc, ops, 0)
#else
#define la_slot_position_flags	TTS_FLAG_SLOW
#define la_alloc_table_slot(list, desc, ops)	ExecAllocTableSlot(list, desc, ops)
#endif

/* 16 added functions that call the input function of a type that an argument names. */
#if PG_VERSION_NUM >= 160000
#define LA_INPUT_TEST_FUNCTIONS F_PG_INPUT_IS_VALID, F_PG_INPUT_ERROR_INFO,
#else
#define LA_INPUT_TEST_FUNCTIONS
#endif

/*
 * 18 reads the blocks of a bitmap through a stream, which has no limit of its own (commit
 * 2b73a8cd33b7).  la_bitmap_prefetch_limit() is NULL there.
 */
#if PG_VERSION_NUM >= 180000
#define la_bitmap_prefetch_limit(node)	((int *) NULL)
#define la_bitmap_heap_blocks(node)	((void) (node), 0)
#else
#define la_bitmap_prefetch_limit(node)	(&(node)->prefetch_maximum)
#define la_bitmap_heap_blocks(node)	((node)->exact_pages + (node)->lossy_pages)
#endif

/*
 * How many reads a bitmap heap scan has in flight, at most, at this effective_io_concurrency;
 * raised: what bitmap/ raises it to before 18.  The server's workers read one block each; 19 starts
 * and stops them as they are needed.
 */
#if PG_VERSION_NUM >= 190000
#define la_bitmap_distance(concurrency, raised) \
	((void) (raised), \
	 io_method == IOMETHOD_WORKER ? Min(concurrency, io_max_workers) : (concurrency))
#elif PG_VERSION_NUM >= 180000
#define la_bitmap_distance(concurrency, raised) \
	((void) (raised), \
	 io_method == IOMETHOD_WORKER ? Min(concurrency, io_workers) : (concurrency))
#else
#define la_bitmap_distance(concurrency, raised) \
	((concurrency) > 0 ? Max(concurrency, raised) : 0)
#endif

/* ---- hash joins ------------------------------------------------------------ */

/*
 * 18 computes a row's hash value by one expression (commit adf97c156238).  16 and 18 added
 * types of joins (commits 16dc2703c541, aa86129e19d7).
 */
#if PG_VERSION_NUM >= 180000
#define LA_HASH_EXPRESSIONS 1
#define la_hash_table_create(node, hash)	ExecHashTableCreate(hash)
#define LA_JOIN_RIGHT_SEMI	JOIN_RIGHT_SEMI
#else
#define la_hash_table_create(node, hash) \
	ExecHashTableCreate(hash, (node)->hj_HashOperators, (node)->hj_Collations, \
						(node)->hj_NullOuterTupleSlot != NULL)
#define LA_JOIN_RIGHT_SEMI	((JoinType) -1)
#endif
#if PG_VERSION_NUM >= 160000
#define LA_JOIN_RIGHT_ANTI	JOIN_RIGHT_ANTI
#else
#define LA_JOIN_RIGHT_ANTI	((JoinType) -2)
#endif

/*
 * 19 keeps rows with null keys of outer joins apart, in tuplestores of the node (commit
 * 1811f1af98fb), and counts the rows of the table under another name.
 */
#if PG_VERSION_NUM >= 190000
#define la_hash_keeps_outer_nulls(node) ((node)->hj_KeepNullTuples)
#define la_hash_keeps_inner_nulls(hash) ((hash)->keep_null_tuples)
#define la_hash_outer_nulls(node)	(&(node)->hj_NullOuterTupleStore)
#define la_hash_inner_nulls(hash)	(&(hash)->null_tuple_store)
#define la_hash_create_null_store(table)	ExecHashBuildNullTupleStore(table)
#define la_hash_reported_rows	reportTuples
#else
#define la_hash_keeps_outer_nulls(node) false
#define la_hash_keeps_inner_nulls(hash) false
#define la_hash_outer_nulls(node)	((Tuplestorestate **) NULL)
#define la_hash_inner_nulls(hash)	((Tuplestorestate **) NULL)
#define la_hash_create_null_store(table)	NULL
#define la_hash_reported_rows	partialTuples
#endif

/* ---- writes ---------------------------------------------------------------- */

/* 17 added random() with bounds, 16 random_normal(), and 18 uuidv4() and uuidv7(). */
#if PG_VERSION_NUM >= 180000
#define LA_RANDOM_FUNCTIONS F_RANDOM_, F_RANDOM_INT4_INT4, F_RANDOM_INT8_INT8, \
	F_RANDOM_NUMERIC_NUMERIC, F_RANDOM_NORMAL, F_UUIDV4, F_UUIDV7_
#elif PG_VERSION_NUM >= 170000
#define LA_RANDOM_FUNCTIONS F_RANDOM_, F_RANDOM_INT4_INT4, F_RANDOM_INT8_INT8, \
	F_RANDOM_NUMERIC_NUMERIC, F_RANDOM_NORMAL
#elif PG_VERSION_NUM >= 160000
#define LA_RANDOM_FUNCTIONS F_RANDOM, F_RANDOM_NORMAL
#else
#define LA_RANDOM_FUNCTIONS F_RANDOM
#endif

/*
 * The columns that an UPDATE sets in a table.  18 leaves out tables that were pruned when the
 * executor started, and keeps lists of its own for the others.
 */
#if PG_VERSION_NUM >= 180000
#define la_update_columns(mt, i)	((List *) list_nth((mt)->mt_updateColnosLists, i))
#else
#define la_update_columns(mt, i) \
	((List *) list_nth(((ModifyTable *) (mt)->ps.plan)->updateColnosLists, i))
#endif

/* The columns whose change keeps a new version from being heap-only. */
#if PG_VERSION_NUM >= 160000
#define la_indexed_columns(table) \
	RelationGetIndexAttrBitmap(table, INDEX_ATTR_BITMAP_HOT_BLOCKING)
#else
#define la_indexed_columns(table)	RelationGetIndexAttrBitmap(table, INDEX_ATTR_BITMAP_ALL)
#endif

/*
 * MERGE's actions.  17 has those for rows that the source does not have, and with these checks the
 * join's condition for each row (commit 0294df2f1f84).  18 leaves out tables that were pruned when
 * the executor started.
 */
#if PG_VERSION_NUM >= 170000
#define la_merge_matched_actions(relation) \
	((relation)->ri_MergeActions[MERGE_WHEN_MATCHED])
#define la_merge_by_source_actions(relation) \
	((relation)->ri_MergeActions[MERGE_WHEN_NOT_MATCHED_BY_SOURCE])
#define la_merge_not_matched_actions(relation) \
	((relation)->ri_MergeActions[MERGE_WHEN_NOT_MATCHED_BY_TARGET])
#else
#define la_merge_matched_actions(relation)	((relation)->ri_matchedMergeAction)
#define la_merge_by_source_actions(relation)	NIL
#define la_merge_not_matched_actions(relation)	((relation)->ri_notMatchedMergeAction)
#endif
#if PG_VERSION_NUM >= 180000
#define la_merge_join_condition(mt, i)	((List *) list_nth((mt)->mt_mergeJoinConditions, i))
#elif PG_VERSION_NUM >= 170000
#define la_merge_join_condition(mt, i) \
	((List *) list_nth(((ModifyTable *) (mt)->ps.plan)->mergeJoinConditions, i))
#else
#define la_merge_join_condition(mt, i)	((void) (i), NIL)
#endif

/*
 * RETURNING can name MERGE's action in 17 (commit c649fa24a42b), and the old and the new row in 18
 * (commit 80feb727c869).
 */
#if PG_VERSION_NUM >= 180000
#define la_is_of_returning(node)	(IsA(node, MergeSupportFunc) || IsA(node, ReturningExpr))
#elif PG_VERSION_NUM >= 170000
#define la_is_of_returning(node)	IsA(node, MergeSupportFunc)
#else
#define la_is_of_returning(node)	false
#endif

/* ---- settings, locales and EXPLAIN ----------------------------------------- */

/*
 * 16 has a memory context for settings (commit 407b50f2d421), from which check hooks have to
 * allocate what they pass to assign hooks.
 */
#if PG_VERSION_NUM >= 160000
#define la_guc_alloc(size)	guc_malloc(LOG, size)
#else
#define la_guc_alloc(size)	malloc(size)
#endif

/* What is known of a setting, or NULL.  16 finds one by its name (commit 3057465acfbe). */
#include "utils/guc_tables.h"
#if PG_VERSION_NUM >= 160000
#define la_find_setting(name)	find_option(name, false, true, ERROR)
#else
static inline struct config_generic *
la_find_setting(const char *name)
{
	struct config_generic **settings = get_guc_variables();

	for (int i = 0; i < GetNumConfigOptions(); i++)
	{
		if (strcmp(settings[i]->name, name) == 0)
			return settings[i];
	}
	return NULL;
}
#endif

/* 18 removed lc_collate_is_c() (commit 06421b084364).  See base.h. */
#if PG_VERSION_NUM >= 180000
#define la_collation_is_c(oid)	(pg_newlocale_from_collation(oid)->collate_is_c)
#else
#define la_collation_is_c(oid)	lc_collate_is_c(oid)
#endif

/*
 * 18 lets extensions print below a plan node (commit 4fd02bf7cf94), and declare name and
 * version in their magic block (commit 9324c8c58065).
 */
#if PG_VERSION_NUM >= 180000
#define LA_HAVE_EXPLAIN_HOOK 1
#define LA_HAVE_MODULE_VERSIONS 1
#endif

/*
 * 19 describes the reads of a scan's stream by EXPLAIN (IO): is it asked to, and does it for this
 * node?
 */
#if PG_VERSION_NUM >= 190000
#define la_explain_io(es)		((es)->io)
#define la_explain_has_stream(ps, es) \
	((es)->io && (IsA(ps, SeqScanState) || IsA(ps, BitmapHeapScanState) || \
				  IsA(ps, TidRangeScanState)))
#else
#define la_explain_io(es)		false
#define la_explain_has_stream(ps, es)	false
#endif

/* ---- logical replication ------------------------------------------------------ */

/*
 * 16 finds rows by any usable index where the publisher sends all columns and the table has
 * neither a replica identity nor a primary key (commit 89e46da5e511).
 */
#if PG_VERSION_NUM >= 160000
#define LA_APPLY_SEARCHES_ANY_INDEX true
#else
#define LA_APPLY_SEARCHES_ANY_INDEX false
#endif

#endif							/* LA_COMPAT_H */
