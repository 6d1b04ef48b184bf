/*
 * copyto.c
 *	  COPY TO of a table.
 *
 * It has no plan: it scans the table by the table's access method routine.  So before the statement
 * the routine that the table's relcache entry points to is exchanged for a copy in which scan_begin
 * is ours.  That puts back the pointer as soon as it is called, begins the scan by heapam, and has
 * it followed (tablescan.c).
 *
 * If the statement fails before, or scans nothing, the pointer is put back when it ends, or the
 * transaction; and the next scan of the table would.  Should the entry be rebuilt, heapam's routine
 * is there again.
 *
 * Invariants
 *	- The entry is locked, for a moment and without waiting, while it is looked at.
 *	- Where the pointer is put back no entry is opened or looked for.  An entry that is freed has
 *	  been invalidated, which is noticed; those of tables that this transaction has created, which
 *	  may be freed without, are left alone.
 *
 * src/toast/copyto.c
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/inval.h"
#include "utils/rel.h"

#include "base/guc.h"
#include "base/utility.h"
#include "toast/copyto.h"
#include "toast/tablescan.h"

/* The routine in which scan_begin is ours. */
static TableAmRoutine routine;

/* The table whose routine is exchanged. */
static struct
{
	Relation	rel;			/* or NULL */
	Oid			table;
	LaToastColumns columns;
}			exchanged;

static void
put_back(void)
{
	if (exchanged.rel != NULL && exchanged.rel->rd_tableam == &routine)
		exchanged.rel->rd_tableam = GetHeapamTableAmRoutine();
	exchanged.rel = NULL;
}

static TableScanDesc
copy_scan_begin(Relation rel, Snapshot snapshot, int nkeys, struct ScanKeyData *key,
				ParallelTableScanDesc parallel, uint32 flags)
{
	bool		is_copy = rel == exchanged.rel;
	TableScanDesc scan;

	rel->rd_tableam = GetHeapamTableAmRoutine();
	exchanged.rel = NULL;
	scan = rel->rd_tableam->scan_begin(rel, snapshot, nkeys, key, parallel, flags);
	if (is_copy && (flags & SO_TYPE_SEQSCAN) != 0 && parallel == NULL)
		la_tablescan_follow(scan, NULL, &exchanged.columns, CurrentMemoryContext);
	return scan;
}

/* The table is locked and open. */
static void
exchange(Relation rel, List *names)
{
	if (rel->rd_rel->relkind != RELKIND_RELATION || rel->rd_rel->relrowsecurity ||
		rel->rd_createSubid != InvalidSubTransactionId ||
		!la_valueahead_is_possible(rel) ||
		!la_toastcolumns_of_copy(&exchanged.columns, rel, names))
		return;
	if (routine.type != T_TableAmRoutine)
	{
		routine = *rel->rd_tableam;
		routine.scan_begin = copy_scan_begin;
	}
	exchanged.rel = rel;
	exchanged.table = RelationGetRelid(rel);
	rel->rd_tableam = &routine;
}

static bool
before_copy(const Node *statement)
{
	const CopyStmt *copy = (const CopyStmt *) statement;
	Oid			table;
	Relation	rel;

	put_back();
	if (!IsA(statement, CopyStmt) || !la_enable || !la_enable_toast || copy->is_from ||
		copy->relation == NULL)
		return false;
	table = RangeVarGetRelid(copy->relation, NoLock, true);
	if (!OidIsValid(table) ||
		pg_class_aclcheck(table, GetUserId(), ACL_SELECT) != ACLCHECK_OK ||
		!ConditionalLockRelationOid(table, AccessShareLock))
		return false;
	rel = try_relation_open(table, NoLock);
	if (rel != NULL)
	{
		exchange(rel, copy->attlist);
		relation_close(rel, NoLock);
	}
	UnlockRelationOid(table, AccessShareLock);
	return exchanged.rel != NULL;
}

static void
on_invalidation(Datum arg, Oid table)
{
	if (!OidIsValid(table) || table == exchanged.table)
		exchanged.rel = NULL;
}

static void
on_transaction(XactEvent event, void *arg)
{
	put_back();
}

static void
on_subtransaction(SubXactEvent event, SubTransactionId subid, SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		put_back();
}

void
la_copyto_init(void)
{
	la_utility_register(before_copy, put_back);
	CacheRegisterRelcacheCallback(on_invalidation, (Datum) 0);
	RegisterXactCallback(on_transaction, NULL);
	RegisterSubXactCallback(on_subtransaction, NULL);
}
