/*
 * copyto.c
 *	  COPY TO of a table.
 *
 * When the server has opened the table, which it is going to scan, that scan is expected, with the
 * columns of the statement (unplanned.c).
 *
 * src/toast/copyto.c
 */
#include "postgres.h"

#include "nodes/parsenodes.h"

#include "base/base.h"
#include "toast/toast_int.h"

/* Of the table whose scan is expected. */
static LaToastColumns columns;

static void
follow_copy(TableScanDesc scan)
{
	la_tablescan_follow(scan, NULL, &columns, NULL, CurrentMemoryContext);
}

/* What the statement before has expected, and not scanned. */
static bool
cancel(const Node *statement)
{
	la_unplanned_cancel();
	return false;
}

/* la_utility_copy */
static bool
expect(const CopyStmt *copy, Relation table)
{
	return la_enable && la_enable_toast && !copy->is_from && !table->rd_rel->relrowsecurity &&
		la_toastcolumns_of_copy(&columns, table, copy->attlist) &&
		la_unplanned_expect(table, follow_copy);
}

void
la_copyto_init(void)
{
	la_utility_register(cancel, NULL);
	la_utility_register_copy(expect, la_unplanned_cancel);
}
