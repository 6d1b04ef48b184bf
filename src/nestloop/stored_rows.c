/*
 * stored_rows.c
 *	  The rows to come of a scan whose rows lie in a tuplestore.
 *
 * A scan of a function has all of the function's rows there when it returns the first one; so have
 * scans of XMLTABLE, JSON_TABLE and transition tables.  A scan of a CTE has the rows that any scan
 * of the same CTE has taken.  They are read by a read pointer of our own, which begins where the
 * scan's is:
 *
 *		tuplestore: [ done | row | row | row | row | row ]   [ row | row ] <-- plan of the CTE
 *		                     ^ scan's            ^ ours       child_rows.c
 *
 * Nothing is executed for that.  Behind the last row that is stored, the plan of a CTE is run ahead
 * where nobody can notice it; a scan is mostly at that point, if it is the only one of its CTE.
 *
 * The rows of several functions (ROWS FROM) are put together from as many tuplestores.  Rows are
 * read BATCH at a time, or until they are BATCH_SIZE.
 *
 * Invariants
 *	- The read pointer that is active is the one that was active before.  A scan of a CTE or of a
 *	  transition table selects its own for each row; all others rely on pointer 0.  A function may
 *	  return a tuplestore that it has made itself: if that has any pointer beside 0, which one is
 *	  active is not known, and nothing is read.
 *	- Rows are copies: the tuplestore may be written to or ended before they are used.
 *	- A tuplestore that is ended is not touched any more: when a scan is rescanned with other
 *	  parameters, ours is forgotten (on_rescan()), before the scan ends it; and where a rescan may
 *	  have been missed, a new pointer is asked for (have_pointer()).
 *	- Our pointer is never number 0, of which others are copies, and requires nothing of the
 *	  tuplestore that the scan's does not.  None of these is trimmed, so it keeps no rows in memory.
 *
 * src/nestloop/stored_rows.c
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "executor/executor.h"
#include "utils/tuplestore.h"

#include "base/compat.h"
#include "nestloop/nestloop_int.h"

#define BATCH			32		/* rows read at a time */
#define BATCH_SIZE		(64 * 1024) /* ... until they are so many bytes */
#define BATCH_OF_SEVERAL	8	/* rows put together at a time */
#define MAX_STORES		16		/* functions of ROWS FROM */
#define MAX_POINTERS	1024	/* of a tuplestore */
#define MAX_FILTERED	512		/* rows that are passed over at a time */

/* What nodeFunctionscan.c, which has the only declaration, keeps for each function. */
typedef struct Function
{
	SetExprState *expression;
	TupleDesc	desc;
	int			ncolumns;
	Tuplestorestate *store;
	int64		nrows;
	TupleTableSlot *slot;
} Function;

typedef struct Store
{
	Tuplestorestate *store;		/* that has our pointer, or NULL */
	int			pointer;		/* ours */
	TupleDesc	desc;
	int			ncolumns;		/* of a row that is put together */
	TupleTableSlot *rows[BATCH];	/* empty ones behind the end, or NULL */
} Store;

typedef struct StoredRows
{
	LaRowsToCome base;
	ScanState  *scan;
	LaRowFilter *filter;
	LaRowsToCome *behind;		/* rows of a CTE that are not stored yet, or
								 * NULL */
	bool		listens;		/* to rescans */
	bool		unusable;		/* see "Invariants" */
	bool		started;
	bool		is_behind;		/* behind the last row stored */
	MemoryContext context;		/* of the rows */
	TupleTableSlot *row;		/* put together, or NULL */
	int64		number;			/* of the row read last: WITH ORDINALITY */
	int			n;				/* rows read */
	int			next;
	int			nstores;
	Store		stores[FLEXIBLE_ARRAY_MEMBER];
} StoredRows;

/* ---- tuplestores --------------------------------------------------------------------- */

static Tuplestorestate *
current_store(const StoredRows *r, int i)
{
	switch (nodeTag(r->scan))
	{
		case T_FunctionScanState:
			return ((Function *) ((FunctionScanState *) r->scan)->funcstates)[i].store;
		case T_TableFuncScanState:
			return ((TableFuncScanState *) r->scan)->tupstore;
		case T_CteScanState:
			return ((CteScanState *) r->scan)->leader->cte_table;
		case T_NamedTuplestoreScanState:
			return ((NamedTuplestoreScanState *) r->scan)->relation;
		default:
			return NULL;
	}
}

/* The scan's read pointer. */
static int
pointer_of(const ScanState *scan)
{
	if (IsA(scan, CteScanState))
		return ((const CteScanState *) scan)->readptr;
	if (IsA(scan, NamedTuplestoreScanState))
		return ((const NamedTuplestoreScanState *) scan)->readptr;
	return 0;
}

/* Parameters of the scan have changed: will this tuplestore be ended? */
static bool
is_ended(const ScanState *scan, int i)
{
	const RangeTblFunction *function;

	if (IsA(scan, TableFuncScanState))
		return true;
	if (!IsA(scan, FunctionScanState))
		return false;
	function = list_nth(((FunctionScan *) scan->ps.plan)->functions, i);
	return bms_overlap(scan->ps.chgParam, function->funcparams);
}

/* The scan is rescanned, or ends. */
static void
on_rescan(Datum arg)
{
	StoredRows *r = (StoredRows *) DatumGetPointer(arg);

	r->listens = r->started = false;
	for (int i = 0; i < r->nstores; i++)
	{
		if (r->scan->ps.chgParam != NULL && is_ended(r->scan, i))
			r->stores[i].store = NULL;
	}
}

/*
 * Have a read pointer in this tuplestore.  Returns false if that is not possible now.
 *
 * rescanned: the scan may have been, and more than once, though we have heard of the first time
 * at most.  Then the tuplestore at this address may be another one.  Which one it is does not
 * matter, if the number of a new pointer can only be ours: the first one beside 0, or the one after
 * ours.
 */
static bool
have_pointer(StoredRows *r, int i, bool rescanned)
{
	Store	   *s = &r->stores[i];
	Tuplestorestate *store = current_store(r, i);
	bool		may_be_another = rescanned &&
		(IsA(r->scan, FunctionScanState) || IsA(r->scan, TableFuncScanState));
	int			after = s->store == store ? s->pointer + 1 : 1;

	if (store == NULL)
		return false;
	if (s->store == store && !may_be_another)
		return true;
	s->store = NULL;
	s->pointer = tuplestore_alloc_read_pointer(store, 0);
	if (s->pointer >= MAX_POINTERS ||
		(IsA(r->scan, FunctionScanState) && s->pointer != 1 && s->pointer != after))
	{
		r->unusable = true;
		return false;
	}
	s->store = store;
	return true;
}

/* ---- batches ---------------------------------------------------------------------------- */

static void
clear(StoredRows *r)
{
	for (int i = 0; i < r->nstores; i++)
	{
		for (int j = 0; j < BATCH && r->stores[i].rows[j] != NULL; j++)
			ExecClearTuple(r->stores[i].rows[j]);
	}
	r->n = r->next = 0;
}

static void
restart(LaRowsToCome *rows)
{
	StoredRows *r = (StoredRows *) rows;
	bool		rescanned = !r->listens;

	clear(r);
	r->started = r->is_behind = false;
	if (r->unusable)
		return;
	if (!r->listens)
	{
		RegisterExprContextCallback(r->scan->ps.ps_ExprContext, on_rescan, PointerGetDatum(r));
		r->listens = true;
	}
	for (int i = 0; i < r->nstores; i++)
	{
		if (!have_pointer(r, i, rescanned))
			return;
		tuplestore_copy_read_pointer(r->stores[i].store, pointer_of(r->scan),
									 r->stores[i].pointer);
	}
	if (IsA(r->scan, FunctionScanState))
		r->number = ((FunctionScanState *) r->scan)->ordinal;
	r->started = true;
}

/* Read the n-th row of a batch from a tuplestore.  Returns false if there is none. */
static bool
read_row(const StoredRows *r, Store *s, int n, Size *size)
{
	bool		found;

	if (s->rows[n] == NULL)
		s->rows[n] = la_alloc_table_slot(&r->scan->ps.state->es_tupleTable, s->desc,
										 &TTSOpsMinimalTuple);
	tuplestore_select_read_pointer(s->store, s->pointer);
	found = tuplestore_gettupleslot(s->store, true, true, s->rows[n]);
	tuplestore_select_read_pointer(s->store, pointer_of(r->scan));
	if (found)
		*size += ((MinimalTupleTableSlot *) s->rows[n])->mintuple->t_len;
	return found;
}

/* Read more rows.  Returns false if there are none now. */
static bool
fill(StoredRows *r)
{
	int			max = r->nstores > 1 ? BATCH_OF_SEVERAL : BATCH;
	Size		size = 0;
	bool		found = true;
	MemoryContext old;

	clear(r);
	for (int i = 0; i < r->nstores; i++)
	{
		if (r->stores[i].store == NULL || r->stores[i].store != current_store(r, i))
			return false;
	}
	old = MemoryContextSwitchTo(r->context);
	while (found && r->n < max && size < BATCH_SIZE)
	{
		found = false;
		for (int i = 0; i < r->nstores; i++)
			found |= read_row(r, &r->stores[i], r->n, &size);
		r->n += found ? 1 : 0;
	}
	MemoryContextSwitchTo(old);
	return r->n > 0;
}

/* The n-th row of the batch, of several functions: those that have no row any more have nulls. */
static TupleTableSlot *
put_together(StoredRows *r, int n)
{
	TupleTableSlot *row = r->row;
	int			column = 0;

	ExecClearTuple(row);
	for (int i = 0; i < r->nstores; i++)
	{
		const Store *s = &r->stores[i];
		TupleTableSlot *part = s->rows[n];

		if (!TupIsNull(part))
			slot_getallattrs(part);
		for (int j = 0; j < s->ncolumns; j++, column++)
		{
			row->tts_isnull[column] = TupIsNull(part) || part->tts_isnull[j];
			row->tts_values[column] = TupIsNull(part) ? (Datum) 0 : part->tts_values[j];
		}
	}
	r->number++;
	if (((FunctionScanState *) r->scan)->ordinality)
	{
		row->tts_isnull[column] = false;
		row->tts_values[column] = Int64GetDatum(r->number);
	}
	return ExecStoreVirtualTuple(row);
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* A filter would read a value that is stored out of line. */
static bool
has_external(TupleTableSlot *row)
{
	slot_getallattrs(row);
	for (int i = 0; i < row->tts_tupleDescriptor->natts; i++)
	{
		if (!row->tts_isnull[i] && TupleDescAttr(row->tts_tupleDescriptor, i)->attlen == -1 &&
			VARATT_IS_EXTERNAL(DatumGetPointer(row->tts_values[i])))
			return true;
	}
	return false;
}

/* The next row, whether it will pass the filter or not. */
static TupleTableSlot *
any_row(StoredRows *r)
{
	if (!r->is_behind)
	{
		if (r->next < r->n || fill(r))
		{
			int			n = r->next++;

			return r->row != NULL ? put_together(r, n) : r->stores[0].rows[n];
		}
		/* a plan that has been executed to its end may begin anew */
		if (r->behind == NULL || ((CteScanState *) r->scan)->leader->eof_cte)
			return NULL;
		r->is_behind = true;
		r->behind->restart(r->behind);
	}
	return r->behind->next(r->behind);
}

static TupleTableSlot *
next(LaRowsToCome *rows)
{
	StoredRows *r = (StoredRows *) rows;

	for (int i = 0; r->started && i < MAX_FILTERED; i++)
	{
		TupleTableSlot *row = any_row(r);

		if (row == NULL || r->filter == NULL || has_external(row) ||
			la_rowfilter_passes(r->filter, row))
			return row;
	}
	return NULL;
}

/* ---- creation -------------------------------------------------------------------------------- */

static StoredRows *
allocate(ScanState *scan, int nstores)
{
	StoredRows *r = palloc0(offsetof(StoredRows, stores) + nstores * sizeof(Store));

	r->base.restart = restart;
	r->base.next = next;
	r->scan = scan;
	r->nstores = nstores;
	for (int i = 0; i < nstores; i++)
		r->stores[i].desc = scan->ss_ScanTupleSlot->tts_tupleDescriptor;
	return r;
}

/* NULL if what nodeFunctionscan.c keeps is not what is expected. */
static StoredRows *
create_for_functions(FunctionScanState *scan)
{
	List	   *functions = ((FunctionScan *) scan->ss.ps.plan)->functions;
	StoredRows *r;

	if (scan->nfuncs > MAX_STORES || scan->nfuncs != list_length(functions))
		return NULL;
	r = allocate(&scan->ss, scan->nfuncs);
	for (int i = 0; i < r->nstores; i++)
	{
		const Function *f = &((Function *) scan->funcstates)[i];

		if (f->ncolumns != ((RangeTblFunction *) list_nth(functions, i))->funccolcount)
			return NULL;
		r->stores[i].desc = f->desc;
		r->stores[i].ncolumns = f->ncolumns;
	}
	if (!scan->simple)
		r->row = la_alloc_table_slot(&scan->ss.ps.state->es_tupleTable,
									 scan->ss.ss_ScanTupleSlot->tts_tupleDescriptor,
									 &TTSOpsVirtual);
	return r;
}

/*
 * In the current memory context, which is the query's.  NULL if nothing can be known.  *refused is
 * the reason why the plan of a CTE must not be run ahead: there may still be rows that other scans
 * have taken.
 */
LaRowsToCome *
la_storedrows_create(ScanState *scan, const LaRunAhead *hints, const LaDemandContext *context,
					 const char **refused)
{
	StoredRows *r = IsA(scan, FunctionScanState) ?
		create_for_functions((FunctionScanState *) scan) : allocate(scan, 1);

	if (r == NULL)
		return NULL;
	if (IsA(scan, CteScanState))
		r->behind = la_childrows_create(&scan->ps, ((CteScanState *) scan)->cteplanstate, context,
										refused);
	r->filter = la_rowfilter_create(scan, hints);
	r->context = AllocSetContextCreate(CurrentMemoryContext, "pg_lookahead stored rows",
									   ALLOCSET_DEFAULT_SIZES);
	return &r->base;
}
