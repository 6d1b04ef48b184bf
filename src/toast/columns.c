/*
 * columns.c
 *	  The columns of a table whose values may be fetched from out of line.
 *
 * Whether they are fetched is seen from the toast index, as rows are returned (valueahead.c).  Here
 * those are left out of which it is certain that they are not: columns that neither the scan's
 * target list nor its filter has, nor the query.  (A scan below a join or an aggregate may have all
 * columns in its target list, as that is cheaper than to leave some out.)
 *
 * src/toast/columns.c
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "catalog/pg_type_d.h"
#include "executor/executor.h"
#include "nodes/bitmapset.h"
#include "nodes/value.h"
#include "optimizer/optimizer.h"

#include "base/compat.h"
#include "toast/toast_int.h"

static inline bool
has(const Bitmapset *attributes, int number)
{
	return bms_is_member(number - FirstLowInvalidHeapAttributeNumber, attributes);
}

static void
add(LaToastColumns *c, const FormData_pg_attribute *att)
{
	if (c->n < LA_TOAST_COLUMNS && att->attlen == -1 && !att->attisdropped &&
		att->attstorage != TYPSTORAGE_PLAIN)
		c->numbers[c->n++] = att->attnum;
}

/* Those of a plan node's scan.  Returns false if there are none. */
bool
la_toastcolumns_of_scan(LaToastColumns *c, ScanState *scan)
{
	const Scan *plan = (const Scan *) scan->ps.plan;
	TupleDesc	desc = RelationGetDescr(scan->ss_currentRelation);
	Bitmapset  *used = NULL;
	const Bitmapset *of_query;
	bool		is_known = la_selected_columns(scan->ps.state, plan->scanrelid, &of_query);

	pull_varattnos((Node *) plan->plan.targetlist, plan->scanrelid, &used);
	pull_varattnos((Node *) plan->plan.qual, plan->scanrelid, &used);
	c->n = 0;
	for (int i = 1; i <= desc->natts; i++)
	{
		if ((has(used, i) || has(used, InvalidAttrNumber)) &&
			(!is_known || has(of_query, i) || has(of_query, InvalidAttrNumber)))
			add(c, TupleDescAttr(desc, i - 1));
	}
	bms_free(used);
	return c->n > 0;
}

/* Does a plan node's filter read any? */
bool
la_toastcolumns_of_filter(ScanState *scan)
{
	const Scan *plan = (const Scan *) scan->ps.plan;
	TupleDesc	desc = RelationGetDescr(scan->ss_currentRelation);
	Bitmapset  *used = NULL;
	LaToastColumns c = {0};

	pull_varattnos((Node *) plan->plan.qual, plan->scanrelid, &used);
	for (int i = 1; i <= desc->natts; i++)
	{
		if (has(used, i) || has(used, InvalidAttrNumber))
			add(&c, TupleDescAttr(desc, i - 1));
	}
	bms_free(used);
	return c.n > 0;
}

/* Those of COPY TO; names: NIL for all. */
bool
la_toastcolumns_of_copy(LaToastColumns *c, Relation table, List *names)
{
	TupleDesc	desc = RelationGetDescr(table);

	c->n = 0;
	for (int i = 0; i < desc->natts; i++)
	{
		const FormData_pg_attribute *att = TupleDescAttr(desc, i);
		bool		is_named = names == NIL;
		ListCell   *lc;

		foreach(lc, names)
			is_named |= strcmp(strVal(lfirst(lc)), NameStr(att->attname)) == 0;
		if (is_named && att->attgenerated == '\0')
			add(c, att);
	}
	return c->n > 0;
}

/* All of them. */
bool
la_toastcolumns_of_rows(LaToastColumns *c, TupleDesc desc)
{
	c->n = 0;
	for (int i = 0; i < desc->natts; i++)
		add(c, TupleDescAttr(desc, i));
	return c->n > 0;
}
