/*
 * postings.c
 *	  Leaf pages of GIN posting trees that a scan is going to read.
 *
 * The row addresses of a frequent entry are in a posting tree, ordered by address.  A scan reads
 * the trees of its entries side by side.  For each row that may match, it calls the operator
 * class's consistent function, and gin.c calls la_postings_see_row():
 *
 *		rare entry		[ 3 17 | 40 44 | 71 ... ]			 <- gives the rows to look for
 *		frequent entry	[ 1 2 3 | 4 .. 12 | 13 .. 19 | ...]	 <- looked up for those rows
 *						  ^ being read		^ holds 17: advised
 *
 * Where the scan is, the entries of its keys say (GinScanEntry): the current address, the ones
 * that have been read from the current leaf page, and, since the scan's keys were started, which
 * entries are required for a match and which are only looked up (startScanKey() in ginget.c).
 * Which pages come next, the inner pages of the tree say, each of which lists some 800 leaf
 * pages with the last address of each.
 *
 *	DRIVER	The key with the fewest rows decides which rows are looked for.  The trees of its
 *		required entries are read from page to page (IN ORDER).
 *	BY ROWS	In all other trees, only the pages that hold the coming rows of the driver are read,
 *		and advised: the rows on the leaf pages that the driver's entries have just read.  If
 *		there are so many of them that hardly a page would be left out, or they are not known
 *		(partial matches), these trees are read in order, too.
 *	DISTANCE	Of all trees together, no more than max_distance pages are ahead of the scan: each
 *		has its share, and if that were less than MIN_SHARE, fewer trees are looked at.
 *	KERNEL	Leaf pages that follow each other in the file are left to the kernel's read-ahead
 *		from the RUN-th on.
 *	CACHED	Nothing is done before a block has been read.
 *	OBSERVED	Until it is known whether reads are waits, the next page is read, not advised: of
 *		a tree that the scan is certain to read to its end, so that a damaged page raises no
 *		error that stock would not raise.  Such are those of the required entries of the only key
 *		that has any.
 *
 * Everything here is a hint: addresses and pages may have changed when the scan comes to them.
 * Pages are looked at under a share lock, one at a time, while the scan itself holds none (it
 * does while it reads the pending list, before its keys are started: then nothing is done here).
 *
 * src/bitmap/postings.c
 */
#include "postgres.h"

#include "access/gin_private.h"
#include "storage/bufmgr.h"

#include "attach/descriptors.h"
#include "base/base.h"
#include "bitmap/bitmap_int.h"
#include "gin/gin.h"
#include "window/window.h"

#define MAX_TREES		16		/* the others are left as they are */
#define MAX_DRIVERS		8		/* entries that give rows */
#define MAX_AHEAD		64		/* pages ahead of the scan, BY ROWS */
#define MAX_ROWS		1024	/* of the driver that are looked at in one
								 * step */
#define LEAF_ROWS		4096	/* on a leaf page, about */
#define MIN_SHARE		2		/* pages ahead in one tree */
#define RUN				3
#define MAX_INNER		16		/* inner pages looked at in one descent */
#define MAX_CHILDREN	((int) (GinDataPageMaxDataSize / sizeof(PostingItem)))

/* A tree, and a copy of one of its lowest inner pages. */
typedef struct Tree
{
	GinScanEntry entry;
	bool		by_rows;
	bool		certain;		/* read to its end: OBSERVED */
	bool		at_end;			/* nothing more is known */
	int			height;			/* levels of inner pages; 0: not known yet */

	PostingItem *children;		/* leaf pages, or NULL until first needed */
	int			nchildren;
	bool		rightmost;
	ItemPointerData bound;		/* the last address below the inner page */
	ItemPointerData before;		/* the last one below the inner page before */

	int			next;			/* child to be foreseen next */
	int			current;		/* IN ORDER: child that the scan is on;
								 * negative: still below the inner page before */
	ItemPointerData seen;		/* BY ROWS: last row looked at */
	int			nahead;
	ItemPointerData ahead[MAX_AHEAD];	/* rows whose pages are ahead */

	BlockNumber last;			/* page foreseen last */
	int			run;			/* pages that followed each other */
} Tree;

struct LaPostings
{
	LaBitmapScan *bs;
	int64		used;			/* buffers used, last time */
	int64		reads;			/* blocks read when the call began */
	bool		started;		/* driver and trees are set */
	GinScanKey	driver;
	int			distance;		/* of each tree */
	int			ntrees;
	Tree	   *trees;			/* MAX_TREES, or NULL until first needed */
};

/* ---- inner pages -------------------------------------------------------------- */

static BlockNumber
child_block(const Tree *t, int child)
{
	return PostingItemGetBlockNumber(&t->children[child]);
}

/* The child that holds the address; the last one holds all that are greater. */
static int
find_child(const Tree *t, ItemPointer tid)
{
	int			low = 0;
	int			high = t->nchildren - 1;

	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (ginCompareItemPointers(&t->children[middle].key, tid) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Copy an inner page.  Returns false if the page is none, with the link to the right if needed. */
static bool
copy_inner(LaPostings *p, Tree *t, BlockNumber block, ItemPointer tid, BlockNumber *right)
{
	Buffer		buffer = la_ginreads_read(&p->bs->reads, block);
	Page		page = BufferGetPage(buffer);
	int			n;

	*right = InvalidBlockNumber;
	LockBuffer(buffer, GIN_SHARE);
	n = la_ginpage_count_children(page);
	if (n > 0)
	{
		t->rightmost = GinPageRightMost(page);
		t->bound = *GinDataPageGetRightBound(page);
		if (!t->rightmost && ginCompareItemPointers(&t->bound, tid) < 0)
		{
			*right = GinPageGetOpaque(page)->rightlink;
			n = 0;
		}
		memcpy(t->children, GinDataPageGetPostingItem(page, FirstOffsetNumber),
			   n * sizeof(PostingItem));
	}
	UnlockReleaseBuffer(buffer);
	t->nchildren = n;
	return n > 0;
}

/* Is the page a leaf?  Only asked of one that the scan has just read. */
static bool
is_leaf(LaPostings *p, BlockNumber block)
{
	Buffer		buffer = la_ginreads_read(&p->bs->reads, block);
	bool		leaf;

	LockBuffer(buffer, GIN_SHARE);
	leaf = la_ginpage_count_children(BufferGetPage(buffer)) == 0;
	UnlockReleaseBuffer(buffer);
	return leaf;
}

/*
 * Load the lowest inner page above the leaf page that holds the address.  The first time, this
 * has to be the address that the scan is on: the way to it has been read, and shows the height.
 */
static bool
load(LaPostings *p, Tree *t, ItemPointer tid)
{
	BlockNumber block = t->entry->btree.rootBlkno;
	int			level = 1;

	for (int i = 0; i < MAX_INNER; i++)
	{
		BlockNumber right;
		BlockNumber child;

		if (!copy_inner(p, t, block, tid, &right))
		{
			if (right == InvalidBlockNumber)
				break;
			block = right;
			continue;
		}
		child = child_block(t, find_child(t, tid));
		if (t->height == 0 && is_leaf(p, child))
			t->height = level;
		if (level == t->height)
			return true;
		block = child;
		level++;
	}
	t->nchildren = 0;
	t->at_end = true;
	return false;
}

/* Load the inner page for an address, unless it is the one that is loaded. */
static bool
seek(LaPostings *p, Tree *t, ItemPointer tid)
{
	if (t->height == 0 && !load(p, t, &t->entry->curItem))
		return false;
	if (t->nchildren > 0 &&
		(t->rightmost || ginCompareItemPointers(tid, &t->bound) <= 0))
		return true;
	t->next = 0;
	return load(p, t, tid);
}

/* ---- the pages that come next --------------------------------------------------- */

/* IN ORDER: the next leaf page to be foreseen, or InvalidBlockNumber. */
static BlockNumber
next_in_order(LaPostings *p, Tree *t)
{
	ItemPointer now = &t->entry->curItem;

	if (t->height == 0 && !seek(p, t, now))
		return InvalidBlockNumber;
	if (ginCompareItemPointers(now, &t->before) > 0)
	{
		if (!seek(p, t, now))
			return InvalidBlockNumber;
		t->current = find_child(t, now);
	}
	t->next = Max(t->next, t->current + 1);
	if (t->next - t->current > p->distance)
		return InvalidBlockNumber;
	if (t->next >= t->nchildren)
	{
		ItemPointerData beyond = t->bound;
		int			nchildren = t->nchildren;

		if (t->rightmost)
			return InvalidBlockNumber;
		t->before = t->bound;
		ItemPointerSetOffsetNumber(&beyond,
								   ItemPointerGetOffsetNumberNoCheck(&t->bound) + 1);
		if (!load(p, t, &beyond))
			return InvalidBlockNumber;
		t->current -= nchildren;
		t->next = 0;
	}
	return child_block(t, t->next++);
}

/* The first row after this one that an entry has read already, or NULL. */
static ItemPointer
read_after(GinScanEntry entry, ItemPointer tid)
{
	int			low = 0;
	int			high = entry->isFinished ? 0 : entry->nlist;

	if (entry->list == NULL)
		return NULL;
	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (ginCompareItemPointers(&entry->list[middle], tid) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return !entry->isFinished && low < entry->nlist ? &entry->list[low] : NULL;
}

/* The first row after this one that the driver is known to come to, or NULL. */
static ItemPointer
row_after(const GinScanKeyData * driver, ItemPointer tid)
{
	ItemPointer first = NULL;

	for (int i = 0; i < driver->nrequired; i++)
	{
		ItemPointer row = read_after(driver->requiredEntries[i], tid);

		if (row != NULL && (first == NULL || ginCompareItemPointers(row, first) < 0))
			first = row;
	}
	return first;
}

/* BY ROWS: forget the pages of rows that the scan has passed. */
static void
forget_passed(Tree *t, ItemPointer now)
{
	int			kept = 0;

	for (int i = 0; i < t->nahead; i++)
	{
		if (ginCompareItemPointers(&t->ahead[i], now) > 0)
			t->ahead[kept++] = t->ahead[i];
	}
	t->nahead = kept;
}

/* BY ROWS: the next leaf page to be foreseen, or InvalidBlockNumber. */
static BlockNumber
next_by_rows(LaPostings *p, Tree *t)
{
	if (ginCompareItemPointers(&t->seen, &p->driver->curItem) < 0)
		t->seen = p->driver->curItem;
	forget_passed(t, &p->driver->curItem);
	for (int i = 0; i < MAX_ROWS && t->nahead < Min(p->distance, MAX_AHEAD); i++)
	{
		ItemPointer row = row_after(p->driver, &t->seen);
		int			child;

		if (row == NULL)
			break;
		t->seen = *row;
		/* rows on the page that the scan is on, or before it */
		if (ginCompareItemPointers(row, &t->entry->curItem) <= 0)
			continue;
		if (!seek(p, t, row))
			break;
		child = find_child(t, row);
		if (child < t->next)
			continue;
		t->next = child + 1;
		t->ahead[t->nahead++] = *row;
		return child_block(t, child);
	}
	return InvalidBlockNumber;
}

static BlockNumber
next_page(LaPostings *p, Tree *t)
{
	if (t->at_end || t->entry->isFinished || !BufferIsValid(t->entry->buffer))
		return InvalidBlockNumber;
	return t->by_rows ? next_by_rows(p, t) : next_in_order(p, t);
}

/* KERNEL: is the page left to the kernel's read-ahead? */
static bool
extends_run(LaPostings *p, Tree *t, BlockNumber block)
{
	t->run = block == t->last + 1 ? t->run + 1 : 0;
	t->last = block;
	return t->run >= RUN && !p->bs->reads.config.force;
}

/* OBSERVED: read the next page that is not cached. */
static void
observe(LaPostings *p)
{
	for (int i = 0; i < p->ntrees; i++)
	{
		BlockNumber block;
		Buffer		recent;

		if (!p->trees[i].certain)
			continue;
		while ((block = next_page(p, &p->trees[i])) != InvalidBlockNumber)
		{
			if (extends_run(p, &p->trees[i], block) ||
				la_issue_is_cached(p->bs->real, block, &recent))
				continue;
			ReleaseBuffer(la_ginreads_read(&p->bs->reads, block));
			return;
		}
	}
}

/* Count how far ahead of the scan the trees are now, for EXPLAIN. */
static void
count_distance(LaPostings *p)
{
	int			distance = 0;

	for (int i = 0; i < p->ntrees; i++)
	{
		const Tree *t = &p->trees[i];

		if (t->height > 0)
			distance += t->by_rows ? t->nahead : Max(t->next - t->current - 1, 0);
	}
	la_counters_note_distance(&p->bs->counters, distance);
}

static void
advise(LaPostings *p)
{
	for (int i = 0; i < p->ntrees; i++)
	{
		BlockNumber block;

		while ((block = next_page(p, &p->trees[i])) != InvalidBlockNumber)
		{
			if (!extends_run(p, &p->trees[i], block))
				la_ginreads_advise(&p->bs->reads, block);
		}
	}
	count_distance(p);
}

/* ---- the scan -------------------------------------------------------------------- */

static double
count_rows(const GinScanKeyData * key)
{
	double		n = 0;

	for (int i = 0; i < key->nrequired; i++)
		n += key->requiredEntries[i]->predictNumberResult;
	return n;
}

/* DRIVER: the one of the started keys, or NULL. */
static GinScanKey
choose_driver(GinScanOpaque so)
{
	GinScanKey	driver = NULL;

	for (uint32 i = 0; i < so->nkeys; i++)
	{
		GinScanKey	key = &so->keys[i];

		if (key->nrequired > 0 && (driver == NULL || count_rows(key) < count_rows(driver)))
			driver = key;
	}
	return driver;
}

/* Is there no other key that could have the scan skip rows of the driver, or end before it? */
static bool
is_alone(GinScanOpaque so, GinScanKey driver)
{
	for (uint32 i = 0; i < so->nkeys; i++)
	{
		if (&so->keys[i] != driver && so->keys[i].nrequired > 0)
			return false;
	}
	return true;
}

static bool
is_required(const GinScanKeyData * key, const GinScanEntryData * entry)
{
	for (int i = 0; i < key->nrequired; i++)
	{
		if (key->requiredEntries[i] == entry)
			return true;
	}
	return false;
}

/* Are the driver's coming rows known as far as they have been read? */
static bool
rows_are_known(const GinScanKeyData * driver)
{
	for (int i = 0; i < driver->nrequired; i++)
	{
		if (driver->requiredEntries[i]->matchBitmap != NULL)
			return false;
	}
	return driver->nrequired <= MAX_DRIVERS;
}

/* Is there memory for the trees? */
static bool
have_trees(LaPostings *p)
{
	Size		size = MAX_TREES * sizeof(Tree);

	if (p->trees == NULL && la_budget_has(&p->bs->budget, size))
		p->trees = la_memory_alloc(p->bs, size);
	return p->trees != NULL;
}

static void
start(LaPostings *p, GinScanOpaque so)
{
	int			max_trees = Max(Min(MAX_TREES, p->bs->reads.config.max_distance / MIN_SHARE), 1);
	double		rows;
	bool		known;
	bool		certain;

	p->started = true;
	p->ntrees = 0;
	p->driver = choose_driver(so);
	if (p->driver == NULL || !have_trees(p))
		return;
	rows = count_rows(p->driver);
	known = rows_are_known(p->driver);
	certain = known && is_alone(so, p->driver);
	for (uint32 i = 0; i < so->totalentries && p->ntrees < max_trees; i++)
	{
		GinScanEntry entry = so->entries[i];
		Tree	   *t = &p->trees[p->ntrees];
		PostingItem *children = t->children;

		if (!BufferIsValid(entry->buffer) || entry->matchBitmap != NULL)
			continue;
		if (children == NULL)
		{
			Size		size = MAX_CHILDREN * sizeof(PostingItem);

			if (!la_budget_has(&p->bs->budget, size))
				break;
			children = la_memory_alloc(p->bs, size);
		}
		memset(t, 0, sizeof(Tree));
		t->children = children;
		t->entry = entry;
		t->certain = certain && is_required(p->driver, entry);
		t->by_rows = known && !is_required(p->driver, entry) &&
			rows < 2.0 * entry->predictNumberResult / LEAF_ROWS;
		t->last = InvalidBlockNumber - 1;
		p->ntrees++;
	}
	p->distance = p->bs->reads.config.max_distance / Max(p->ntrees, 1);
}

/* The scan has used a buffer since the row before. */
static pg_noinline void
attend(LaPostings *p)
{
	LaBitmapScan *bs = p->bs;
	GinScanOpaque so = la_gin_scan(bs->scan);
	uint32		last = so->nkeys;

	/* startScanKey() sets the last one last; before, pages may be locked */
	while (last > 0 && so->keys[last - 1].nentries == 0)
		last--;
	if (last == 0 || so->keys[last - 1].nrequired + so->keys[last - 1].nadditional == 0)
		return;
	if ((bs->reads.policy.state != LA_ARMED && la_issue_blocks_read() == p->reads) ||
		!la_ginreads_may_read())
	{
		/* CACHED */
		p->used = la_issue_buffers_used();
		return;
	}
	if (!p->started)
		start(p, so);
	if (la_ginreads_is_observing(&bs->reads) && !la_ginreads_arms(&bs->reads))
		observe(p);
	if (la_ginreads_arms(&bs->reads))
		advise(p);
	p->used = la_issue_buffers_used();
}

/* The scan has come to a row, and holds no lock unless it has come to it in the pending list. */
void
la_postings_see_row(LaPostings *p)
{
	if (la_issue_buffers_used() != p->used)
		attend(p);
}

/* A call of amgetbitmap begins. */
void
la_postings_begin(LaPostings *p)
{
	p->used = 0;
	p->reads = la_issue_blocks_read();
	p->started = false;
}

Size
la_postings_size(void)
{
	return sizeof(LaPostings);
}

LaPostings *
la_postings_create(LaBitmapScan *bs)
{
	LaPostings *p = la_memory_alloc(bs, sizeof(LaPostings));

	p->bs = bs;
	return p;
}
