/*
 * run.c
 *	  Sorted rows in temporary files, and their merge.
 *
 * A run is a file of rows in order.  Neighbours have long beginnings in common,
 * so each key is written without what it shares with the one before (front
 * coding):
 *
 *		common length | rest's length | flags | index tuple | rest of the key
 *
 * the lengths seven bits to a byte, least significant first.
 *
 * The merge is a tournament tree of losers that compares by these common
 * lengths.  What each loser knows is how many bytes it shares with the row that
 * went out last.  Of two rows, the one that shares more is the lesser one, and
 * only where they share as much are bytes looked at, and only those behind.
 * Nothing is compared twice (offset-value coding, in the form of the string
 * sorting literature's LCP loser tree: Bingmann, Eberle and Sanders, "Engineering
 * Parallel String Sorting", 2013).  A row that comes out tells how much it shares
 * with the one before: this is what the next run's front coding needs, and what
 * tells equal keys.
 *
 * Behaviours
 *	A	Files are the caller's: opened, closed and deleted there.
 *	B	A source may be rows in memory; they need not be written first.
 *	C	Memory is one buffer per file, of the size that the caller says, and the
 *		longest row of each source.
 *	D	A file that ends in the middle of a row is an error.
 *
 * Invariants
 *	I1	common of every source in the tree counts the bytes it shares with the
 *		row that went out last; of a loser in a node also with the winner that
 *		passed there, where that is more recent.
 *	I2	No two rows are equal (row.h), so a comparison always ends.
 *
 * src/indexbuild/run.c
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "indexbuild/run.h"

/* the most that two lengths and the flags take */
#define MAX_HEADER	11

struct LaRunWriter
{
	BufFile    *file;
	Size		used;
	Size		size;
	uint8	   *buffer;
};

typedef struct Source
{
	/* its current row */
	bool		ended;
	uint32		common;
	uint32		flags;
	uint32		key_length;
	uint8	   *key;
	IndexTuple	tuple;

	/* where it comes from: memory */
	LaRowSource next;
	void	   *arg;

	/* ... or a file */
	BufFile    *file;
	uint8	   *buffer;
	Size		filled;
	Size		position;
	Size		key_room;		/* of what key points to */
	Size		tuple_room;
} Source;

struct LaMerge
{
	MemoryContext context;
	Size		buffer;			/* bytes for each file */
	int			nsources;
	int			max_sources;
	bool		started;
	int			winner;
	int		   *losers;			/* 1 .. nsources - 1: the tree's nodes */
	Source	   *sources;
};

/* ---- writing ------------------------------------------------------------ */

LaRunWriter *
la_run_create(BufFile *file, Size buffer)
{
	LaRunWriter *writer = palloc(sizeof(LaRunWriter));

	writer->file = file;
	writer->used = 0;
	writer->size = buffer;
	writer->buffer = palloc(buffer);
	return writer;
}

static void
write_out(LaRunWriter *writer)
{
	CHECK_FOR_INTERRUPTS();
	BufFileWrite(writer->file, writer->buffer, writer->used);
	writer->used = 0;
}

static void
write_bytes(LaRunWriter *writer, const void *bytes, Size length)
{
	if (writer->used + length > writer->size)
	{
		write_out(writer);
		if (length > writer->size)
		{
			BufFileWrite(writer->file, unconstify(void *, bytes), length);
			return;
		}
	}
	memcpy(writer->buffer + writer->used, bytes, length);
	writer->used += length;
}

static uint8 *
put_length(uint8 *to, uint32 length)
{
	while (length >= 0x80)
	{
		*to++ = (uint8) (length | 0x80);
		length >>= 7;
	}
	*to++ = (uint8) length;
	return to;
}

void
la_run_write(LaRunWriter *writer, const LaMergedRow *row)
{
	uint8		header[MAX_HEADER];
	uint8	   *end = header;

	end = put_length(end, row->common);
	end = put_length(end, row->key_length - row->common);
	*end++ = (uint8) row->flags;
	write_bytes(writer, header, end - header);
	write_bytes(writer, row->tuple, IndexTupleSize(row->tuple));
	write_bytes(writer, row->key + row->common, row->key_length - row->common);
}

void
la_run_finish(LaRunWriter *writer)
{
	write_out(writer);
	pfree(writer->buffer);
	pfree(writer);
}

/* ---- reading ------------------------------------------------------------ */

/*
 * Have that many bytes at the buffer's position, or as many as there are.
 */
static bool
fill(LaMerge *merge, Source *s, Size wanted)
{
	Size		rest = s->filled - s->position;

	CHECK_FOR_INTERRUPTS();
	memmove(s->buffer, s->buffer + s->position, rest);
	s->position = 0;
	s->filled = rest + BufFileRead(s->file, s->buffer + rest,
								   merge->buffer - rest);
	return s->filled >= wanted;
}

static void
end_of_file(void)
{
	ereport(ERROR,
			(errcode_for_file_access(),
			 errmsg("unexpected end of a temporary file of an index build")));
}

static void
read_bytes(LaMerge *merge, Source *s, void *to, Size length)
{
	char	   *p = to;

	while (length > s->filled - s->position)
	{
		Size		part = s->filled - s->position;

		memcpy(p, s->buffer + s->position, part);
		s->position += part;
		p += part;
		length -= part;
		if (!fill(merge, s, 1))
			end_of_file();
	}
	memcpy(p, s->buffer + s->position, length);
	s->position += length;
}

static uint32
get_length(Source *s)
{
	uint32		length = 0;
	int			shift = 0;

	for (;;)
	{
		uint8		byte;

		if (s->position >= s->filled || shift > 28)
			end_of_file();
		byte = s->buffer[s->position++];
		length |= (uint32) (byte & 0x7f) << shift;
		if (byte < 0x80)
			return length;
		shift += 7;
	}
}

static void
make_room(LaMerge *merge, uint8 **area, Size *room, Size wanted)
{
	if (wanted <= *room)
		return;
	wanted = Max(wanted, 2 * *room);
	if (*area == NULL)
		*area = MemoryContextAllocHuge(merge->context, wanted);
	else
		*area = repalloc_huge(*area, wanted);
	*room = wanted;
}

static void
next_of_file(LaMerge *merge, Source *s)
{
	uint32		rest;
	IndexTupleData head;
	Size		size;

	if (s->filled - s->position < MAX_HEADER &&
		!fill(merge, s, MAX_HEADER) && s->filled == 0)
	{
		s->ended = true;
		return;
	}
	s->common = get_length(s);
	rest = get_length(s);
	if (s->position >= s->filled || s->common > s->key_length)
		end_of_file();
	s->flags = s->buffer[s->position++];

	read_bytes(merge, s, &head, sizeof(head));
	size = IndexTupleSize(&head);
	make_room(merge, (uint8 **) &s->tuple, &s->tuple_room, size);
	memcpy(s->tuple, &head, sizeof(head));
	read_bytes(merge, s, (char *) s->tuple + sizeof(head), size - sizeof(head));

	s->key_length = s->common + rest;
	make_room(merge, &s->key, &s->key_room, s->key_length);
	read_bytes(merge, s, s->key + s->common, rest);
}

static void
next_of_memory(Source *s)
{
	LaRow	   *row = s->next(s->arg);
	uint8	   *before = s->key;
	uint32		before_length = s->key_length;

	if (row == NULL)
	{
		s->ended = true;
		return;
	}
	s->key = la_row_key(row);
	s->key_length = row->key_length;
	s->flags = row->flags;
	s->tuple = la_row_tuple(row);
	s->common = la_common_prefix(s->key, s->key_length, before, before_length, 0);
}

static inline void
next_of_source(LaMerge *merge, Source *s)
{
	if (s->next != NULL)
		next_of_memory(s);
	else
		next_of_file(merge, s);
}

/* ---- merging ------------------------------------------------------------ */

LaMerge *
la_merge_create(int max_sources, Size buffer)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "pg_lookahead merge",
												  ALLOCSET_DEFAULT_SIZES);
	LaMerge    *merge = MemoryContextAllocZero(context, sizeof(LaMerge));

	merge->context = context;
	merge->max_sources = max_sources;
	/* a tuple's header and the lengths before it are read in one piece */
	merge->buffer = Max(buffer, 4 * MAX_HEADER);
	merge->sources = MemoryContextAllocZero(context, max_sources * sizeof(Source));
	merge->losers = MemoryContextAllocZero(context, max_sources * sizeof(int));
	return merge;
}

void
la_merge_add_file(LaMerge *merge, BufFile *file)
{
	Source	   *s = &merge->sources[merge->nsources++];

	Assert(merge->nsources <= merge->max_sources);
	s->file = file;
	s->buffer = MemoryContextAlloc(merge->context, merge->buffer);
}

void
la_merge_add_memory(LaMerge *merge, LaRowSource next, void *arg)
{
	Source	   *s = &merge->sources[merge->nsources++];

	Assert(merge->nsources <= merge->max_sources);
	s->next = next;
	s->arg = arg;
}

/*
 * Does a come before b?  Keeps I1: what the greater one shares with the lesser one
 * becomes its common length.
 */
static inline bool
is_before(Source *a, Source *b)
{
	uint32		common;

	if (a->ended || b->ended)
		return b->ended;
	if (a->common != b->common)
		return a->common > b->common;
	common = la_common_prefix(a->key, a->key_length, b->key, b->key_length,
							  a->common);
	/* a key's end would come before anything; I2 says that there is none here */
	if (common < b->key_length &&
		(common >= a->key_length || a->key[common] < b->key[common]))
	{
		b->common = common;
		return true;
	}
	a->common = common;
	return false;
}

/*
 * The tournament below a node; returns its winner.
 */
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
	merge->started = true;
	if (merge->nsources == 0)
		return;
	for (int i = 0; i < merge->nsources; i++)
		next_of_source(merge, &merge->sources[i]);
	merge->winner = play(merge, 1);
}

static void
advance(LaMerge *merge)
{
	int			winner = merge->winner;

	next_of_source(merge, &merge->sources[winner]);
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

bool
la_merge_next(LaMerge *merge, LaMergedRow *row)
{
	Source	   *s;

	if (!merge->started)
		start(merge);
	else if (merge->nsources > 0)
		advance(merge);
	if (merge->nsources == 0)
		return false;
	s = &merge->sources[merge->winner];
	if (s->ended)
		return false;
	row->tuple = s->tuple;
	row->key = s->key;
	row->key_length = s->key_length;
	row->common = s->common;
	row->flags = s->flags;
	return true;
}

void
la_merge_free(LaMerge *merge)
{
	MemoryContextDelete(merge->context);
}
