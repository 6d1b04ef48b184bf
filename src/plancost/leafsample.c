/*
 * leafsample.c
 *	  Some leaf pages of a btree index, looked at by the planner.
 *
 * Up to LEAVES pages are read, at places that are always the same ones, so that a plan does not
 * change from one session to the next.  It is done once in a session, and again if the index has
 * another file, or has grown or shrunk by an eighth.
 *
 * A page that is damaged is not the planner's to report (base/attempt.c).  Nothing is waited for
 * but the read, and the page's lock, which is held for some microseconds only.
 *
 * src/plancost/leafsample.c
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "base/base.h"
#include "base/compat.h"
#include "btree/btree.h"
#include "plancost/plancost_int.h"

#define LEAVES			2
#define TRIES			4		/* other pages may be met */
#define KEPT			64

/* the least regular of sequences: multiples of the golden ratio */
#define GOLDEN_RATIO	0.6180339887498949

typedef struct Kept
{
	Oid			relid;
	Oid			file;
	BlockNumber blocks;
	LaScatter	scatter;
} Kept;

typedef struct Work
{
	Relation	index;
	BlockNumber blocks;
	LaScatter	scatter;
} Work;

static Kept kept[KEPT];

/* The blocks of the rows of a tuple's entries; returns how many there are now. */
static int
add_rows(IndexTuple tuple, uint32_t *blocks, int n)
{
	int			rows = BTreeTupleIsPosting(tuple) ? BTreeTupleGetNPosting(tuple) : 1;

	for (int i = 0; i < rows && n < MaxTIDsPerBTreePage; i++)
	{
		ItemPointer tid = BTreeTupleIsPosting(tuple) ? BTreeTupleGetPostingN(tuple, i) :
			&tuple->t_tid;

		blocks[n++] = ItemPointerGetBlockNumberNoCheck(tid);
	}
	return n;
}

/* False: it is no leaf page. */
static bool
look_at_page(Page page, LaScatter *scatter)
{
	uint32_t	blocks[MaxTIDsPerBTreePage];
	BTPageOpaque opaque;
	int			n = 0;

	if (la_page_is_unusable(page))
		return false;
	opaque = BTPageGetOpaque(page);
	if (!P_ISLEAF(opaque) || P_IGNORE(opaque))
		return false;
	for (OffsetNumber i = P_FIRSTDATAKEY(opaque); i <= PageGetMaxOffsetNumber(page); i++)
	{
		if (!ItemIdIsDead(PageGetItemId(page, i)))
			n = add_rows(la_page_tuple(page, i), blocks, n);
	}
	la_scatter_add(scatter, blocks, n);
	return true;
}

static void
look_at_pages(void *arg)
{
	Work	   *w = arg;
	int			leaves = 0;

	for (int i = 0; i < TRIES && leaves < LEAVES; i++)
	{
		double		place = (i + 0.5) * GOLDEN_RATIO;

		/* the first one is the metapage */
		BlockNumber block = 1 + (BlockNumber) ((place - (int) place) * (w->blocks - 1));
		Buffer		buffer = ReadBuffer(w->index, block);

		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		leaves += look_at_page(BufferGetPage(buffer), &w->scatter);
		UnlockReleaseBuffer(buffer);
	}
}

static bool
is_similar(BlockNumber a, BlockNumber b)
{
	return Max(a, b) - Min(a, b) <= Min(a, b) / 8;
}

/* Of a btree index that is open; without entries, if nothing is known. */
void
la_leaf_sample(Relation index, LaScatter *scatter)
{
	Kept	   *k = &kept[RelationGetRelid(index) % KEPT];
	Work		work = {.index = index,.blocks = RelationGetNumberOfBlocks(index)};

	if (k->relid != RelationGetRelid(index) || k->file != la_rel_file_number(index) ||
		!is_similar(k->blocks, work.blocks))
	{
		k->relid = InvalidOid;
		if (work.blocks > 1 && !la_attempt_read(look_at_pages, &work))
			memset(&work.scatter, 0, sizeof(work.scatter));
		k->scatter = work.scatter;
		k->file = la_rel_file_number(index);
		k->blocks = work.blocks;
		k->relid = RelationGetRelid(index);
	}
	*scatter = k->scatter;
}
