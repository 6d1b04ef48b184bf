/*
 * runset.c
 *	  The runs of a sort, which are merged when there are many.
 *
 * When memory is full, its rows become a run of level 0.  When merge_order() runs of a level
 * exist, which is as many as memory has buffers for, they are merged into one of the next level.
 *
 * The runs of a parallel build's workers are in files that its processes share.  A worker exports
 * its runs, with a file that lists their numbers, and the leader imports them.  Files are named
 * la.PARTICIPANT.NUMBER.
 *
 * Invariants
 *	- A merge takes about a quarter of the sort's memory, for buffers and for one row of each
 *	  run; or what MIN_MERGE_ORDER runs need, if that is more.
 *	- Runs that were merged into another one are deleted, and all of them when the sort ends.
 *
 * src/indexbuild/runset.c
 */
#include "postgres.h"

#include "indexbuild/indexbuild_int.h"

/* A run's share of memory while runs are merged. */
#define MIN_BUFFER	((Size) BLCKSZ)
#define MAX_BUFFER	((Size) 128 * 1024)

/* How many runs are merged at a time: fewer only where there are long rows. */
#define MIN_MERGE_ORDER	6
#define MAX_MERGE_ORDER	500
#define MIN_MERGE_ORDER_OF_LONG_ROWS	2

/* The number of the file that lists a participant's runs. */
#define LIST	(-1)

typedef struct Run
{
	BufFile    *file;
	int			level;
	int			participant;	/* these two are the name of a shared file */
	int			number;
} Run;

struct LaRunSet
{
	Size		memory;			/* of the sort, bytes */
	Size		longest;		/* of its rows, bytes */
	SharedFileSet *files;		/* NULL: files are not shared */
	int			participant;
	int			next_number;
	int			nruns;
	int			max_runs;
	Run		   *runs;
};

/* Created in the current memory context, which must be current when runs are added or merged. */
LaRunSet *
la_runset_create(Size memory, SharedFileSet *files, int participant)
{
	LaRunSet   *set = palloc0(sizeof(LaRunSet));

	set->memory = memory;
	set->files = files;
	set->participant = participant;
	set->max_runs = 16;
	set->runs = palloc(set->max_runs * sizeof(Run));
	return set;
}

/* ---- files -------------------------------------------------------------- */

static const char *
file_name(int participant, int number)
{
	return psprintf("la.%d.%d", participant, number);
}

static BufFile *
create_file(LaRunSet *set, int number)
{
	if (set->files == NULL)
		return BufFileCreateTemp(false);
	return BufFileCreateFileSet(&set->files->fs, file_name(set->participant, number));
}

static BufFile *
open_file(LaRunSet *set, int participant, int number)
{
	return BufFileOpenFileSet(&set->files->fs, file_name(participant, number),
							  O_RDONLY, false);
}

static void
drop_run(LaRunSet *set, Run *run)
{
	BufFileClose(run->file);
	if (set->files != NULL)
		BufFileDeleteFileSet(&set->files->fs,
							 file_name(run->participant, run->number), false);
}

static void
append_run(LaRunSet *set, BufFile *file, int level, int participant, int number)
{
	Run		   *run;

	if (set->nruns == set->max_runs)
	{
		set->max_runs *= 2;
		set->runs = repalloc(set->runs, set->max_runs * sizeof(Run));
	}
	run = &set->runs[set->nruns++];
	run->file = file;
	run->level = level;
	run->participant = participant;
	run->number = number;
}

/* ---- merges ------------------------------------------------------------- */

/* How many runs are merged at a time?  A merge has a row of each, in up to twice its size. */
static int
merge_order(const LaRunSet *set)
{
	Size		order = set->memory / 4 / (MIN_BUFFER + 2 * set->longest);
	Size		least = set->longest > la_runset_long_row(set->memory) ?
		MIN_MERGE_ORDER_OF_LONG_ROWS : MIN_MERGE_ORDER;

	return (int) Max(least, Min(MAX_MERGE_ORDER, order));
}

static Size
merge_buffer(const LaRunSet *set, int nruns)
{
	Size		share = set->memory / 4 / Max(nruns, 1);

	return Max(MIN_BUFFER, Min(MAX_BUFFER, share));
}

static void
add_file(LaMerge *merge, Run *run)
{
	if (BufFileSeek(run->file, 0, 0, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not rewind a temporary file of an index build: %m")));
	la_merge_add_file(merge, run->file);
}

/* Write all rows of a merge to a file, and free the merge. */
static void
write_merge(LaMerge *merge, BufFile *file, Size buffer)
{
	LaRunWriter *writer = la_run_create(file, buffer);
	const LaRunTuple *row;

	while ((row = la_merge_next(merge)) != NULL)
		la_run_write(writer, row);
	la_run_finish(writer);
	la_merge_free(merge);
}

/* Merge the newest runs, which are of one level, into one of the next. */
static void
merge_newest(LaRunSet *set, int nruns)
{
	Run		   *first = &set->runs[set->nruns - nruns];
	int			level = first->level;
	Size		buffer = merge_buffer(set, nruns);
	LaMerge    *merge = la_merge_create(nruns, buffer);
	int			number = set->next_number++;
	BufFile    *file = create_file(set, number);

	for (int i = 0; i < nruns; i++)
		add_file(merge, &first[i]);
	write_merge(merge, file, buffer);
	for (int i = 0; i < nruns; i++)
		drop_run(set, &first[i]);
	set->nruns -= nruns;
	append_run(set, file, level + 1, set->participant, number);
}

/* While merge_order() runs of the newest run's level exist, merge them. */
static void
merge_levels(LaRunSet *set)
{
	int			order = merge_order(set);

	for (;;)
	{
		int			n = 0;

		while (n < set->nruns &&
			   set->runs[set->nruns - 1 - n].level == set->runs[set->nruns - 1].level)
			n++;
		if (n < order)
			return;
		merge_newest(set, order);
	}
}

/*
 * Add a run of all rows in memory, which are in order.  longest: no row that was added so
 * far takes more bytes.
 */
void
la_runset_add(LaRunSet *set, LaSortMemory *memory, Size longest)
{
	int			number = set->next_number++;
	BufFile    *file = create_file(set, number);
	LaMerge    *merge = la_merge_create(1, 0);

	/* a merge of one source, for the length of what neighbours share */
	la_merge_add_memory(merge, memory);
	write_merge(merge, file, merge_buffer(set, MIN_MERGE_ORDER));
	append_run(set, file, 0, set->participant, number);
	set->longest = Max(set->longest, longest);
	merge_levels(set);
}

/* Merge runs until all that are left can be merged at a time. */
void
la_runset_reduce(LaRunSet *set, Size longest)
{
	int			order;

	set->longest = Max(set->longest, longest);
	order = merge_order(set);
	while (set->nruns > order)
		merge_newest(set, Min(order, set->nruns - order + 1));
}

/* A merge of all runs, which may be none, and of the rows in memory. */
LaMerge *
la_runset_merge(LaRunSet *set, LaSortMemory *memory)
{
	LaMerge    *merge = la_merge_create(set->nruns + 1, merge_buffer(set, set->nruns));

	for (int i = 0; i < set->nruns; i++)
		add_file(merge, &set->runs[i]);
	la_merge_add_memory(merge, memory);
	return merge;
}

/* ---- several processes -------------------------------------------------- */

/* Leave all runs to another process. */
void
la_runset_export(LaRunSet *set)
{
	BufFile    *list = create_file(set, LIST);

	BufFileWrite(list, &set->longest, sizeof(set->longest));
	for (int i = 0; i < set->nruns; i++)
	{
		Run		   *run = &set->runs[i];

		BufFileWrite(list, &run->number, sizeof(run->number));
		BufFileExportFileSet(run->file);
		BufFileClose(run->file);
	}
	BufFileExportFileSet(list);
	BufFileClose(list);
	set->nruns = 0;
}

/* Add the runs that another process has exported. */
void
la_runset_import(LaRunSet *set, int participant)
{
	BufFile    *list = open_file(set, participant, LIST);
	Size		longest;
	int			number;

	if (BufFileRead(list, &longest, sizeof(longest)) == sizeof(longest))
		set->longest = Max(set->longest, longest);
	while (BufFileRead(list, &number, sizeof(number)) == sizeof(number))
		append_run(set, open_file(set, participant, number), 0, participant, number);
	BufFileClose(list);
}

/* Close and delete all files. */
void
la_runset_drop(LaRunSet *set)
{
	for (int i = 0; i < set->nruns; i++)
		drop_run(set, &set->runs[i]);
}
