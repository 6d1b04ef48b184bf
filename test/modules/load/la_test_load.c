/*
 * la_test_load.c
 *	  Indexes written by src/indexbuild/load.c against those that the server wrote.
 *
 * The module contains load.c and pagewriter.c themselves (see Makefile), so nothing of them has
 * to be exported for tests.
 *
 *	la_test_load(source, target, padding)
 *		Empties the file of the index target, and loads it with the tuples of the index
 *		source, row by row: posting lists are taken apart.  Both indexes must be of the
 *		same definition, and should be of the same table.  Each tuple gets so many zero
 *		bytes at its end.  Returns the number of tuples and the milliseconds that
 *		la_load_*() took.
 *
 *	la_test_difference(source, target)
 *		NULL, if both files are the same, LSNs and checksums left out, or what the
 *		first difference is.
 *
 * test/modules/load/la_test_load.c
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/nbtree.h"
#include "access/table.h"
#include "access/relation.h"
#include "access/htup_details.h"
#include "catalog/index.h"
#include "catalog/storage.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "indexbuild/indexbuild_int.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(la_test_load);
PG_FUNCTION_INFO_V1(la_test_difference);

typedef struct Row
{
	IndexTuple	tuple;			/* shared by the rows of a posting list */
	ItemPointerData tid;
	bool		equal;
} Row;

typedef struct Rows
{
	Row		   *rows;
	int64		count;
	int64		room;
} Rows;

static void
add_row(Rows *r, Relation index, IndexTuple tuple, ItemPointer tid)
{
	Row		   *row;

	if (r->count == r->room)
	{
		r->room *= 2;
		r->rows = repalloc_huge(r->rows, r->room * sizeof(Row));
	}
	row = &r->rows[r->count];
	row->tuple = tuple;
	row->tid = *tid;
	row->equal = r->count > 0 &&
		(tuple == row[-1].tuple ||
		 _bt_keep_natts_fast(index, row[-1].tuple, tuple) >
		 IndexRelationGetNumberOfKeyAttributes(index));
	r->count++;
}

static void
add_tuple(Rows *r, Relation index, IndexTuple original)
{
	IndexTuple	tuple;
	int			ntids = 1;
	ItemPointer tids = &original->t_tid;

	if (BTreeTupleIsPosting(original))
	{
		Size		size = BTreeTupleGetPostingOffset(original);

		tuple = palloc(size);
		memcpy(tuple, original, size);
		tuple->t_info &= ~(INDEX_ALT_TID_MASK | INDEX_SIZE_MASK);
		tuple->t_info |= size;
		ntids = BTreeTupleGetNPosting(original);
		tids = BTreeTupleGetPosting(original);
	}
	else
		tuple = CopyIndexTuple(original);
	for (int i = 0; i < ntids; i++)
		add_row(r, index, tuple, &tids[i]);
}

/* Row by row what is in the index. */
static Rows
read_index(Relation index)
{
	Rows		r = {.room = 1024};
	Buffer		buffer = ReadBuffer(index, BTREE_METAPAGE);
	BlockNumber block = BTPageGetMeta(BufferGetPage(buffer))->btm_root;

	ReleaseBuffer(buffer);
	r.rows = palloc(r.room * sizeof(Row));
	while (block != P_NONE)
	{
		Page		page;
		BTPageOpaque opaque;

		CHECK_FOR_INTERRUPTS();
		buffer = ReadBuffer(index, block);
		LockBuffer(buffer, BT_READ);
		page = BufferGetPage(buffer);
		opaque = BTPageGetOpaque(page);
		if (P_ISLEAF(opaque))
		{
			for (OffsetNumber i = P_FIRSTDATAKEY(opaque);
				 i <= PageGetMaxOffsetNumber(page); i++)
				add_tuple(&r, index,
						  (IndexTuple) PageGetItem(page, PageGetItemId(page, i)));
			block = opaque->btpo_next;
		}
		else
			block = BTreeTupleGetDownLink((IndexTuple)
										  PageGetItem(page, PageGetItemId(page, P_FIRSTDATAKEY(opaque))));
		UnlockReleaseBuffer(buffer);
	}
	return r;
}

Datum
la_test_load(PG_FUNCTION_ARGS)
{
	Relation	source = index_open(PG_GETARG_OID(0), AccessShareLock);
	Relation	target = index_open(PG_GETARG_OID(1), AccessExclusiveLock);
	Relation	heap = table_open(target->rd_index->indrelid, ShareLock);
	Rows		r = read_index(source);
	int			padding = MAXALIGN(PG_GETARG_INT32(2));
	char	   *copy = palloc0(2 * BLCKSZ);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "load's caller",
												  ALLOCSET_SMALL_SIZES);
	Size		memory = MemoryContextMemAllocated(context, true);
	LaLoad	   *load;
	instr_time	start,
				time;
	TupleDesc	desc;
	Datum		values[2];
	bool		nulls[2] = {false, false};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	RelationTruncate(target, 0);

	MemoryContextSwitchTo(context);
	INSTR_TIME_SET_CURRENT(start);
	load = la_load_begin(heap, target, target->rd_index->indisunique);
	for (int64 i = 0; i < r.count; i++)
	{
		IndexTuple	tuple = (IndexTuple) copy;

		/* what is given to the loader is gone with the next tuple */
		memcpy(copy, r.rows[i].tuple, IndexTupleSize(r.rows[i].tuple));
		tuple->t_tid = r.rows[i].tid;
		if (padding > 0)
		{
			Size		size = IndexTupleSize(tuple);

			if (size + padding > INDEX_SIZE_MASK)
				elog(ERROR, "too much padding");
			memset(copy + size, 0, padding);
			tuple->t_info += padding;
		}
		la_load_add(load, tuple, r.rows[i].equal);
	}
	la_load_end(load);
	INSTR_TIME_SET_CURRENT(time);
	INSTR_TIME_SUBTRACT(time, start);

	if (MemoryContextMemAllocated(context, true) != memory)
		elog(WARNING, "memory is left over");

	MemoryContextSwitchTo(MemoryContextGetParent(context));

	values[0] = Int64GetDatum(r.count);
	values[1] = Float8GetDatum(INSTR_TIME_GET_MILLISEC(time));
	table_close(heap, NoLock);
	index_close(target, NoLock);
	index_close(source, NoLock);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc),
													  values, nulls)));
}

static void
read_page(Relation index, BlockNumber block, char *to)
{
	Buffer		buffer = ReadBuffer(index, block);

	LockBuffer(buffer, BT_READ);
	memcpy(to, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
	PageSetLSN((Page) to, (XLogRecPtr) 0);
	((PageHeader) to)->pd_checksum = 0;
}

Datum
la_test_difference(PG_FUNCTION_ARGS)
{
	Relation	a = index_open(PG_GETARG_OID(0), AccessShareLock);
	Relation	b = index_open(PG_GETARG_OID(1), AccessShareLock);
	BlockNumber blocks = RelationGetNumberOfBlocks(a);
	PGAlignedBlock page_a;
	PGAlignedBlock page_b;
	char	   *found = NULL;

	if (blocks != RelationGetNumberOfBlocks(b))
		found = psprintf("%u blocks instead of %u",
						 RelationGetNumberOfBlocks(b), blocks);
	for (BlockNumber block = 0; block < blocks && !found; block++)
	{
		CHECK_FOR_INTERRUPTS();
		read_page(a, block, page_a.data);
		read_page(b, block, page_b.data);
		for (int i = 0; i < BLCKSZ && !found; i++)
			if (page_a.data[i] != page_b.data[i])
				found = psprintf("byte %d of block %u: %02x instead of %02x", i,
								 block, (uint8) page_b.data[i],
								 (uint8) page_a.data[i]);
	}
	index_close(b, NoLock);
	index_close(a, NoLock);
	if (!found)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(found));
}
