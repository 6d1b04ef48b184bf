/*
 * unplanned.c
 *	  Statements that scan a table without a plan: COPY TO and those that rewrite a table.
 *
 * They scan it by the table's access method routine.  So before the scan the routine that the
 * table's relcache entry points to is exchanged for a copy in which scan_begin is ours.  That puts
 * back the pointer as soon as it is called, begins the scan by heapam, and has it followed
 * (tablescan.c).
 *
 *		copyto.c: when COPY has opened the table ------+--> la_unplanned_expect(table)
 *		rewrite.c: when it has created the new table -+			|
 *																v
 *		statement --> table_beginscan() --> our scan_begin: pointer put back, heapam's, followed
 *
 * If the statement fails before, or begins no such scan, the pointer is put back when it ends, or
 * the transaction, or a subtransaction fails; and the next scan of the table would.  Should the
 * entry be rebuilt, as it is when the statement has given the table a new file, heapam's routine is
 * there again.
 *
 * Invariants
 *	- The entry is open, and the table locked, while it is looked at.
 *	- Where the pointer is put back no entry is opened or looked for.  An entry that is freed has
 *	  been invalidated, which is noticed; those of tables that this transaction has created, which
 *	  may be freed without, are left alone.
 *	- Only a scan of the file that the table had is followed.  What builds its indexes on the new
 *	  one does not accept another routine than heapam's in its scan.
 *
 * src/toast/unplanned.c
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "utils/inval.h"

#include "base/base.h"
#include "base/compat.h"
#include "toast/toast_int.h"

/* The routine in which scan_begin is ours. */
static TableAmRoutine routine;

/* The table whose routine is exchanged. */
static struct
{
	Relation	rel;			/* or NULL */
	Oid			table;
	Oid			file;			/* its number */
	la_unplanned_follow follow;
}			exchanged;

/* No scan is expected any more. */
void
la_unplanned_cancel(void)
{
	if (exchanged.rel != NULL && exchanged.rel->rd_tableam == &routine)
		exchanged.rel->rd_tableam = GetHeapamTableAmRoutine();
	exchanged.rel = NULL;
}

static TableScanDesc
unplanned_scan_begin(Relation rel, Snapshot snapshot, int nkeys, struct ScanKeyData *key,
					 ParallelTableScanDesc parallel, uint32 flags)
{
	bool		is_expected = rel == exchanged.rel && la_rel_file_number(rel) == exchanged.file &&
		(flags & SO_TYPE_SEQSCAN) != 0 && parallel == NULL;
	TableScanDesc scan;

	rel->rd_tableam = GetHeapamTableAmRoutine();
	exchanged.rel = NULL;
	scan = rel->rd_tableam->scan_begin(rel, snapshot, nkeys, key, parallel, flags);
	if (is_expected)
		exchanged.follow(scan);
	return scan;
}

/* The next scan of this table, which is open, is to be followed.  Returns false if it will not. */
bool
la_unplanned_expect(Relation rel, la_unplanned_follow follow)
{
	la_unplanned_cancel();
	if (rel->rd_rel->relkind != RELKIND_RELATION ||
		rel->rd_createSubid != InvalidSubTransactionId || !la_valueahead_is_possible(rel))
		return false;
	if (routine.type != T_TableAmRoutine)
	{
		routine = *rel->rd_tableam;
		routine.scan_begin = unplanned_scan_begin;
	}
	exchanged.rel = rel;
	exchanged.table = RelationGetRelid(rel);
	exchanged.file = la_rel_file_number(rel);
	exchanged.follow = follow;
	rel->rd_tableam = &routine;
	return true;
}

static void
on_invalidation(Datum arg, Oid table)
{
	if (!OidIsValid(table) || table == exchanged.table)
		exchanged.rel = NULL;
}

/* la_transaction_function */
static void
transaction_ends(XactEvent event, SubTransactionId failed)
{
	la_unplanned_cancel();
}

void
la_unplanned_init(void)
{
	CacheRegisterRelcacheCallback(on_invalidation, (Datum) 0);
	la_transaction_register(transaction_ends);
}
