/*
 * passedrows.c
 *	  Values out of line of rows that are no table's: those that a sort or a join passes on.
 *
 * Such a node moves pointers, not values.  Those are fetched when its rows are used: sent, stored,
 * or read by a function.  It tells which rows come next, and what pointers they have
 * (LaComingValues); the rest is as for a scan (valueahead.c).
 *
 * Which table's values they are is known from the pointers: the first one that leads to the toast
 * table of a table that the statement has open.  Values of other tables are not read ahead.
 *
 * src/toast/passedrows.c
 */
#include "postgres.h"

#include "access/detoast.h"

#include "attach/attach.h"
#include "toast/toast_int.h"

typedef struct PassedRows
{
	LaComingValues of;
	const EState *estate;
	Relation	table;			/* NULL until a value leads to it */
	LaRowValues *found;			/* to which values are added */
} PassedRows;

/* The table that this is the toast table of, if the statement has it open, and it is possible. */
static Relation
table_of(const EState *estate, Oid toast_table)
{
	for (Index i = 0; i < estate->es_range_table_size; i++)
	{
		Relation	rel = estate->es_relations[i];

		if (rel != NULL && rel->rd_rel->reltoastrelid == toast_table)
			return la_valueahead_is_possible(rel) ? rel : NULL;
	}
	return NULL;
}

/* la_value_function: does it lead to a table? */
static bool
find_table(void *arg, Datum value)
{
	PassedRows *p = arg;
	struct varatt_external pointer;

	if (la_values_pointer(value, &pointer))
		p->table = table_of(p->estate, pointer.va_toastrelid);
	return p->table == NULL;
}

/* la_value_function */
static bool
add_value(void *arg, Datum value)
{
	PassedRows *p = arg;

	if (p->found->n < LA_TOAST_COLUMNS)
		la_values_add(p->found, value, p->table->rd_rel->reltoastrelid);
	return p->found->n < LA_TOAST_COLUMNS;
}

/* LaComing.peek */
static bool
peek(void *arg, int n, LaComingRow *row)
{
	PassedRows *p = arg;

	if (!p->of.is_known(p->of.arg, n, &row->id))
		return false;
	ItemPointerSetInvalid(&row->tid);
	row->buffer = InvalidBuffer;
	row->may_read = false;
	return true;
}

/* LaValueScan.find */
static void
find_values(void *arg, int n, LaRowValues *values)
{
	PassedRows *p = arg;

	values->n = 0;
	values->chunks = 0;
	p->found = values;
	p->of.values(p->of.arg, n, add_value, p);
}

/* la_follow_values_function */
LaFollower *
la_passedrows_follow(PlanState *node, const LaComingValues *of)
{
	PassedRows	first = {.of = *of,.estate = node->state};
	MemoryContext context = node->state->es_query_cxt;
	PassedRows *p;
	LaValueScan scan = {
		.node = node,
		.rows.snapshot = node->state->es_snapshot,
		.rows.columns.n = 1,	/* that there are some is all that is asked */
		.find = find_values,
		.context = context
	};

	of->values(of->arg, 0, find_table, &first);
	if (first.table == NULL)
		return NULL;
	p = MemoryContextAlloc(context, sizeof(PassedRows));
	*p = first;
	scan.rows.table = p->table;
	scan.coming.arg = p;
	scan.coming.peek = peek;
	return la_valueahead_create(&scan);
}
