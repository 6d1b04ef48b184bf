/*
 * sort.c
 *	  Sorting the rows of an index that is being built.
 *
 * The server sorts index tuples by comparison functions.  Its abbreviated keys cover the first
 * column only: if that is equal, the comparison deforms both tuples.  Here each row has a
 * normalized key (normalizedkey.c), and the sort looks at each of its bytes about once.
 *
 *		la_sort_put() --> memory (sortmemory.c) --- full --> runs in files (runset.c)
 *							 |								|
 *							 '------------------+-----------'
 *												v
 *						 la_sort_next() <-- merge (merge.c)
 *
 * Behaviours
 *	SPILL		When memory is used up, its rows are sorted and written as a run, and others
 *				take their place.  The last rows are merged from memory and not written.
 *	SHARE		Of several processes, the workers export all their rows as runs, and the leader
 *				imports them.
 *	IN PLACE	An index tuple is formed where the row is stored, by the functions that
 *				index_form_tuple() calls.  Only a tuple with a value that has to be compressed
 *				or fetched is formed elsewhere, and copied.
 *	LONG KEYS	The server compresses long values before it sorts them, and mostly compares
 *				their first bytes only.  If normalized keys are several times as long as the
 *				tuples, or a row takes much of the memory, the sort ends, unless the caller
 *				needs it: 10,000 texts of 100 kB that differ in their first bytes took six
 *				times as long as in the server (64 MB).
 *
 * Invariants
 *	- Rows are returned in the order of their keys, each as it was put.
 *	- Memory is that of sortmemory.c, of runset.c while runs are merged, and a page for each
 *	  open file.
 *
 * src/indexbuild/sort.c
 */
#include "postgres.h"

#include <limits.h>

#include "access/heaptoast.h"
#include "access/htup_details.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "indexbuild/indexbuild_int.h"

/* A key is long if it is so many times the tuple. */
#define LONG_KEY	4

/* Keys must come to so many bytes before they are found to be long. */
#define LONG_KEYS_SAMPLE	((Size) 256 * 1024)

struct LaSort
{
	MemoryContext context;
	MemoryContext scratch;		/* reset with each row */
	LaSortMemory *memory;
	LaRunSet   *runs;
	bool		spilled;
	LaSortOutcome outcome;

	/* how rows are made */
	LaNormalizedKey *key;
	TupleDesc	desc;
	int			nvarlena;		/* columns that may be compressed */
	int			varlena[INDEX_MAX_KEYS];

	/* behaviour LONG KEYS; the last three are of all rows, if nvarlena > 0 */
	bool		may_restart;
	Size		long_row;		/* the size of one */
	Size		longest;
	Size		key_bytes;
	Size		tuple_bytes;

	LaMerge    *merge;			/* NULL before la_sort_perform() */
};

/* An index tuple that is to be stored. */
typedef struct TupleForm
{
	IndexTuple	formed;			/* to be copied; NULL: to be formed in place */
	Size		size;
	Size		header;			/* bytes before the values */
	Size		data_size;
	bool		has_null;
} TupleForm;

/*
 * Sort rows of an index in so many bytes of memory.  may_restart: the outcome may be that keys are
 * too long.  files: those of several processes, of which this is number `participant`; or NULL.
 */
LaSort *
la_sort_begin(Relation index, LaNormalizedKey *key, Size memory, bool may_restart,
			  SharedFileSet *files, int participant)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_lookahead sort",
												  ALLOCSET_DEFAULT_SIZES);
	LaSort	   *sort = MemoryContextAllocZero(context, sizeof(LaSort));
	MemoryContext old = MemoryContextSwitchTo(context);

	sort->context = context;
	sort->scratch = AllocSetContextCreate(context, "pg_lookahead row",
										  ALLOCSET_DEFAULT_SIZES);
	sort->desc = RelationGetDescr(index);
	for (int i = 0; i < sort->desc->natts; i++)
	{
		if (TupleDescAttr(sort->desc, i)->attlen == -1)
			sort->varlena[sort->nvarlena++] = i;
	}
	sort->key = key;
	sort->may_restart = may_restart;
	sort->long_row = la_runset_long_row(memory);
	sort->memory = la_sortmemory_create(memory);
	sort->runs = la_runset_create(memory, files, participant);
	MemoryContextSwitchTo(old);
	return sort;
}

/* ---- rows --------------------------------------------------------------- */

/* Behaviour SPILL: write the rows in memory to a file. */
static void
spill(LaSort *sort)
{
	MemoryContext old;

	if (la_sortmemory_is_empty(sort->memory))
		return;
	old = MemoryContextSwitchTo(sort->context);
	sort->spilled = true;
	la_sortmemory_sort(sort->memory);
	la_runset_add(sort->runs, sort->memory, sort->longest);
	la_sortmemory_clear(sort->memory);
	MemoryContextSwitchTo(old);
}

/* Is no value stored out of line, or so long that index_form_tuple() would compress it? */
static inline bool
is_plain(LaSort *sort, Datum *values, bool *isnull)
{
	for (int i = 0; i < sort->nvarlena; i++)
	{
		int			column = sort->varlena[i];
		struct varlena *value;

		if (isnull[column])
			continue;
		value = (struct varlena *) DatumGetPointer(values[column]);
		if (VARATT_IS_EXTERNAL(value) ||
			(!VARATT_IS_EXTENDED(value) && VARSIZE(value) > TOAST_INDEX_TARGET))
			return false;
	}
	return true;
}

static inline void
measure_tuple(LaSort *sort, Datum *values, bool *isnull, TupleForm *form)
{
	memset(form, 0, sizeof(*form));
	for (int i = 0; i < sort->desc->natts; i++)
		form->has_null |= isnull[i];
	if (is_plain(sort, values, isnull))
	{
		form->data_size = heap_compute_data_size(sort->desc, values, isnull);
		form->header = IndexInfoFindDataOffset(form->has_null ? INDEX_NULL_MASK : 0);
		form->size = MAXALIGN(form->header + form->data_size);
		if ((form->size & INDEX_SIZE_MASK) == form->size)
			return;
	}
	/* raises the server's error if the tuple is too large */
	form->formed = index_form_tuple(sort->desc, values, isnull);
	form->size = IndexTupleSize(form->formed);
}

/* Behaviour IN PLACE. */
static inline void
fill_tuple(LaSort *sort, Datum *values, bool *isnull, const TupleForm *form,
		   IndexTuple tuple)
{
	uint16		mask = 0;

	if (form->formed != NULL)
	{
		memcpy(tuple, form->formed, form->size);
		return;
	}
	memset(tuple, 0, form->size);
	heap_fill_tuple(sort->desc, values, isnull, (char *) tuple + form->header,
					form->data_size, &mask,
					form->has_null ? (uint8 *) tuple + sizeof(IndexTupleData) : NULL);
	tuple->t_info = (uint16) form->size;
	if (form->has_null)
		tuple->t_info |= INDEX_NULL_MASK;
	if (mask & HEAP_HASVARWIDTH)
		tuple->t_info |= INDEX_VAR_MASK;
}

/*
 * Store the row's normalized key, with space for the TID and the index tuple after it, and
 * return its length, which may be LA_NORMKEY_NONE.
 */
static inline int
store_key(LaSort *sort, Datum *values, bool *isnull, Size tuple_size,
		  LaSortTuple **row, bool *has_null)
{
	Size		others = sizeof(LaSortTuple) + LA_TID_LENGTH + 8 + tuple_size;

	/* most keys are not longer than their tuple */
	Size		wanted = sizeof(LaSortTuple) + 3 * tuple_size;

	for (;;)
	{
		Size		space;
		int			length;

		while ((*row = la_sortmemory_reserve(sort->memory, wanted, &space)) == NULL)
			spill(sort);
		space = Min(space - others, INT_MAX / 2);
		length = la_normkey_encode(sort->key, values, isnull, la_sorttuple_key(*row),
								   (int) space, has_null);
		if (length == LA_NORMKEY_NONE || (Size) length <= space)
			return length;
		wanted = others + (Size) length;
	}
}

/* Behaviour LONG KEYS. */
static inline bool
keys_are_long(LaSort *sort, Size key, Size tuple)
{
	Size		row = sizeof(LaSortTuple) + key + LA_TID_LENGTH + tuple;

	sort->longest = Max(sort->longest, row);
	sort->key_bytes += key;
	sort->tuple_bytes += tuple;
	if (!sort->may_restart)
		return false;
	return row > sort->long_row ||
		(key > LONG_KEY * tuple && sort->key_bytes > LONG_KEYS_SAMPLE &&
		 sort->key_bytes > LONG_KEY * sort->tuple_bytes);
}

static inline uint8 *
put_tid(uint8 *p, ItemPointer tid)
{
	uint32		block = pg_hton32(ItemPointerGetBlockNumber(tid));
	uint16		offset = pg_hton16(ItemPointerGetOffsetNumber(tid));

	memcpy(p, &block, 4);
	memcpy(p + 4, &offset, 2);
	return p + LA_TID_LENGTH;
}

/*
 * Put a row of the index: that of a heap tuple, live or not, at tid.  Nothing is done if the
 * outcome is already another one than LA_SORT_COMPLETE.
 */
void
la_sort_put(LaSort *sort, ItemPointer tid, Datum *values, bool *isnull, bool alive)
{
	MemoryContext old;
	TupleForm	form;
	LaSortTuple *row;
	int			length;
	bool		has_null;

	if (sort->outcome != LA_SORT_COMPLETE)
		return;
	old = MemoryContextSwitchTo(sort->scratch);
	measure_tuple(sort, values, isnull, &form);
	length = store_key(sort, values, isnull, form.size, &row, &has_null);
	if (length == LA_NORMKEY_NONE)
		sort->outcome = LA_SORT_NO_KEY;
	else if (sort->nvarlena > 0 && keys_are_long(sort, length, form.size))
		sort->outcome = LA_SORT_LONG_KEYS;
	else
	{
		uint8	   *p = put_tid(la_sorttuple_key(row) + length, tid);

		row->key_length = length + LA_TID_LENGTH;
		while ((p - la_sorttuple_key(row)) % 8 != 0)
			*p++ = 0;
		row->flags = (alive ? 0 : LA_SORTTUPLE_DEAD) |
			(has_null ? LA_SORTTUPLE_NULL : 0);
		fill_tuple(sort, values, isnull, &form, (IndexTuple) p);
		((IndexTuple) p)->t_tid = *tid;
		la_sortmemory_add(sort->memory, row, (char *) p + form.size - (char *) row);
		MemoryContextReset(sort->scratch);
	}
	MemoryContextSwitchTo(old);
}

LaSortOutcome
la_sort_outcome(const LaSort *sort)
{
	return sort->outcome;
}

/* ---- several processes -------------------------------------------------- */

/* Behaviour SHARE: leave all rows to another process. */
void
la_sort_export(LaSort *sort)
{
	spill(sort);
	la_runset_export(sort->runs);
}

/* Add the rows that another process has exported. */
void
la_sort_import(LaSort *sort, int participant)
{
	MemoryContext old = MemoryContextSwitchTo(sort->context);

	la_runset_import(sort->runs, participant);
	MemoryContextSwitchTo(old);
}

/* ---- rows in order ------------------------------------------------------ */

/* All rows have been put: sort them. */
void
la_sort_perform(LaSort *sort)
{
	MemoryContext old = MemoryContextSwitchTo(sort->context);

	la_sortmemory_sort(sort->memory);
	la_runset_reduce(sort->runs, sort->longest);
	MemoryContextSwitchTo(old);
	la_sort_rewind(sort);
}

/* Let the first row be the next one. */
void
la_sort_rewind(LaSort *sort)
{
	MemoryContext old = MemoryContextSwitchTo(sort->context);

	if (sort->merge != NULL)
		la_merge_free(sort->merge);
	sort->merge = la_runset_merge(sort->runs, sort->memory);
	MemoryContextSwitchTo(old);
}

/* The next row; false after the last one. */
bool
la_sort_next(LaSort *sort, LaSortedRow *row)
{
	const LaRunTuple *merged = la_merge_next(sort->merge);

	if (merged == NULL)
		return false;
	row->tuple = merged->tuple;
	row->equal = merged->common >= merged->key_length - LA_TID_LENGTH;
	row->dead = (merged->flags & LA_SORTTUPLE_DEAD) != 0;
	row->has_null = (merged->flags & LA_SORTTUPLE_NULL) != 0;
	return true;
}

/* Has this process written rows to files? */
bool
la_sort_has_spilled(const LaSort *sort)
{
	return sort->spilled;
}

void
la_sort_end(LaSort *sort)
{
	if (sort->merge != NULL)
		la_merge_free(sort->merge);
	la_runset_drop(sort->runs);
	MemoryContextDelete(sort->context);
}
