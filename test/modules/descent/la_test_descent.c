/*
 * la_test_descent.c
 *	  Searches of src/btree/descent.c against what the index holds, and against the
 *	  server's own descent in time.
 *
 * The module contains descent.c itself (see Makefile), so nothing of it has to be
 * exported for tests.
 *
 *	la_test_search(index, keys, ncolumns, stride, between)
 *		Reads all leaf tuples of both indexes.  The first columns of each stride-th
 *		tuple of `keys` are a key, and so are mixtures of two such tuples, which
 *		mostly are in no tuple.  For each the position of the first tuple of `index`
 *		that is not smaller is found in that list, by a binary search with the operator
 *		class's function alone, and compared with where the descent leads; and so
 *		are the matching row addresses.  The types of keys may be others than those of
 *		the index, of the same operator family.  If `between` is not empty, that is a
 *		statement that is executed after the leaf page of each key has been found, and
 *		before it is searched.
 *		Returns how many keys were searched, how many wrongly, the first of these, and
 *		how many searches gave up.
 *
 *	la_test_remember(index, stride), la_test_recall(index)
 *		The same in two calls, for what cannot be done in a function.
 *
 *	la_test_time(index, ncolumns, searches, seed)
 *		Nanoseconds per search of random keys, leaf page included, and a sum of where they
 *		led, which must be the same: for the server's _bt_search and a binary search by
 *		_bt_compare, as _bt_first makes it, and for the descent.  Both make the same
 *		searches, in slices of SLICE, and take turns.  A negative seed: keys in the order
 *		of the index.
 *
 * test/modules/descent/la_test_descent.c
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/genam.h"
#include "access/nbtree.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/index.h"
#include "catalog/pg_type.h"
#include "common/pg_prng.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "storage/bufmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "attach/attach.h"
#include "btree/btree.h"
#include "window/window.h"

PG_MODULE_MAGIC;

/* The gate is not here: all that is compared in this test may be. */
const char *
la_gate_refuses_comparison(Oid function, Oid type)
{
	return NULL;
}

bool
la_collation_is_silent(Oid collation)
{
	return true;
}

PG_FUNCTION_INFO_V1(la_test_search);
PG_FUNCTION_INFO_V1(la_test_remember);
PG_FUNCTION_INFO_V1(la_test_recall);
PG_FUNCTION_INFO_V1(la_test_time);

#define MAX_TIDS 4096
#define MAX_REMEMBERED 1000
#define SLICE 100
#define DENSE 3
#define SEARCHERS 2

typedef struct LeafTuple
{
	BlockNumber block;
	IndexTuple	tuple;
	bool		dead;			/* marked so */
} LeafTuple;

typedef struct Leaves
{
	LeafTuple  *tuples;
	int			count;
	BlockNumber *blocks;		/* leaf pages in order */
	int		   *first;			/* number of each one's first tuple */
	int			nblocks;
} Leaves;

/* What descent.c takes from the window: here everything is cached, or nothing. */
static bool all_cached = true;

bool
la_issue_is_cached(Relation rel, BlockNumber block, Buffer *recent)
{
	*recent = InvalidBuffer;
	return all_cached;
}

LaIssueResult
la_issue_block(Relation rel, BlockNumber block, Buffer *recent)
{
	*recent = InvalidBuffer;
	return LA_ISSUE_STARTED;
}

bool
la_issue_exists(Relation rel, BlockNumber block, BlockNumber *known_size)
{
	return block < RelationGetNumberOfBlocks(rel);
}

static Leaves *
read_leaves(Relation index)
{
	Leaves	   *l = palloc0(sizeof(Leaves));
	BlockNumber nblocks = RelationGetNumberOfBlocks(index);
	int			room = 1024;
	Buffer		buffer = _bt_get_endpoint(index, 0, false
#if PG_VERSION_NUM < 170000
										  ,NULL
#endif
		);

	l->tuples = palloc(room * sizeof(LeafTuple));
	l->blocks = palloc(nblocks * sizeof(BlockNumber));
	l->first = palloc(nblocks * sizeof(int));
	while (BufferIsValid(buffer))
	{
		Page		page = BufferGetPage(buffer);
		BTPageOpaque opaque = BTPageGetOpaque(page);

		if (!P_IGNORE(opaque))
		{
			l->blocks[l->nblocks] = BufferGetBlockNumber(buffer);
			l->first[l->nblocks++] = l->count;
			for (OffsetNumber o = P_FIRSTDATAKEY(opaque); o <= PageGetMaxOffsetNumber(page); o++)
			{
				if (l->count == room)
					l->tuples = repalloc_huge(l->tuples, (room *= 2) * sizeof(LeafTuple));
				l->tuples[l->count].block = BufferGetBlockNumber(buffer);
				l->tuples[l->count].dead = ItemIdIsDead(PageGetItemId(page, o));
				l->tuples[l->count++].tuple =
					CopyIndexTuple((IndexTuple) PageGetItem(page, PageGetItemId(page, o)));
			}
		}
		if (P_RIGHTMOST(opaque))
		{
			_bt_relbuf(index, buffer);
			break;
		}
		buffer = _bt_relandgetbuf(index, buffer, opaque->btpo_next, BT_READ);
	}
	return l;
}

/* Comparison functions of the index's columns with keys of these types. */
static FmgrInfo functions[INDEX_MAX_KEYS];

static void
init_functions(Relation index, Relation keys, int ncolumns)
{
	for (int i = 0; i < ncolumns; i++)
	{
		Oid			proc = get_opfamily_proc(index->rd_opfamily[i], keys->rd_opcintype[i],
											 index->rd_opcintype[i], BTORDER_PROC);

		if (!OidIsValid(proc))
			elog(ERROR, "no comparison function for column %d", i + 1);
		fmgr_info(proc, &functions[i]);
	}
}

/* The key against a tuple, by the operator class's function. */
static int
reference_compare(Relation index, const Datum *key, int ncolumns, IndexTuple tuple)
{
	for (int i = 0; i < ncolumns; i++)
	{
		bool		isnull;
		Datum		value = index_getattr(tuple, i + 1, RelationGetDescr(index), &isnull);
		int			option = index->rd_indoption[i];
		int			result;

		if (isnull)
			return (option & INDOPTION_NULLS_FIRST) ? 1 : -1;
		result = DatumGetInt32(FunctionCall2Coll(&functions[i], index->rd_indcollation[i],
												 key[i], value));
		if (result != 0)
			return (option & INDOPTION_DESC) ? (result < 0 ? 1 : -1) : (result < 0 ? -1 : 1);
	}
	return 0;
}

/* The first tuple that is not smaller (or greater, if after) than the key. */
static int
reference_search(Relation index, const Leaves *l, const Datum *key, int ncolumns, bool after)
{
	int			low = 0,
				high = l->count;

	while (low < high)
	{
		int			middle = low + (high - low) / 2;
		int			result = reference_compare(index, key, ncolumns, l->tuples[middle].tuple);

		if (result > 0 || (after && result == 0))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int
number_of(const Leaves *l, BlockNumber block, int position)
{
	for (int i = 0; i < l->nblocks; i++)
	{
		if (l->blocks[i] == block)
			return l->first[i] + position;
	}
	return -1;
}

static bool
key_of(Relation index, IndexTuple tuple, int from, int to, Datum *key)
{
	TupleDesc	desc = RelationGetDescr(index);

	for (int i = from; i < to; i++)
	{
		bool		isnull;

		key[i] = index_getattr(tuple, i + 1, desc, &isnull);
		if (isnull)
			return false;
		/* as an index tuple has it (short, perhaps compressed), or plain */
		if (TupleDescAttr(desc, i)->attlen == -1 && random() % 2)
			key[i] = PointerGetDatum(PG_DETOAST_DATUM_COPY(key[i]));
	}
	return true;
}

static LaDescent *
make_descent(Relation heap, Relation index, Relation keys, int ncolumns)
{
	LaDescent  *d = la_descent_create(index, heap);

	for (int i = 0; i < ncolumns; i++)
	{
		Oid			type = keys->rd_opcintype[i];

		if (!la_descent_add_column(d, type == index->rd_opcintype[i] && random() % 2 ? InvalidOid : type,
								   index->rd_indcollation[i]))
			elog(ERROR, "column %d cannot be searched for", i + 1);
	}
	return d;
}

static void
set_key(LaDescent *d, const Datum *key, int ncolumns)
{
	for (int i = 0; i < ncolumns; i++)
		la_descent_set(d, i, key[i]);
}

/* Where will the key's leaf be? */
static LaDescentResult
find(LaDescent *d, BlockNumber *leaf)
{
	LaDescentResult result;

	all_cached = random() % 4 != 0;
	result = la_descent_find_leaf(d, false, leaf);
	return result == LA_DESCENT_PENDING ? la_descent_find_leaf(d, true, leaf) : result;
}

/*
 * What is wrong with the answer of a search that begins on that leaf?  NULL if it is
 * right.
 */
static char *
check_leaf(LaDescent *d, Relation index, const Leaves *l, const Datum *key, int ncolumns,
		   BlockNumber leaf, bool *gave_up)
{
	static ItemPointerData tids[MAX_TIDS];
	LaMatches	m = {tids, random() % 4 ? MAX_TIDS : 1 + random() % 5, 0, false};
	int			first = reference_search(index, l, key, ncolumns, false);
	int			end = reference_search(index, l, key, ncolumns, true);
	int			found,
				ntids = 0,
				on_page = 0;
	OffsetNumber position;
	Buffer		buffer;
	BlockNumber block;
	bool		skip_dead = random() % 2,
				complete = true;

	buffer = ReadBuffer(index, leaf);
	*gave_up = !la_descent_search_leaf(d, &buffer, &position);
	if (*gave_up)
		return NULL;
	block = BufferGetBlockNumber(buffer);
	found = number_of(l, block, position - P_FIRSTDATAKEY(BTPageGetOpaque(BufferGetPage(buffer))));
	la_descent_matches(d, buffer, position, skip_dead, &m);
	_bt_relbuf(index, buffer);
	if (found != first)
		return psprintf("tuple %d instead of %d", found, first);

	for (int i = first; i < end; i++)
	{
		IndexTuple	tuple = l->tuples[i].tuple;
		int			n = BTreeTupleIsPosting(tuple) ? BTreeTupleGetNPosting(tuple) : 1;

		if (skip_dead && l->tuples[i].dead)
			continue;
		for (int k = 0; k < n; k++, ntids++)
		{
			ItemPointer tid = BTreeTupleIsPosting(tuple) ? BTreeTupleGetPostingN(tuple, k) : &tuple->t_tid;

			if (ntids < m.count && !ItemPointerEquals(tid, &tids[ntids]))
				return psprintf("row address %d of %d differs", ntids, m.count);
			on_page += l->tuples[i].block == block;
		}
	}
	/* a run that reaches the end of its page may go on behind it, for all it knows */
	if (on_page > m.max || ntids > on_page)
		complete = false;
	else if (end > first && end < l->count && l->tuples[end].block != block)
		complete = m.complete;
	if (m.count != Min(on_page, m.max) || m.complete != complete)
		return psprintf("%d row addresses%s instead of %d%s", m.count, m.complete ? ", complete," : "",
						Min(on_page, m.max), complete ? ", complete" : "");
	return NULL;
}

static Datum
answer(FunctionCallInfo fcinfo, int64 searched, int64 wrong, const char *first_wrong, int64 given_up)
{
	Datum		values[4] = {Int64GetDatum(searched), Int64GetDatum(wrong), 0, Int64GetDatum(given_up)};
	bool		nulls[4] = {false, false, first_wrong == NULL, false};
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (first_wrong != NULL)
		values[2] = CStringGetTextDatum(first_wrong);
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls));
}

Datum
la_test_search(PG_FUNCTION_ARGS)
{
	Oid			indexoid = PG_GETARG_OID(0);
	int			ncolumns = PG_GETARG_INT32(2);
	int			stride = PG_GETARG_INT32(3);
	char	   *between = text_to_cstring(PG_GETARG_TEXT_PP(4));
	Relation	heap = table_open(IndexGetRelation(indexoid, false), AccessShareLock);
	Relation	index = index_open(indexoid, AccessShareLock);
	Relation	keys = index_open(PG_GETARG_OID(1), AccessShareLock);
	Leaves	   *l = read_leaves(index);
	Leaves	   *k = read_leaves(keys);
	LaDescent  *d;
	Datum		key[INDEX_MAX_KEYS];
	int64		searched = 0,
				wrong = 0,
				given_up = 0;
	char	   *first_wrong = NULL;

	/* the same choices each time, unless a seed is given (dev/test --deep) */
	srandom(getenv("LA_SEED") != NULL ? atoi(getenv("LA_SEED")) : 1);
	d = make_descent(heap, index, keys, ncolumns);
	init_functions(index, keys, ncolumns);
	if (between[0] != '\0')
		SPI_connect();
	for (int i = 0; i < k->count; i += stride)
	{
		for (int mixed = 0; mixed <= (ncolumns > 1 ? 2 : 0); mixed++)
		{
			int			other = random() % k->count;
			int			split = mixed == 0 ? ncolumns : 1 + random() % Max(ncolumns - 1, 1);
			char	   *problem = NULL;
			bool		gave_up = false;
			BlockNumber leaf;

			CHECK_FOR_INTERRUPTS();
			if (!key_of(keys, k->tuples[i].tuple, 0, split, key) ||
				!key_of(keys, k->tuples[other].tuple, split, ncolumns, key))
				continue;
			searched++;
			set_key(d, key, ncolumns);
			if (find(d, &leaf) != LA_DESCENT_FOUND)
			{
				if (l->count > 0)
					problem = "no leaf page";
			}
			else
			{
				if (between[0] != '\0')
				{
					SPI_execute(between, false, 0);
					l = read_leaves(index);
				}
				problem = check_leaf(d, index, l, key, ncolumns, leaf, &gave_up);
				given_up += gave_up;
			}
			if (problem == NULL)
				continue;
			wrong++;
			if (first_wrong == NULL)
				first_wrong = psprintf("key of tuples %d and %d (%d columns): %s", i, other, split, problem);
		}
	}
	if (between[0] != '\0')
		SPI_finish();
	index_close(keys, AccessShareLock);
	index_close(index, AccessShareLock);
	table_close(heap, AccessShareLock);
	PG_RETURN_DATUM(answer(fcinfo, searched, wrong, first_wrong, given_up));
}

/* Of la_test_remember(). */
static struct
{
	IndexTuple	tuple;
	BlockNumber leaf;
}			remembered[MAX_REMEMBERED];
static int	nremembered = 0;

Datum
la_test_remember(PG_FUNCTION_ARGS)
{
	Oid			indexoid = PG_GETARG_OID(0);
	Relation	heap = table_open(IndexGetRelation(indexoid, false), AccessShareLock);
	Relation	index = index_open(indexoid, AccessShareLock);
	Leaves	   *l = read_leaves(index);
	LaDescent  *d = make_descent(heap, index, index, 1);
	Datum		key[INDEX_MAX_KEYS];

	nremembered = 0;
	for (int i = 0; i < l->count && nremembered < MAX_REMEMBERED; i += PG_GETARG_INT32(1))
	{
		BlockNumber leaf;

		if (!key_of(index, l->tuples[i].tuple, 0, 1, key))
			continue;
		set_key(d, key, 1);
		if (find(d, &leaf) != LA_DESCENT_FOUND)
			continue;
		remembered[nremembered].tuple = MemoryContextAlloc(TopMemoryContext,
														   IndexTupleSize(l->tuples[i].tuple));
		memcpy(remembered[nremembered].tuple, l->tuples[i].tuple, IndexTupleSize(l->tuples[i].tuple));
		remembered[nremembered++].leaf = leaf;
	}
	index_close(index, AccessShareLock);
	table_close(heap, AccessShareLock);
	PG_RETURN_BOOL(nremembered > 0);
}

Datum
la_test_recall(PG_FUNCTION_ARGS)
{
	Oid			indexoid = PG_GETARG_OID(0);
	Relation	heap = table_open(IndexGetRelation(indexoid, false), AccessShareLock);
	Relation	index = index_open(indexoid, AccessShareLock);
	Leaves	   *l = read_leaves(index);
	LaDescent  *d = make_descent(heap, index, index, 1);
	Datum		key[INDEX_MAX_KEYS];
	int64		wrong = 0,
				given_up = 0;
	char	   *first_wrong = NULL;

	init_functions(index, index, 1);
	for (int i = 0; i < nremembered; i++)
	{
		char	   *problem;
		bool		gave_up;

		(void) key_of(index, remembered[i].tuple, 0, 1, key);
		set_key(d, key, 1);
		problem = check_leaf(d, index, l, key, 1, remembered[i].leaf, &gave_up);
		given_up += gave_up;
		if (problem == NULL)
			continue;
		wrong++;
		if (first_wrong == NULL)
			first_wrong = psprintf("key %d: %s", i, problem);
	}
	index_close(index, AccessShareLock);
	table_close(heap, AccessShareLock);
	PG_RETURN_DATUM(answer(fcinfo, nremembered, wrong, first_wrong, given_up));
}

/* The server's own search: the number of the page, and the position on it. */
static uint64
core_search(Relation heap, Relation index, BTScanInsert key)
{
	Buffer		buffer;
	Page		page;
	uint64		place;
	OffsetNumber low,
				high;
#if PG_VERSION_NUM >= 190000
	(void) _bt_search(index, heap, key, &buffer, BT_READ, false);
#elif PG_VERSION_NUM >= 170000
	BTStack		stack = _bt_search(index, heap, key, &buffer, BT_READ);
#elif PG_VERSION_NUM >= 160000
	BTStack		stack = _bt_search(index, heap, key, &buffer, BT_READ, NULL);
#else
	BTStack		stack = _bt_search(index, key, &buffer, BT_READ, NULL);
#endif

#if PG_VERSION_NUM < 190000
	_bt_freestack(stack);
#endif
	page = BufferGetPage(buffer);
	low = P_FIRSTDATAKEY(BTPageGetOpaque(page));
	high = PageGetMaxOffsetNumber(page) + 1;
	while (low < high)
	{
		OffsetNumber middle = low + (high - low) / 2;

		if (_bt_compare(index, key, page, middle) > 0)
			low = middle + 1;
		else
			high = middle;
	}
	place = (uint64) BufferGetBlockNumber(buffer) << 16 | low;
	_bt_relbuf(index, buffer);
	return place;
}

static uint64
own_search(LaDescent *d, Relation index)
{
	BlockNumber leaf;
	OffsetNumber position;
	Buffer		buffer;

	if (la_descent_find_leaf(d, true, &leaf) != LA_DESCENT_FOUND)
		return 0;
	buffer = ReadBuffer(index, leaf);
	if (!la_descent_search_leaf(d, &buffer, &position))
		return 0;
	leaf = BufferGetBlockNumber(buffer);
	_bt_relbuf(index, buffer);
	return (uint64) leaf << 16 | position;
}

/* One way of searching. */
typedef struct Searcher
{
	bool		core;
	LaDescent  *d;
	double		seconds;
	uint64		sum;
} Searcher;

/*
 * Keys without nulls, in the order in which they will be searched for: with a negative
 * seed that of the index, DENSE entries apart.
 */
static Datum *
random_keys(Relation index, int ncolumns, int searches, int seed)
{
	Leaves	   *l = read_leaves(index);
	Datum	   *keys = palloc(searches * ncolumns * sizeof(Datum));
	pg_prng_state prng;

	pg_prng_seed(&prng, seed);
	for (int i = 0; i < searches; i++)
	{
		Datum	   *key = &keys[i * ncolumns];
		int			n = (int) ((int64) i * DENSE % l->count);

		if (seed >= 0)
			n = pg_prng_uint64_range(&prng, 0, l->count - 1);
		while (!key_of(index, l->tuples[n].tuple, 0, ncolumns, key))
			n = (n + 1) % l->count;
		/* side by side, as the rows of a query's outer side are */
		for (int c = 0; c < ncolumns; c++)
		{
			Form_pg_attribute att = TupleDescAttr(RelationGetDescr(index), c);

			key[c] = datumCopy(key[c], att->attbyval, att->attlen);
		}
	}
	return keys;
}

static void
search_slice(Searcher *s, Relation heap, Relation index, BTScanInsert core_key, const Datum *keys,
			 int ncolumns, int n)
{
	instr_time	start,
				time;

	INSTR_TIME_SET_CURRENT(start);
	for (int i = 0; i < n; i++)
	{
		const Datum *key = &keys[i * ncolumns];

		if (s->core)
		{
			for (int c = 0; c < ncolumns; c++)
				core_key->scankeys[c].sk_argument = key[c];
			s->sum += core_search(heap, index, core_key);
		}
		else
		{
			set_key(s->d, key, ncolumns);
			s->sum += own_search(s->d, index);
		}
	}
	INSTR_TIME_SET_CURRENT(time);
	INSTR_TIME_SUBTRACT(time, start);
	s->seconds += INSTR_TIME_GET_DOUBLE(time);
}

Datum
la_test_time(PG_FUNCTION_ARGS)
{
	Oid			indexoid = PG_GETARG_OID(0);
	int			ncolumns = PG_GETARG_INT32(1);
	int			nslices = PG_GETARG_INT32(2) / SLICE;
	int			searches = nslices * SLICE;
	Relation	heap = table_open(IndexGetRelation(indexoid, false), AccessShareLock);
	Relation	index = index_open(indexoid, AccessShareLock);
	Datum	   *keys = random_keys(index, ncolumns, searches, PG_GETARG_INT32(3));
	BTScanInsert core_key = _bt_mkscankey(index, NULL);
	Searcher	searchers[SEARCHERS] = {{.core = true}};
	Datum		out[2 * SEARCHERS];

	if (searches == 0)
		elog(ERROR, "nothing to search");
	searchers[1].d = make_descent(heap, index, index, ncolumns);
	all_cached = true;
	core_key->keysz = ncolumns;
	core_key->scantid = NULL;

	/* without a tuple it has not asked the index, and has made each key null */
	_bt_metaversion(index, &core_key->heapkeyspace, &core_key->allequalimage);
	core_key->anynullkeys = false;
	for (int c = 0; c < ncolumns; c++)
		core_key->scankeys[c].sk_flags &= ~SK_ISNULL;

	/* each searcher comes to each slice, and next to others each time */
	for (int i = 0; i < nslices; i++)
	{
		CHECK_FOR_INTERRUPTS();
		for (int j = 0; j < SEARCHERS; j++)
		{
			int			who = (i + j) % SEARCHERS;
			int			slice = (i + who * (nslices / SEARCHERS)) % nslices;

			search_slice(&searchers[who], heap, index, core_key,
						 &keys[slice * SLICE * ncolumns], ncolumns, SLICE);
		}
	}
	index_close(index, AccessShareLock);
	table_close(heap, AccessShareLock);
	for (int i = 0; i < SEARCHERS; i++)
	{
		out[2 * i] = Float8GetDatum(searchers[i].seconds * 1e9 / searches);
		out[2 * i + 1] = Float8GetDatum((double) searchers[i].sum);
	}
	PG_RETURN_ARRAYTYPE_P(construct_array(out, 2 * SEARCHERS, FLOAT8OID, 8, FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}
