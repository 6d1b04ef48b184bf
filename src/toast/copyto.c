/*
 * copyto.c
 *	  COPY TO of a table.
 *
 * Before the statement it is found out which table it will scan, and with which columns
 * (unplanned.c).  The table is locked for a moment, without waiting.
 *
 * src/toast/copyto.c
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/namespace.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "storage/lmgr.h"
#include "utils/acl.h"

#include "base/guc.h"
#include "base/utility.h"
#include "toast/copyto.h"
#include "toast/tablescan.h"
#include "toast/unplanned.h"

/* Of the table whose scan is expected. */
static LaToastColumns columns;

static void
follow_copy(TableScanDesc scan)
{
	la_tablescan_follow(scan, NULL, &columns, NULL, CurrentMemoryContext);
}

/* The table is locked and open. */
static bool
expect(Relation rel, List *names)
{
	return !rel->rd_rel->relrowsecurity && la_toastcolumns_of_copy(&columns, rel, names) &&
		la_unplanned_expect(rel, follow_copy);
}

static bool
before_copy(const Node *statement)
{
	const CopyStmt *copy = (const CopyStmt *) statement;
	Oid			table;
	Relation	rel;
	bool		is_expected = false;

	la_unplanned_cancel();
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
		is_expected = expect(rel, copy->attlist);
		relation_close(rel, NoLock);
	}
	UnlockRelationOid(table, AccessShareLock);
	return is_expected;
}

void
la_copyto_init(void)
{
	la_utility_register(before_copy, la_unplanned_cancel);
}
