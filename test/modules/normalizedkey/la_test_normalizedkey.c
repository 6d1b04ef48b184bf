/*
 * la_test_normalizedkey.c
 *	  Keys of src/indexbuild/normalizedkey.c against the operator classes' comparison functions.
 *
 * The module contains normalizedkey.c and encode.c themselves (see Makefile), so nothing of
 * them has to be exported for tests.
 *
 *	la_test_normalizedkey(index, most)
 *		Reads all rows of the index's table (whatever the index's predicate), as they are
 *		stored, and encodes them.  Then compares each row with each other one, if there
 *		are not more than `most`, otherwise each with its neighbours in the order of the
 *		keys and with `most` that are drawn; by memcmp of the keys and by the comparison
 *		function.  Checks what normalizedkey.c guarantees, and that what is written and
 *		returned does not depend on the room.
 *		Returns how many rows and pairs there were, how many of the pairs were equal,
 *		how many rows had nulls, how many violations of any kind there were, and what the
 *		first one was.
 *
 *	la_test_normalizedkey_why(index)
 *		Why there is no sort key; null if there is one.
 *
 *	la_test_normalizedkey_time(index, rounds)
 *		Nanoseconds per key, of all rows of the table, read before.
 *
 * test/modules/normalizedkey/la_test_normalizedkey.c
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/nbtree.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "common/pg_prng.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "indexbuild/indexbuild_int.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(la_test_normalizedkey);
PG_FUNCTION_INFO_V1(la_test_normalizedkey_why);
PG_FUNCTION_INFO_V1(la_test_normalizedkey_time);

/* more than any store goes beyond its end, if it does */
#define GUARD 64
#define GUARD_BYTE 0xA5

typedef struct Row
{
	Datum	   *values;
	bool	   *isnull;
	uint8	   *key;
	int			length;
} Row;

typedef struct Rows
{
	Relation	index;
	LaNormalizedKey  *encoder;
	Row		   *rows;
	int64		count;
	int64		with_null;
	int64		pairs;
	int64		equal;
	int64		violations;
	char	   *first;
} Rows;

static void
violation(Rows *r, const char *what, const Row *a, const Row *b)
{
	if (r->violations++ > 0)
		return;
	r->first = psprintf("%s: row %d", what, (int) (a - r->rows));
	if (b != NULL)
		r->first = psprintf("%s and row %d, keys", r->first, (int) (b - r->rows));
	for (int k = 0; k < (b == NULL ? 1 : 2); k++)
	{
		const Row  *row = k == 0 ? a : b;

		r->first = psprintf("%s ", r->first);
		for (int i = 0; i < Min(row->length, 40); i++)
			r->first = psprintf("%s%02x", r->first, row->key[i]);
	}
}

/* All rows of the table, with the values of the index's columns as they are stored. */
static Rows *
read_rows(Oid indexoid, Relation *heap, Relation *index)
{
	Rows	   *r = palloc0(sizeof(Rows));
	EState	   *estate = CreateExecutorState();
	IndexInfo  *info;
	TupleTableSlot *slot;
	TableScanDesc scan;
	int64		room = 1024;
	int			natts;
	const char *why;
	const LaDictionaryLimits limits = {64 * 1024 * 1024, 1e6};

	*heap = table_open(IndexGetRelation(indexoid, false), AccessShareLock);
	*index = index_open(indexoid, AccessShareLock);
	r->index = *index;
	r->rows = palloc(room * sizeof(Row));
	r->encoder = la_normkey_create(*index, NULL, &why);
	/* what has no code of its own */
	if (r->encoder == NULL)
		r->encoder = la_normkey_create(*index, &limits, &why);
	if (r->encoder == NULL)
		elog(ERROR, "neither coded nor ranked: %s", why);
	info = BuildIndexInfo(*index);
	natts = info->ii_NumIndexAttrs;
	slot = table_slot_create(*heap, NULL);
	GetPerTupleExprContext(estate)->ecxt_scantuple = slot;
#if PG_VERSION_NUM >= 190000
	scan = table_beginscan(*heap, GetActiveSnapshot(), 0, NULL, SO_NONE);
#else
	scan = table_beginscan(*heap, GetActiveSnapshot(), 0, NULL);
#endif
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		Datum		values[INDEX_MAX_KEYS];
		bool		isnull[INDEX_MAX_KEYS];
		Row		   *row;

		CHECK_FOR_INTERRUPTS();
		ResetPerTupleExprContext(estate);
		FormIndexDatum(info, slot, estate, values, isnull);
		if (r->count == room)
			r->rows = repalloc_huge(r->rows, (room *= 2) * sizeof(Row));
		row = &r->rows[r->count++];
		row->values = palloc(natts * sizeof(Datum));
		row->isnull = palloc(natts * sizeof(bool));
		row->key = NULL;
		row->length = 0;
		for (int i = 0; i < natts; i++)
		{
			/* an index's own type may differ from that of what is put into it: name */
			int			column = info->ii_IndexAttrNumbers[i];
			Form_pg_attribute att = column != 0 ?
				TupleDescAttr(RelationGetDescr(*heap), column - 1) :
				TupleDescAttr(RelationGetDescr(*index), i);

			row->isnull[i] = isnull[i];
			if (!isnull[i])
				row->values[i] = datumCopy(values[i], att->attbyval, att->attlen);
		}
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	FreeExecutorState(estate);
	return r;
}

static void
close_rows(Relation heap, Relation index)
{
	index_close(index, AccessShareLock);
	table_close(heap, AccessShareLock);
}

/* Encodes with that room, and checks what is written. */
static void
check_room(Rows *r, const Row *row, int room, bool null_expected)
{
	bool		has_null = !null_expected;
	uint8	   *to = palloc(room + GUARD);
	int			length;

	memset(to, GUARD_BYTE, room + GUARD);
	length = la_normkey_encode(r->encoder, row->values, row->isnull, to, room, &has_null);
	if (length != row->length)
		violation(r, psprintf("length %d with a room of %d, otherwise %d", length, room, row->length), row, NULL);
	else if (length <= room && memcmp(to, row->key, length) != 0)
		violation(r, psprintf("other bytes with a room of %d", room), row, NULL);
	if (has_null != null_expected)
		violation(r, "has_null", row, NULL);
	for (int i = 0; i < GUARD; i++)
	{
		if (to[room + i] != GUARD_BYTE)
		{
			violation(r, psprintf("written beyond a room of %d", room), row, NULL);
			break;
		}
	}
	pfree(to);
}

static void
encode_row(Rows *r, Row *row)
{
	int			nkeys = IndexRelationGetNumberOfKeyAttributes(r->index);
	uint8	   *buffer = palloc(8192);
	bool		has_null,
				null_expected = false;
	int			length;

	for (int i = 0; i < nkeys; i++)
		null_expected |= row->isnull[i];
	r->with_null += null_expected;
	length = la_normkey_encode(r->encoder, row->values, row->isnull, buffer, 8192, &has_null);
	if (length > 8192)
	{
		pfree(buffer);
		buffer = palloc(length);
		la_normkey_encode(r->encoder, row->values, row->isnull, buffer, length, &has_null);
	}
	row->key = buffer;
	row->length = length;

	/* exactly enough, hardly, more than enough, too little */
	for (int more = -9; more <= 17; more++)
	{
		if (length + more >= 0)
			check_room(r, row, length + more, null_expected);
	}
	check_room(r, row, 0, null_expected);
	check_room(r, row, length / 2, null_expected);
	check_room(r, row, 2 * length + 100, null_expected);
}

/* As nbtree compares tuples. */
static int
compare_rows(Rows *r, const Row *a, const Row *b)
{
	int			nkeys = IndexRelationGetNumberOfKeyAttributes(r->index);

	for (int i = 0; i < nkeys; i++)
	{
		int			option = r->index->rd_indoption[i];
		int			result;

		if (a->isnull[i] || b->isnull[i])
		{
			if (a->isnull[i] && b->isnull[i])
				continue;
			return a->isnull[i] == ((option & INDOPTION_NULLS_FIRST) != 0) ? -1 : 1;
		}
		result = DatumGetInt32(FunctionCall2Coll(index_getprocinfo(r->index, i + 1, BTORDER_PROC),
												 r->index->rd_indcollation[i],
												 a->values[i], b->values[i]));
		if (result != 0)
			return (result < 0) == ((option & INDOPTION_DESC) == 0) ? -1 : 1;
	}
	return 0;
}

static void
check_pair(Rows *r, const Row *a, const Row *b)
{
	int			expected = compare_rows(r, a, b);
	int			result = memcmp(a->key, b->key, Min(a->length, b->length));

	r->pairs++;
	r->equal += expected == 0;
	if (result == 0 && a->length != b->length)
		violation(r, "a prefix", a, b);
	else if (result == 0 ? expected != 0 : expected == 0 || (result < 0) != (expected < 0))
		violation(r, psprintf("%d instead of %d", result < 0 ? -1 : result > 0, expected), a, b);
}

static int
compare_keys(const void *a, const void *b)
{
	const Row  *x = a,
			   *y = b;

	return memcmp(x->key, y->key, Min(x->length, y->length));
}

Datum
la_test_normalizedkey(PG_FUNCTION_ARGS)
{
	int			most = PG_GETARG_INT32(1);
	MemoryContext work = AllocSetContextCreate(CurrentMemoryContext, "la_test_normalizedkey", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = CurrentMemoryContext;
	pg_prng_state prng;
	Relation	heap,
				index;
	Rows	   *r = read_rows(PG_GETARG_OID(0), &heap, &index);
	Datum		values[6];
	bool		nulls[6] = {false};
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	for (int64 i = 0; i < r->count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		encode_row(r, &r->rows[i]);
	}
	if (r->count > most)
		qsort(r->rows, r->count, sizeof(Row), compare_keys);
	pg_prng_seed(&prng, 7);
	for (int64 i = 0; i < r->count; i++)
	{
		int64		n = r->count <= most ? i + 1 : Min(most, i) + 1;

		CHECK_FOR_INTERRUPTS();
		/* comparison functions may leave detoasted values behind */
		MemoryContextSwitchTo(work);
		for (int64 k = 0; k < n; k++)
		{
			int64		other = r->count <= most ? k :
				k == 0 ? Max(i - 1, 0) :
				(int64) pg_prng_uint64_range(&prng, 0, r->count - 1);

			/* both ways, also with itself */
			check_pair(r, &r->rows[i], &r->rows[other]);
			check_pair(r, &r->rows[other], &r->rows[i]);
		}
		MemoryContextSwitchTo(old);
		if (r->violations == 0)
			MemoryContextReset(work);
	}
	values[0] = Int64GetDatum(r->count);
	values[1] = Int64GetDatum(r->with_null);
	values[2] = Int64GetDatum(r->pairs);
	values[3] = Int64GetDatum(r->equal);
	values[4] = Int64GetDatum(r->violations);
	nulls[5] = r->first == NULL;
	if (r->first != NULL)
		values[5] = CStringGetTextDatum(r->first);
	close_rows(heap, index);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

Datum
la_test_normalizedkey_why(PG_FUNCTION_ARGS)
{
	Relation	index = index_open(PG_GETARG_OID(0), AccessShareLock);
	const char *why = NULL;
	LaNormalizedKey  *key = la_normkey_create(index, NULL, &why);

	index_close(index, AccessShareLock);
	if (key != NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(why));
}

Datum
la_test_normalizedkey_time(PG_FUNCTION_ARGS)
{
	int			rounds = PG_GETARG_INT32(1);
	Relation	heap,
				index;
	Rows	   *r = read_rows(PG_GETARG_OID(0), &heap, &index);
	uint8	   *to = palloc(64 * 1024);
	int64		bytes = 0;
	double		best = 0;

	for (int round = 0; round < rounds; round++)
	{
		instr_time	start,
					time;
		double		ns;

		CHECK_FOR_INTERRUPTS();
		INSTR_TIME_SET_CURRENT(start);
		for (int64 i = 0; i < r->count; i++)
		{
			bool		has_null;

			bytes += la_normkey_encode(r->encoder, r->rows[i].values, r->rows[i].isnull, to, 64 * 1024, &has_null);
		}
		INSTR_TIME_SET_CURRENT(time);
		INSTR_TIME_SUBTRACT(time, start);
		ns = INSTR_TIME_GET_DOUBLE(time) * 1e9 / Max(r->count, 1);
		if (round == 0 || ns < best)
			best = ns;
	}
	close_rows(heap, index);
	PG_RETURN_FLOAT8(bytes > 0 ? best : 0);
}
