/*
 * ginpending.c
 *	  The pages that a flush of a GIN index's pending list is going to read.
 *
 * With fastupdate, the entries of new rows are appended to a list.  When it has become too long,
 * the INSERT that notices moves all of them to the index, as gin_clean_pending_list() does: for
 * each entry, in their order, it reads a leaf page of the entry tree, and for a frequent one the
 * pages of its posting tree, one after the other.
 *
 *		pending list:	page -> page -> page -> ...		COLLECT: entries, each once
 *														  |  sorted
 *		entry tree, posting trees:						  v
 *						| page | page | page | ...		read ahead (gin/ginsearch.c)
 *														  |
 *		the flush, by the server						  v  finds them cached
 *
 * What is done with the entries is the server's.  Between two of them it cannot be interrupted
 * without a lock, so the pages are read before the flush begins:
 *
 *	SAMPLE	A few entries of the list's first page are searched for first.  If their pages were
 *		cached, or their reads were not waits, nothing else is done.
 *	ONE AT A TIME	One session flushes at a time, as it holds a lock of the metapage; the others
 *		go on without.  So that lock is taken, if it is free, while the pages are read: what another
 *		session flushes, or is about to, is left to it.
 *	PORTIONS	The list is walked until the memory for a scan is full of entries, whose pages are
 *		read; then on.
 *	LIMIT	No more pages are read than effective_cache_size has room for, divided by
 *		CACHE_SHARE: they have to stay until the flush comes to them.
 *	LIST	Pages of the list are share-locked one at a time.  Another session may flush meanwhile,
 *		and a page become another one: then the walk ends.
 *
 * src/write/ginpending.c
 */
#include "postgres.h"

#include "access/gin_private.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "base/base.h"
#include "base/compat.h"
#include "gin/gin.h"
#include "write/write_int.h"

#define SAMPLE			32		/* entries */
#define TOGETHER		1024	/* entries that descend together */
#define CACHE_SHARE		4

/* An entry of the list, and whether it is known already. */
typedef struct Entry
{
	LaGinSearch search;
	uint32		hash;
	char		status;
} Entry;

typedef struct Collected
{
	LaGinSearcher by;
	Size		limit;			/* of memory */
	int64		pages_left;		/* LIMIT */
	MemoryContext memory;		/* of this portion */
	struct entries_hash *entries;
	BlockNumber next;			/* page of the list */
	BlockNumber left;			/* pages of it */
	bool		sampled;
} Collected;

static Form_pg_attribute
column_of(const Collected *c, OffsetNumber attnum)
{
	return TupleDescAttr(c->by.state->origTupdesc, attnum - 1);
}

static bool
is_same(const Collected *c, const LaGinSearch *a, const LaGinSearch *b)
{
	Form_pg_attribute att = column_of(c, a->attnum);

	return a->attnum == b->attnum && a->category == b->category &&
		(a->category != GIN_CAT_NORM_KEY ||
		 datum_image_eq(a->key, b->key, att->attbyval, att->attlen));
}

static uint32
hash_of(const Collected *c, const LaGinSearch *s)
{
	Form_pg_attribute att = column_of(c, s->attnum);

	return s->category != GIN_CAT_NORM_KEY ? s->category :
		datum_image_hash(s->key, att->attbyval, att->attlen);
}

#define SH_PREFIX		entries
#define SH_ELEMENT_TYPE	Entry
#define SH_KEY_TYPE		LaGinSearch
#define SH_KEY			search
#define SH_HASH_KEY(tb, key)	hash_of((tb)->private_data, &(key))
#define SH_EQUAL(tb, a, b)		is_same((tb)->private_data, &(a), &(b))
#define SH_STORE_HASH
#define SH_GET_HASH(tb, a)		(a)->hash
#define SH_SCOPE		static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* ---- COLLECT ----------------------------------------------------------------------- */

/* Does the value of a key lie within its tuple? */
static bool
fits(const Form_pg_attribute att, Datum key, IndexTuple tuple)
{
	const char *value = DatumGetPointer(key);
	const char *end = (const char *) tuple + IndexTupleSize(tuple);

	if (att->attbyval)
		return true;
	if (value < (const char *) tuple || value >= end)
		return false;
	if (att->attlen == -1)
		return la_varlena_fits(value, end);
	return att->attlen > 0 ? value + att->attlen <= end : memchr(value, 0, end - value) != NULL;
}

/* Add an entry of a page of the list, which is locked.  Returns false if the page is damaged. */
static bool
add_entry(Collected *c, IndexTuple tuple)
{
	GinState   *state = c->by.state;
	OffsetNumber attnum = gintuple_get_attrnum(state, tuple);
	Form_pg_attribute att;
	GinNullCategory category;
	Datum		key;
	LaGinSearch search;
	bool		found;
	Entry	   *entry;

	if (attnum < FirstOffsetNumber || attnum > state->origTupdesc->natts)
		return false;
	att = column_of(c, attnum);
	key = gintuple_get_key(state, tuple, &category);
	if (category == GIN_CAT_NORM_KEY && !fits(att, key, tuple))
		return false;
	la_ginsearch_set(&search, attnum, key, category);
	search.tid = tuple->t_tid;
	entry = entries_insert(c->entries, search, &found);
	if (!found && category == GIN_CAT_NORM_KEY)
		entry->search.key = datumCopy(key, att->attbyval, att->attlen);
	return true;
}

/* Add the entries of the next page of the list.  Returns false at its end. */
static bool
add_page(Collected *c)
{
	Buffer		buffer = la_ginreads_read(c->by.reads, c->next);
	Page		page = BufferGetPage(buffer);
	bool		sound;

	LockBuffer(buffer, GIN_SHARE);
	sound = la_ginpage_is_sound(page) && !GinPageIsDeleted(page) && GinPageIsList(page);
	for (OffsetNumber i = FirstOffsetNumber;
		 sound && i <= PageGetMaxOffsetNumber(page); i++)
		sound = add_entry(c, (IndexTuple) PageGetItem(page, PageGetItemId(page, i)));
	c->next = sound ? GinPageGetOpaque(page)->rightlink : InvalidBlockNumber;
	UnlockReleaseBuffer(buffer);
	return --c->left > 0 && c->next != InvalidBlockNumber;
}

/*
 * Add those of as many pages as there is memory for, or of one for a sample.  Returns false at the
 * end of the list.
 */
static bool
collect(Collected *c)
{
	bool		more = true;

	while (more && la_ginreads_may_read() &&
		   MemoryContextMemAllocated(c->memory, true) < c->limit / 2)
	{
		CHECK_FOR_INTERRUPTS();
		more = add_page(c);
		if (!c->sampled)
			break;
	}
	return more;
}

/* ---- reading ahead ------------------------------------------------------------------- */

static int
compare(const void *a, const void *b, void *arg)
{
	const LaGinSearch *s = a;
	const LaGinSearch *t = b;

	return ginCompareAttEntries(arg, s->attnum, s->key, s->category,
								t->attnum, t->key, t->category);
}

/* The collected entries, in the order of the index. */
static LaGinSearch *
sorted(Collected *c)
{
	LaGinSearch *searches = palloc(c->entries->members * sizeof(LaGinSearch));
	entries_iterator iterator;
	Entry	   *entry;
	int			n = 0;

	entries_start_iterate(c->entries, &iterator);
	while ((entry = entries_iterate(c->entries, &iterator)) != NULL)
		searches[n++] = entry->search;
	qsort_arg(searches, n, sizeof(LaGinSearch), compare, c->by.state);
	return searches;
}

/* SAMPLE: are reads of the entries' pages waits? */
static bool
are_waits(Collected *c, const LaGinSearch *searches, int n)
{
	LaGinSearch sample[SAMPLE];
	int			most = Min(n, SAMPLE);

	for (int i = 0; i < most; i++)
		sample[i] = searches[(int64) i * n / most];
	la_ginsearch_run(&c->by, sample, most);
	c->sampled = true;
	return la_ginreads_arms(c->by.reads);
}

/* Read the pages of the collected entries.  Returns false if no more are to be read. */
static bool
read_pages(Collected *c)
{
	int64	   *started = &c->by.reads->counters->c[LA_LEAF_PAGES_ISSUED];
	int			n = c->entries->members;
	LaGinSearch *searches = sorted(c);

	if (!c->sampled && !are_waits(c, searches, n))
		return false;
	for (int i = 0; i < n && c->pages_left > 0; i += TOGETHER)
	{
		int64		before = *started;

		la_ginsearch_run(&c->by, &searches[i], Min(TOGETHER, n - i));
		c->pages_left -= *started - before;
	}
	return c->pages_left > 0;
}

static void
read_all(Collected *c)
{
	bool		more = true;

	while (more)
	{
		MemoryContext old = MemoryContextSwitchTo(c->memory);

		c->entries = entries_create(c->memory, 1024, c);
		more = collect(c) && c->entries->members > 0;
		if (c->entries->members > 0)
			more &= read_pages(c);
		MemoryContextSwitchTo(old);
		MemoryContextReset(c->memory);
	}
}

/* ONE AT A TIME */
static bool
lock_list(Relation index)
{
	LOCALLOCK  *lock;
	LOCKTAG		tag;

	SET_LOCKTAG_PAGE(tag, index->rd_lockInfo.lockRelId.dbId, index->rd_lockInfo.lockRelId.relId,
					 GIN_METAPAGE_BLKNO);
	return la_lock_at_once(&tag, ExclusiveLock, &lock) != LOCKACQUIRE_NOT_AVAIL;
}

/*
 * A flush is about to begin, of a list that has so many pages from this one on.  limit: bytes of
 * memory.
 */
void
la_ginpending_read_ahead(const LaGinSearcher *by, const GinMetaPageData *list, Size limit)
{
	Collected	c = {
		.by = *by,
		.limit = limit,
		.pages_left = effective_cache_size / CACHE_SHARE,
		.next = list->head,
		.left = list->nPendingPages
	};
	Relation	index = by->state->index;

	if (c.next == InvalidBlockNumber || c.left == 0 || !lock_list(index))
		return;
	c.memory = AllocSetContextCreate(CurrentMemoryContext, "pg_lookahead pending list",
									 ALLOCSET_DEFAULT_SIZES);
	read_all(&c);
	MemoryContextDelete(c.memory);
	UnlockPage(index, GIN_METAPAGE_BLKNO, ExclusiveLock);
}
