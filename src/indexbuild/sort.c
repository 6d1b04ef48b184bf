/*
 * sort.c
 *	  Sorting the rows of an index that is being built.
 *
 * Stock sorts index tuples by comparison functions, with an abbreviated key that
 * covers the first column only: of rows that agree in it, nearly every comparison
 * takes both tuples apart.  Here each row has a key of bytes (normalizedkey.c), and the
 * sort (quicksort.c) looks at each of its bytes about once.
 *
 *		entries		[ word | row ] [ word | row ] [ word | row ] ...
 *		                     |              |
 *		chunks		[ row row row ... ] [ row row ... ]
 *
 * Behaviours
 *	A	Rows and entries take what the caller allows.  When it is used up, they are
 *		sorted and written as a run (run.c), and their memory is used again.
 *	B	So many runs of one level as memory has buffers for are merged into one of
 *		the next level.
 *	C	The last rows are merged from memory, not written.
 *	D	Rows of several processes: each one exports its runs in files that are
 *		shared, its last rows as a run too; the leader imports them.
 *	E	An index tuple is formed by the server's own code, in the place where the
 *		row stays, unless a value has to be compressed or fetched first.
 *	F	Where values are compressed so much that keys are several times as long as
 *		their tuples, or a row takes too much of the memory, no more rows are taken, if
 *		the caller allows it: text of 100 kB that differs in its first bytes took six
 *		times as long as stock (10,000 rows, 64 MB).
 *
 * Huge pages are not asked for: they made the sort 5% faster, and the scan, which
 * touches the memory first, 5 to 100% slower (clearing them; 5M rows, PostgreSQL 18).
 *
 * Invariants
 *	I1	Rows and entries take at most the limit or one row.  Not counted: the
 *		buffers of a merge and a row of each of its files (about a quarter of the limit,
 *		or what MIN_MERGE files need if that is more), and a page for each file that is
 *		open.
 *	I2	Rows come out in the order of their keys, and each as it was put.
 *
 * src/indexbuild/sort.c
 */
#include "postgres.h"

#include <limits.h>

#include "access/heaptoast.h"
#include "access/htup_details.h"
#include "access/itup.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "indexbuild/quicksort.h"
#include "indexbuild/sort.h"

#define MIN_CHUNK	((Size) 32 * 1024)
#define MAX_CHUNK	((Size) 4 * 1024 * 1024)
#define MIN_ENTRIES 512

/* a key is long if it is so many times the tuple */
#define LONG_KEY	4

/* what keys come to before that is judged */
#define LONG_KEYS_SAMPLE	((Size) 256 * 1024)

/* a row that takes more than this part of memory is too long, too */
#define LONG_ROW		32
#define MIN_LONG_ROW	((Size) 16 * 1024)

/* a run's share of memory while runs are merged */
#define MIN_BUFFER	((Size) BLCKSZ)
#define MAX_BUFFER	((Size) 128 * 1024)
#define MIN_MERGE	6
#define MAX_MERGE	500

/* where rows are longer than they should be */
#define LEAST_MERGE 2

typedef struct Run
{
	BufFile    *file;
	int			level;
	int			participant;	/* these two are its name, if it has one */
	int			number;
} Run;

struct LaSort
{
	MemoryContext context;
	MemoryContext scratch;		/* for what one row needs */
	TupleDesc	desc;
	int			ncompressible;	/* columns whose values may be too wide */
	int			compressible[INDEX_MAX_KEYS];
	LaNormalizedKey *key;
	bool		may_give_up;	/* because keys are long */
	bool		given_up;		/* a row had no key, or keys are long */
	bool		long_keys;
	Size		long_row;		/* this is one */
	Size		longest;		/* of all rows */
	Size		key_bytes;		/* of all rows, if there are such columns */
	Size		tuple_bytes;

	/* memory */
	Size		limit;
	Size		used;			/* by chunks and entries */
	Size		chunk_size;
	int			nchunks;
	int			max_chunks;
	int			chunk;			/* the one that is being filled */
	char	  **chunks;
	Size	   *chunk_sizes;
	char	   *next;			/* free space in it */
	char	   *end;
	Size		nentries;
	Size		max_entries;
	LaSortEntry *entries;

	/* runs */
	SharedFileSet *files;
	int			participant;
	int			nruns;
	int			max_runs;
	int			next_number;
	Run		   *runs;
	bool		spilled;

	/* on the way out */
	Size		position;
	LaRow	   *before;
	LaMerge    *merge;
};

/* ---- runs --------------------------------------------------------------- */

static void
file_name(char *name, int participant, int number)
{
	snprintf(name, MAXPGPATH, "la.%d.%d", participant, number);
}

static BufFile *
create_file(LaSort *sort, int number)
{
	char		name[MAXPGPATH];

	if (sort->files == NULL)
		return BufFileCreateTemp(false);
	file_name(name, sort->participant, number);
	return BufFileCreateFileSet(&sort->files->fs, name);
}

static void
drop_run(LaSort *sort, Run *run)
{
	char		name[MAXPGPATH];

	BufFileClose(run->file);
	if (sort->files == NULL)
		return;
	file_name(name, run->participant, run->number);
	BufFileDeleteFileSet(&sort->files->fs, name, false);
}

static void
rewind_run(Run *run)
{
	if (BufFileSeek(run->file, 0, 0, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not rewind a temporary file of an index build: %m")));
}

static void
add_run(LaSort *sort, BufFile *file, int level, int participant, int number)
{
	Run		   *run;

	if (sort->nruns == sort->max_runs)
	{
		sort->max_runs *= 2;
		sort->runs = repalloc(sort->runs, sort->max_runs * sizeof(Run));
	}
	run = &sort->runs[sort->nruns++];
	run->file = file;
	run->level = level;
	run->participant = participant;
	run->number = number;
}

/* how many runs are merged at a time: a merge has a row of each, in twice the room */
static int
merge_order(LaSort *sort)
{
	Size		order = sort->limit / 4 / (MIN_BUFFER + 2 * sort->longest);
	Size		least = sort->longest > sort->long_row ? LEAST_MERGE : MIN_MERGE;

	return (int) Max(least, Min(MAX_MERGE, order));
}

static Size
merge_buffer(LaSort *sort, int nsources)
{
	Size		share = sort->limit / 4 / Max(nsources, 1);

	return Max(MIN_BUFFER, Min(MAX_BUFFER, share));
}

/*
 * The newest runs of one level, as one of the next.
 */
static void
merge_runs(LaSort *sort, int nruns)
{
	Run		   *first = &sort->runs[sort->nruns - nruns];
	int			level = first->level;
	LaMerge    *merge = la_merge_create(nruns, merge_buffer(sort, nruns));
	int			number = sort->next_number++;
	BufFile    *file = create_file(sort, number);
	LaRunWriter *writer = la_run_create(file, merge_buffer(sort, nruns));
	LaMergedRow row;

	for (int i = 0; i < nruns; i++)
	{
		rewind_run(&first[i]);
		la_merge_add_file(merge, first[i].file);
	}
	while (la_merge_next(merge, &row))
		la_run_write(writer, &row);
	la_run_finish(writer);
	la_merge_free(merge);
	for (int i = 0; i < nruns; i++)
		drop_run(sort, &first[i]);
	sort->nruns -= nruns;
	add_run(sort, file, level + 1, sort->participant, number);
}

/*
 * Behaviour B.
 */
static void
merge_levels(LaSort *sort)
{
	for (;;)
	{
		int			level;
		int			n = 0;

		if (sort->nruns == 0)
			return;
		level = sort->runs[sort->nruns - 1].level;
		while (n < sort->nruns && sort->runs[sort->nruns - 1 - n].level == level)
			n++;
		if (n < merge_order(sort))
			return;
		merge_runs(sort, merge_order(sort));
	}
}

static void
sort_memory(LaSort *sort)
{
	la_sort_entries(sort->entries, sort->nentries, 0);
}

static LaRow *
next_in_memory(void *arg)
{
	LaSort	   *sort = arg;

	if (sort->position + LA_ROWS_AHEAD < sort->nentries)
	{
		char	   *ahead = (char *) sort->entries[sort->position + LA_ROWS_AHEAD].row;

		/* the key, and most often the tuple */
		__builtin_prefetch(ahead);
		__builtin_prefetch(ahead + 64);
		__builtin_prefetch(ahead + 128);
	}
	if (sort->position >= sort->nentries)
		return NULL;
	return sort->entries[sort->position++].row;
}

/*
 * Behaviour A.
 */
static void
spill(LaSort *sort)
{
	BufFile    *file;
	LaRunWriter *writer;
	LaMerge    *merge;
	LaMergedRow row;
	MemoryContext old;
	int			number;

	if (sort->nentries == 0)
		return;
	old = MemoryContextSwitchTo(sort->context);
	sort->spilled = true;
	sort_memory(sort);
	number = sort->next_number++;
	file = create_file(sort, number);
	writer = la_run_create(file, merge_buffer(sort, MIN_MERGE));
	/* a merge of one source: it tells what neighbours have in common */
	merge = la_merge_create(1, 0);
	sort->position = 0;
	la_merge_add_memory(merge, next_in_memory, sort);
	while (la_merge_next(merge, &row))
		la_run_write(writer, &row);
	la_merge_free(merge);
	la_run_finish(writer);
	add_run(sort, file, 0, sort->participant, number);

	sort->nentries = 0;
	sort->position = 0;
	sort->chunk = 0;
	sort->next = sort->chunks[0];
	sort->end = sort->next + sort->chunk_sizes[0];
	merge_levels(sort);
	MemoryContextSwitchTo(old);
}

/* ---- rows --------------------------------------------------------------- */

LaSort *
la_sort_begin(Relation index, LaNormalizedKey *key, Size memory, bool may_give_up,
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
			sort->compressible[sort->ncompressible++] = i;
	}
	sort->key = key;
	sort->may_give_up = may_give_up;
	sort->limit = memory;
	sort->long_row = Max(MIN_LONG_ROW, memory / LONG_ROW);
	sort->chunk_size = Max(MIN_CHUNK, Min(MAX_CHUNK, memory / 16));
	sort->chunk = -1;
	sort->max_chunks = 16;
	sort->chunks = palloc(sort->max_chunks * sizeof(char *));
	sort->chunk_sizes = palloc(sort->max_chunks * sizeof(Size));
	sort->max_entries = MIN_ENTRIES;
	sort->entries = palloc(sort->max_entries * sizeof(LaSortEntry));
	sort->used = sort->max_entries * sizeof(LaSortEntry);
	sort->files = files;
	sort->participant = participant;
	sort->max_runs = 16;
	sort->runs = palloc(sort->max_runs * sizeof(Run));
	MemoryContextSwitchTo(old);
	return sort;
}

static inline Size
room_left(const LaSort *sort)
{
	return sort->end - sort->next;
}

static void
free_chunks(LaSort *sort)
{
	for (int i = 0; i < sort->nchunks; i++)
	{
		sort->used -= sort->chunk_sizes[i];
		pfree(sort->chunks[i]);
	}
	sort->nchunks = 0;
}

/*
 * Have a chunk with room for a row of that size; some rows may go to a file.
 */
static void
next_chunk(LaSort *sort, Size size)
{
	Size		chunk_size = Max(sort->chunk_size, size);

	/* one that a spill has emptied */
	while (sort->chunk + 1 < sort->nchunks)
	{
		sort->chunk++;
		sort->next = sort->chunks[sort->chunk];
		sort->end = sort->next + sort->chunk_sizes[sort->chunk];
		if (room_left(sort) >= size)
			return;
	}
	if (sort->nentries > 0 && sort->used + chunk_size > sort->limit)
	{
		spill(sort);
		if (room_left(sort) < size)
			next_chunk(sort, size);
		return;
	}
	/* a spill has emptied all of them, and none has room for the row */
	if (sort->nentries == 0)
		free_chunks(sort);
	if (sort->nchunks == sort->max_chunks)
	{
		sort->max_chunks *= 2;
		sort->chunks = repalloc(sort->chunks,
								sort->max_chunks * sizeof(char *));
		sort->chunk_sizes = repalloc(sort->chunk_sizes,
									 sort->max_chunks * sizeof(Size));
	}
	sort->chunk = sort->nchunks;
	sort->chunk_sizes[sort->chunk] = chunk_size;
	sort->chunks[sort->chunk] = MemoryContextAllocHuge(sort->context, chunk_size);
	sort->nchunks++;
	sort->used += chunk_size;
	sort->next = sort->chunks[sort->chunk];
	sort->end = sort->next + chunk_size;
}

/*
 * Have room for another entry.
 */
static void
more_entries(LaSort *sort)
{
	Size		more = sort->max_entries;
	Size		room = 0;

	if (sort->limit > sort->used)
		room = (sort->limit - sort->used) / sizeof(LaSortEntry);

	/* what is left is shared with the rows: these take more than an entry */
	if (more > room / 2)
		more = room / 4;
	if (more < MIN_ENTRIES || more < sort->max_entries / 32)
	{
		spill(sort);
		return;
	}
	sort->max_entries += more;
	sort->entries = repalloc_huge(sort->entries,
								  sort->max_entries * sizeof(LaSortEntry));
	sort->used += more * sizeof(LaSortEntry);
}

/*
 * Can the tuple be formed in place?  Not if a value is stored outside of its row,
 * or would be compressed (index_form_tuple()).
 */
static inline bool
is_plain(LaSort *sort, const Datum *values, const bool *isnull)
{
	for (int i = 0; i < sort->ncompressible; i++)
	{
		int			column = sort->compressible[i];
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

/*
 * As index_form_tuple() would.
 */
static void
form_in_place(LaSort *sort, IndexTuple tuple, Size size, Size header,
			  Size data_size, const Datum *values, const bool *isnull,
			  bool has_null)
{
	uint16		mask = 0;

	memset(tuple, 0, size);
	heap_fill_tuple(sort->desc, unconstify(Datum *, values),
					unconstify(bool *, isnull), (char *) tuple + header,
					data_size, &mask,
					has_null ? (uint8 *) tuple + sizeof(IndexTupleData) : NULL);
	tuple->t_info = (uint16) size;
	if (has_null)
		tuple->t_info |= INDEX_NULL_MASK;
	if (mask & HEAP_HASVARWIDTH)
		tuple->t_info |= INDEX_VAR_MASK;
}

/*
 * Behaviour F.  Are keys so much longer than their tuples, whose values are compressed, that
 * stock is faster?  It compares the first bytes of most values, and carries them compressed.
 */
static inline bool
keys_are_long(LaSort *sort, Size key, Size tuple)
{
	Size		row = sizeof(LaRow) + key + LA_TID_LENGTH + tuple;

	sort->longest = Max(sort->longest, row);
	sort->key_bytes += key;
	sort->tuple_bytes += tuple;
	if (!sort->may_give_up)
		return false;
	return row > sort->long_row ||
		(key > LONG_KEY * tuple && sort->key_bytes > LONG_KEYS_SAMPLE &&
		 sort->key_bytes > LONG_KEY * sort->tuple_bytes);
}

/*
 * Take a row of the index: of a table's row at tid, live or not, with these
 * values.  Without a key for one of them, or with long keys (behaviour F), rows are
 * not taken any more.
 */
void
la_sort_put(LaSort *sort, ItemPointer tid, const Datum *values,
			const bool *isnull, bool alive)
{
	MemoryContext old;
	IndexTuple	formed = NULL;
	Size		tuple_size;
	Size		header = 0;
	Size		data_size = 0;
	bool		any_null = false;
	bool		key_null = false;
	Size		wanted;
	LaRow	   *row;
	int			length;
	uint8	   *p;
	BlockNumber block = ItemPointerGetBlockNumber(tid);
	OffsetNumber offset = ItemPointerGetOffsetNumber(tid);

	if (sort->given_up)
		return;
	old = MemoryContextSwitchTo(sort->scratch);
	for (int i = 0; i < sort->desc->natts; i++)
		any_null |= isnull[i];
	if (is_plain(sort, values, isnull))
	{
		data_size = heap_compute_data_size(sort->desc,
										   unconstify(Datum *, values),
										   unconstify(bool *, isnull));
		header = IndexInfoFindDataOffset(any_null ? INDEX_NULL_MASK : 0);
		tuple_size = MAXALIGN(header + data_size);
	}
	if (header == 0 || (tuple_size & INDEX_SIZE_MASK) != tuple_size)
	{
		/* this one is copied, or is the server's error */
		formed = index_form_tuple(sort->desc, unconstify(Datum *, values),
								  unconstify(bool *, isnull));
		tuple_size = IndexTupleSize(formed);
	}

	if (sort->nentries == sort->max_entries)
		more_entries(sort);

	/* most keys are not longer than their tuple */
	wanted = sizeof(LaRow) + 3 * tuple_size;
	for (;;)
	{
		Size		room = room_left(sort);

		if (room >= wanted)
		{
			Size		taken = sizeof(LaRow) + LA_TID_LENGTH + 8 + tuple_size;

			room = Min(room - taken, INT_MAX / 2);
			row = (LaRow *) sort->next;
			length = la_normkey_encode(sort->key, values, isnull,
									   la_row_key(row), (int) room, &key_null);
			if (length == LA_SORTKEY_GIVEN_UP)
			{
				sort->given_up = true;
				MemoryContextSwitchTo(old);
				return;
			}
			if ((Size) length <= room)
				break;
			wanted = taken + (Size) length;
		}
		if (room_left(sort) < wanted)
			next_chunk(sort, wanted);
	}

	if (sort->ncompressible > 0 && keys_are_long(sort, length, tuple_size))
	{
		sort->given_up = sort->long_keys = true;
		MemoryContextSwitchTo(old);
		return;
	}

	p = la_row_key(row) + length;
	*p++ = (uint8) (block >> 24);
	*p++ = (uint8) (block >> 16);
	*p++ = (uint8) (block >> 8);
	*p++ = (uint8) block;
	*p++ = (uint8) (offset >> 8);
	*p++ = (uint8) offset;
	row->key_length = length + LA_TID_LENGTH;
	while ((p - la_row_key(row)) % 8 != 0)
		*p++ = 0;
	row->flags = (alive ? 0 : LA_ROW_DEAD) | (key_null ? LA_ROW_NULL : 0);
	if (formed != NULL)
		memcpy(p, formed, tuple_size);
	else
		form_in_place(sort, (IndexTuple) p, tuple_size, header, data_size, values,
					  isnull, any_null);
	((IndexTuple) p)->t_tid = *tid;
	sort->next = (char *) p + tuple_size;

	sort->entries[sort->nentries].word = la_row_word(row, 0);
	sort->entries[sort->nentries].row = row;
	sort->nentries++;

	MemoryContextSwitchTo(old);
	MemoryContextReset(sort->scratch);
}

/* ---- several processes -------------------------------------------------- */

/* the file that lists a participant's runs */
#define LIST	(-1)

/*
 * Behaviour D: everything into files that another process can open.
 */
void
la_sort_export(LaSort *sort)
{
	BufFile    *list;

	spill(sort);
	list = create_file(sort, LIST);
	BufFileWrite(list, &sort->longest, sizeof(sort->longest));
	for (int i = 0; i < sort->nruns; i++)
	{
		Run		   *run = &sort->runs[i];

		BufFileWrite(list, &run->number, sizeof(run->number));
		BufFileExportFileSet(run->file);
		BufFileClose(run->file);
	}
	BufFileExportFileSet(list);
	BufFileClose(list);
	sort->nruns = 0;
}

/*
 * Take over what another process has exported.
 */
void
la_sort_import(LaSort *sort, int participant)
{
	MemoryContext old = MemoryContextSwitchTo(sort->context);
	FileSet    *files = &sort->files->fs;
	char		name[MAXPGPATH];
	BufFile    *list;
	Size		longest;
	int			number;

	file_name(name, participant, LIST);
	list = BufFileOpenFileSet(files, name, O_RDONLY, false);
	if (BufFileRead(list, &longest, sizeof(longest)) == sizeof(longest))
		sort->longest = Max(sort->longest, longest);
	while (BufFileRead(list, &number, sizeof(number)) == sizeof(number))
	{
		file_name(name, participant, number);
		add_run(sort, BufFileOpenFileSet(files, name, O_RDONLY, false), 0,
				participant, number);
	}
	BufFileClose(list);
	MemoryContextSwitchTo(old);
}

/* ---- the way out -------------------------------------------------------- */

/*
 * To the first row.
 */
void
la_sort_rewind(LaSort *sort)
{
	MemoryContext old = MemoryContextSwitchTo(sort->context);

	sort->position = 0;
	sort->before = NULL;
	if (sort->merge != NULL)
		la_merge_free(sort->merge);
	sort->merge = NULL;
	if (sort->nruns > 0)
	{
		sort->merge = la_merge_create(sort->nruns + 1,
									  merge_buffer(sort, sort->nruns));
		for (int i = 0; i < sort->nruns; i++)
		{
			rewind_run(&sort->runs[i]);
			la_merge_add_file(sort->merge, sort->runs[i].file);
		}
		la_merge_add_memory(sort->merge, next_in_memory, sort);
	}
	MemoryContextSwitchTo(old);
}

/*
 * There are no further rows: put them in order.
 */
void
la_sort_perform(LaSort *sort)
{
	MemoryContext old = MemoryContextSwitchTo(sort->context);
	int			order = merge_order(sort);

	sort_memory(sort);
	while (sort->nruns > order)
		merge_runs(sort, Min(order, sort->nruns - order + 1));
	MemoryContextSwitchTo(old);
	la_sort_rewind(sort);
}

static bool
next_merged(LaSort *sort, LaSortedRow *row)
{
	LaMergedRow merged;

	if (!la_merge_next(sort->merge, &merged))
		return false;
	row->tuple = merged.tuple;
	row->equal = merged.common >= merged.key_length - LA_TID_LENGTH;
	row->dead = (merged.flags & LA_ROW_DEAD) != 0;
	row->has_null = (merged.flags & LA_ROW_NULL) != 0;
	return true;
}

/*
 * The next row; false after the last one.
 */
bool
la_sort_next(LaSort *sort, LaSortedRow *row)
{
	LaRow	   *before = sort->before;
	LaRow	   *r;

	if (sort->merge != NULL)
		return next_merged(sort, row);
	r = next_in_memory(sort);
	if (r == NULL)
		return false;
	row->tuple = la_row_tuple(r);
	row->equal = before != NULL && before->key_length == r->key_length &&
		memcmp(la_row_key(before), la_row_key(r),
			   r->key_length - LA_TID_LENGTH) == 0;
	row->dead = (r->flags & LA_ROW_DEAD) != 0;
	row->has_null = (r->flags & LA_ROW_NULL) != 0;
	sort->before = r;
	return true;
}

/*
 * Was there a row whose key could not be had?  Then the sort is of no use.
 */
bool
la_sort_given_up(const LaSort *sort)
{
	return sort->given_up;
}

bool
la_sort_has_long_keys(const LaSort *sort)
{
	return sort->long_keys;
}

bool
la_sort_spilled(const LaSort *sort)
{
	return sort->spilled;
}

void
la_sort_end(LaSort *sort)
{
	if (sort->merge != NULL)
		la_merge_free(sort->merge);
	for (int i = 0; i < sort->nruns; i++)
		drop_run(sort, &sort->runs[i]);
	MemoryContextDelete(sort->context);
}
