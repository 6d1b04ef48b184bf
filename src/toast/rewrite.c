/*
 * rewrite.c
 *	  Statements that rewrite a table: VACUUM FULL, REPACK and ALTER TABLE.
 *
 * They create a table that names the old one in relrewrite, scan the old one, and store its rows in
 * the new one.  For that they fetch each value that is stored out of line.
 *
 *		old table locked --> new one created --> old one scanned --> files exchanged
 *							 |					 |
 *							 object access hook	 scan_begin (unplanned.c)
 *
 * Columns
 *	All that are not dropped are fetched.  While ALTER TABLE scans, the table's descriptor is
 *	already that of the new rows.  How the old ones are laid out is noted when the type of a column
 *	changes: the server says so before anybody, and itself, sees the new catalog row.  What else it
 *	may alter in a column leaves the rows as they are, and columns that are added are not in them.
 *
 * Which rows
 *	ALTER TABLE scans by a snapshot.  VACUUM FULL and REPACK read all versions of rows, and copy
 *	those that somebody may still see.  Of them those are looked at for values that the statement's
 *	own snapshot sees: with the table locked, and that snapshot in use, they cannot be dead, so they
 *	will be copied, and their values are still there.  REPACK (CONCURRENTLY) lets others change the
 *	table, but scans by a snapshot, as a query would; the table is only kept from being vacuumed and
 *	altered.
 *
 * CLUSTER and REPACK USING INDEX come here as well, but are left alone.  They scan by an index,
 * without a plan node; or sort the rows first, so that no value is fetched during the scan, and
 * nothing tells which row comes next out of the sort.
 *
 * src/toast/rewrite.c
 */
#include "postgres.h"

#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"
#include "utils/relcache.h"

#include "base/base.h"
#include "base/compat.h"
#include "toast/toast_int.h"

#define MOST_ALTERED	64

/* A column as it is laid out in the rows of a table. */
typedef struct AlteredColumn
{
	Oid			table;
	AttrNumber	number;
	int16		length;
	bool		by_value;
	char		align;
} AlteredColumn;

/* Those that this transaction has altered, and whose tables it has not rewritten since. */
static struct
{
	int			n;
	bool		unknown;		/* not all of them are known */
	AlteredColumn columns[MOST_ALTERED];
}			altered;

/* The rows of the table that is expected to be rewritten. */
static TupleDesc old_rows;

static object_access_hook_type prev_object_access_hook = NULL;

/* ---- columns that have been altered --------------------------------------------- */

static bool
is_noted(Oid table, AttrNumber number)
{
	for (int i = 0; i < altered.n; i++)
	{
		if (altered.columns[i].table == table && altered.columns[i].number == number)
			return true;
	}
	return false;
}

/* A column is altered.  Its table, which is locked, is known as it was before. */
static void
note_column(Oid table, AttrNumber number)
{
	Relation	rel;

	if (altered.unknown || is_noted(table, number))
		return;
	if (altered.n == MOST_ALTERED)
	{
		altered.unknown = true;
		return;
	}
	rel = RelationIdGetRelation(table);
	if (rel == NULL)
		return;
	if (rel->rd_rel->relkind == RELKIND_RELATION && number <= RelationGetNumberOfAttributes(rel))
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), number - 1);
		AlteredColumn *c = &altered.columns[altered.n++];

		c->table = table;
		c->number = number;
		c->length = att->attlen;
		c->by_value = att->attbyval;
		c->align = att->attalign;
	}
	RelationClose(rel);
}

/* The table's rows will be laid out as its descriptor says. */
static void
forget_columns(Oid table)
{
	int			left = 0;

	for (int i = 0; i < altered.n; i++)
	{
		if (altered.columns[i].table != table)
			altered.columns[left++] = altered.columns[i];
	}
	altered.n = left;
}

/* A descriptor of the table's rows as they are laid out now, as long as the transaction. */
static TupleDesc
old_descriptor(Relation rel)
{
	MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);
	TupleDesc	desc = CreateTupleDescCopy(RelationGetDescr(rel));

	MemoryContextSwitchTo(old);
	for (int i = 0; i < altered.n; i++)
	{
		const AlteredColumn *c = &altered.columns[i];
		Form_pg_attribute att;

		if (c->table != RelationGetRelid(rel) || c->number > desc->natts)
			continue;
		att = TupleDescAttr(desc, c->number - 1);
		att->attlen = c->length;
		att->attbyval = c->by_value;
		att->attalign = c->align;
		/* of which only the layout matters */
		if (c->length == -1 && att->attstorage == TYPSTORAGE_PLAIN)
			att->attstorage = TYPSTORAGE_EXTENDED;
	}
	la_tupdesc_changed(desc);
	return desc;
}

/* ---- the scan ------------------------------------------------------------------ */

/* la_unplanned_follow */
static void
follow_rewrite(TableScanDesc scan)
{
	LaToastColumns columns;

	if (la_toastcolumns_of_rows(&columns, old_rows))
		la_tablescan_follow(scan, NULL, &columns, old_rows, CurrentMemoryContext);
}

/* This table, which is locked, will be scanned and rewritten. */
static void
expect_rewrite(Oid table)
{
	Relation	rel = RelationIdGetRelation(table);

	if (rel == NULL)
		return;
	if (!altered.unknown && CheckRelationLockedByMe(rel, ShareUpdateExclusiveLock, true) &&
		la_unplanned_expect(rel, follow_rewrite))
		old_rows = old_descriptor(rel);
	RelationClose(rel);
}

/* A table has been created, and is open: is it made of another one? */
static void
table_created(Oid created)
{
	Relation	rel = RelationIdGetRelation(created);
	Oid			old = InvalidOid;

	if (rel == NULL)
		return;
	if (rel->rd_rel->relkind == RELKIND_RELATION)
		old = rel->rd_rel->relrewrite;
	RelationClose(rel);
	if (!OidIsValid(old))
		return;
	if (la_enable && la_enable_toast)
		expect_rewrite(old);
	forget_columns(old);
}

static void
object_accessed(ObjectAccessType access, Oid class, Oid object, int subid, void *arg)
{
	/* another hook may make the new catalog row visible */
	if (class == RelationRelationId && access == OAT_POST_ALTER && subid > 0)
		note_column(object, subid);
	if (prev_object_access_hook)
		prev_object_access_hook(access, class, object, subid, arg);
	if (class == RelationRelationId && access == OAT_POST_CREATE && subid == 0)
		table_created(object);
}

/*
 * la_transaction_function.  What a subtransaction that fails has rewritten is as it was before, and
 * so are columns.
 */
static void
transaction_ends(XactEvent event, SubTransactionId failed)
{
	altered.unknown = failed != InvalidSubTransactionId;
	if (!altered.unknown)
		altered.n = 0;
}

void
la_rewrite_init(void)
{
	prev_object_access_hook = object_access_hook;
	object_access_hook = object_accessed;
	la_transaction_register(transaction_ends);
}
