/*
 * merge.c
 *	  Merging sorted rows of files and of memory.
 *
 * A tournament tree of losers that compares rows by the lengths of shared prefixes (the LCP loser
 * tree of Bingmann, Eberle and Sanders, "Engineering Parallel String Sorting", 2013; a form of
 * offset-value coding).  Each source's current row knows how many bytes of its key it shares with
 * the row returned last.  Of two rows, the one that shares more is the lesser one; only if both
 * share the same number are bytes compared, and only the next ones.  So each byte is compared once.
 *
 *				   winner
 *					 |
 *			   [loser of 1]					nodes 1 .. nsources - 1
 *			   /		  \
 *		[loser of 2]   [loser of 3]
 *		 /		\		/		\
 *	 source 0 source 1 source 2 source 3	nodes nsources .. 2 * nsources - 1
 *
 * A row is returned with the length of the prefix that it shares with the one before.  Front coding
 * (run.c) needs that, and it shows whether keys are equal.
 *
 * Invariants
 *	- `common` of each source's row counts the bytes that its key shares with that of the row
 *	  returned last; of a loser, with the winner that passed its node last, if that is later.
 *	- No two rows are equal (indexbuild_int.h), so each comparison has an outcome.
 *
 * src/indexbuild/merge.c
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "indexbuild/indexbuild_int.h"

typedef struct Source
{
	LaRunTuple	row;			/* its current row */
	bool		ended;
	LaRunReader *file;			/* NULL: it is memory */
	LaSortMemory *memory;
} Source;

struct LaMerge
{
	MemoryContext context;
	Size		buffer;			/* bytes for each file */
	int			nsources;
	int			max_sources;
	bool		started;
	int			winner;
	int		   *losers;			/* of the nodes 1 .. nsources - 1 */
	Source	   *sources;
};

LaMerge *
la_merge_create(int max_sources, Size buffer)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_lookahead merge",
												  ALLOCSET_DEFAULT_SIZES);
	LaMerge    *merge = MemoryContextAllocZero(context, sizeof(LaMerge));

	merge->context = context;
	merge->max_sources = max_sources;
	merge->buffer = buffer;
	merge->sources = MemoryContextAllocZero(context, max_sources * sizeof(Source));
	merge->losers = MemoryContextAllocZero(context, max_sources * sizeof(int));
	return merge;
}

void
la_merge_add_file(LaMerge *merge, BufFile *file)
{
	MemoryContext old = MemoryContextSwitchTo(merge->context);

	Assert(merge->nsources < merge->max_sources);
	merge->sources[merge->nsources++].file = la_run_open(file, merge->buffer);
	MemoryContextSwitchTo(old);
}

void
la_merge_add_memory(LaMerge *merge, LaSortMemory *memory)
{
	Assert(merge->nsources < merge->max_sources);
	la_sortmemory_rewind(memory);
	merge->sources[merge->nsources++].memory = memory;
}

static bool
next_of_memory(LaSortMemory *memory, LaRunTuple *row)
{
	LaSortTuple *t = la_sortmemory_next(memory);
	uint8	   *key;

	if (t == NULL)
		return false;
	key = la_sorttuple_key(t);
	row->common = la_sorttuple_common_prefix(key, t->key_length, row->key,
											 row->key_length, 0);
	row->key = key;
	row->key_length = t->key_length;
	row->flags = t->flags;
	row->tuple = la_sorttuple_index_tuple(t);
	return true;
}

static inline void
next_of_source(Source *s)
{
	s->ended = s->file != NULL ? !la_run_read(s->file, &s->row) :
		!next_of_memory(s->memory, &s->row);
}

/*
 * Does a's row come before b's?  Keeps the first invariant: the `common` of the greater one becomes
 * what it shares with the lesser one.
 */
static inline bool
is_before(Source *a, Source *b)
{
	uint32		common;

	if (a->ended || b->ended)
		return b->ended;
	if (a->row.common != b->row.common)
		return a->row.common > b->row.common;
	common = la_sorttuple_common_prefix(a->row.key, a->row.key_length,
										b->row.key, b->row.key_length,
										a->row.common);
	/* the end of a key would come first, but no key is a prefix of another */
	if (common < b->row.key_length &&
		(common >= a->row.key_length || a->row.key[common] < b->row.key[common]))
	{
		b->row.common = common;
		return true;
	}
	a->row.common = common;
	return false;
}

/* Play the tournament below a node, and return its winner. */
static int
play(LaMerge *merge, int node)
{
	int			a;
	int			b;

	if (node >= merge->nsources)
		return node - merge->nsources;
	a = play(merge, 2 * node);
	b = play(merge, 2 * node + 1);
	if (is_before(&merge->sources[a], &merge->sources[b]))
	{
		merge->losers[node] = b;
		return a;
	}
	merge->losers[node] = a;
	return b;
}

static void
start(LaMerge *merge)
{
	Assert(merge->nsources > 0);
	merge->started = true;
	for (int i = 0; i < merge->nsources; i++)
		next_of_source(&merge->sources[i]);
	merge->winner = play(merge, 1);
}

static void
advance(LaMerge *merge)
{
	int			winner = merge->winner;

	next_of_source(&merge->sources[winner]);
	for (int node = (winner + merge->nsources) / 2; node >= 1; node /= 2)
	{
		int			loser = merge->losers[node];

		if (is_before(&merge->sources[loser], &merge->sources[winner]))
		{
			merge->losers[node] = winner;
			winner = loser;
		}
	}
	merge->winner = winner;
}

/* The next row, valid until the one after it; NULL at the end. */
const LaRunTuple *
la_merge_next(LaMerge *merge)
{
	if (!merge->started)
		start(merge);
	else
		advance(merge);
	return merge->sources[merge->winner].ended ? NULL :
		&merge->sources[merge->winner].row;
}

void
la_merge_free(LaMerge *merge)
{
	MemoryContextDelete(merge->context);
}
