/*
 * base_int.h
 *	  What the files of this room share.
 *
 * src/base/base_int.h
 */
#ifndef LA_BASE_INT_H
#define LA_BASE_INT_H

#include "storage/spin.h"
#include "utils/timestamp.h"

#include "base/base.h"

/* ---- statfile ---- */

extern void la_statfile_init(void);

/* ---- stattable: cumulative statistics of statements and of indexes, in shared memory ---- */

typedef enum LaStatTable
{
	LA_STAT_STATEMENTS,
	LA_STAT_INDEXES
} LaStatTable;

#define LA_MAX_REASONS 64		/* a bit for each, see LaStatSums */

#define LA_NUM_STAT_TABLES (LA_STAT_INDEXES + 1)

/* Of a statement, or of an index.  Compared as bytes, so it has to be zeroed first. */
typedef struct LaStatKey
{
	Oid			dbid;
	Oid			userid;			/* statements */
	Oid			heaprelid;		/* indexes */
	Oid			indexrelid;
	int64		queryid;		/* statements */
	bool		toplevel;
} LaStatKey;

/* What is added to an entry, and what it holds. */
typedef struct LaStatSums
{
	int64		executions;		/* of the statement, or of a node */
	int64		blocks_read;
	int64		read_ns;		/* as the server has measured it */
	uint64		reasons;		/* a bit for each, see la_stattable_reason() */
	int64		c[LA_NUM_SHARED_COUNTERS];
} LaStatSums;

typedef struct LaStatEntry
{
	LaStatKey	key;			/* must be first */
	slock_t		mutex;			/* protects all below */
	double		usage;
	TimestampTz since;
	LaStatSums	sums;
} LaStatEntry;

/* Figures of a table as a whole. */
typedef struct LaStatTableInfo
{
	int64		entries;
	int64		max_entries;
	int64		deallocated;
} LaStatTableInfo;

extern void la_stattable_init(void);
extern bool la_stattable_exists(LaStatTable which);
extern void la_stattable_add(LaStatTable which, const LaStatKey *key, const LaStatSums *sums);
extern void la_stattable_reset(LaStatTable which, bool (*matches) (const LaStatKey *, void *),
							   void *arg);
extern int	la_stattable_copy(LaStatTable which, bool locked, LaStatEntry **entries);
extern void la_stattable_restore(LaStatTable which, const LaStatEntry *saved);
extern LaStatTableInfo la_stattable_info(LaStatTable which);
extern uint64 la_stattable_reason(const char *reason);
extern int	la_stattable_reason_names(uint64 reasons, const char **names, int most);

#endif							/* LA_BASE_INT_H */
