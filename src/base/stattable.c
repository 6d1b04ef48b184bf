/*
 * stattable.c
 *	  Cumulative statistics of statements and of indexes, in shared memory.
 *
 *		backend: sums of an execution --la_stattable_add()--> entry of a table --> views
 *
 * There are two tables, each with room for a number of entries that a setting limits.  When one
 * is full, the entries that were used least give way, a twentieth of them at a time, as in
 * pg_stat_statements: an entry's usage is the number of its executions, which decays at each such
 * time.
 *
 * Reasons why a node must not look ahead are constants of this library.  They are kept once, in
 * the order in which they first came, and an entry has a bit for each.
 *
 * Locking:
 *	- a table's lock, shared to look up an entry and exclusive to add or remove some;
 *	- the entry's mutex, to read or change its figures under the shared lock;
 *	- reasons are only added, under the exclusive lock of the first table; who has seen their
 *	  number may read so many without it.
 *
 * Errors.  la_stattable_add() is called while memory contexts are reset, perhaps after an error: it
 * allocates nothing and raises no error.
 *
 * Restarts.  statfile.c keeps the tables in a file from a clean shutdown to the next start.
 *
 * src/base/stattable.c
 */
#include "postgres.h"

#include <math.h>

#include "port/atomics.h"

#include "base/base.h"
#include "base/base_int.h"

#define REASON_SIZE		128
#define USAGE_FIRST		1.0
#define USAGE_DECAY		0.99
#define EVICTED_SHARE	20		/* one of so many entries gives way */
#define EVICTED_LEAST	10
#define USAGE_CLASSES	64		/* by powers of 2 */
#define CLASS_OF_ONE	16		/* of a usage from 1 to 2 */

typedef struct SharedReasons
{
	pg_atomic_uint32 n;
	char		names[LA_MAX_REASONS][REASON_SIZE];
} SharedReasons;

typedef struct SharedInfo
{
	pg_atomic_uint64 deallocated[LA_NUM_STAT_TABLES];
} SharedInfo;

static LaShmemTable tables[LA_NUM_STAT_TABLES];
static SharedReasons *reasons = NULL;
static SharedInfo *info = NULL;

static int
max_entries(LaStatTable which)
{
	return which == LA_STAT_STATEMENTS ? la_max_statements : la_max_indexes;
}

/* Is there shared memory, and room in it? */
bool
la_stattable_exists(LaStatTable which)
{
	return tables[which].hash != NULL && max_entries(which) > 0;
}

/* ---- eviction ------------------------------------------------------------------ */

static int
class_of(double usage)
{
	int			class = ilogb(Max(usage, 1e-6)) + CLASS_OF_ONE;

	return Max(Min(class, USAGE_CLASSES - 1), 0);
}

/* Remove the entries that were used least.  The table is locked. */
static void
evict(LaStatTable which)
{
	HTAB	   *hash = tables[which].hash;
	int64		in_class[USAGE_CLASSES] = {0};
	int64		wanted = Max(hash_get_num_entries(hash) / EVICTED_SHARE, EVICTED_LEAST);
	int64		found = 0;
	int			last = 0;
	HASH_SEQ_STATUS scan;
	LaStatEntry *entry;

	hash_seq_init(&scan, hash);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		entry->usage *= USAGE_DECAY;
		in_class[class_of(entry->usage)]++;
	}
	while (last < USAGE_CLASSES - 1 && found + in_class[last] < wanted)
		found += in_class[last++];

	/* all of the lower classes, and as many of the last one as are wanted */
	hash_seq_init(&scan, hash);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		int			class = class_of(entry->usage);

		if (class > last || (class == last && found >= wanted))
			continue;
		found += class == last;
		hash_search(hash, &entry->key, HASH_REMOVE, NULL);
		pg_atomic_fetch_add_u64(&info->deallocated[which], 1);
	}
}

/* The entry of a key, new if need be.  The table is locked.  NULL: there is no memory. */
static LaStatEntry *
enter(LaStatTable which, const LaStatKey *key)
{
	HTAB	   *hash = tables[which].hash;
	LaStatEntry *entry;
	bool		found;

	if (hash_search(hash, key, HASH_FIND, NULL) == NULL &&
		hash_get_num_entries(hash) >= max_entries(which))
		evict(which);
	entry = hash_search(hash, key, HASH_ENTER_NULL, &found);
	if (entry != NULL && !found)
	{
		memset(&entry->sums, 0, sizeof(entry->sums));
		SpinLockInit(&entry->mutex);
		entry->usage = USAGE_FIRST;
		entry->since = GetCurrentTimestamp();
	}
	return entry;
}

/* ---- entries --------------------------------------------------------------------- */

static void
add_sums(LaStatSums *to, const LaStatSums *sums)
{
	to->executions += sums->executions;
	to->blocks_read += sums->blocks_read;
	to->read_ns += sums->read_ns;
	to->reasons |= sums->reasons;
	for (int i = 0; i < LA_NUM_SHARED_COUNTERS; i++)
		to->c[i] += sums->c[i];
}

/* Add to the entry of a key. */
void
la_stattable_add(LaStatTable which, const LaStatKey *key, const LaStatSums *sums)
{
	LaShmemTable *table = &tables[which];
	LaStatEntry *entry;

	if (!la_stattable_exists(which))
		return;
	LWLockAcquire(table->lock, LW_SHARED);
	entry = hash_search(table->hash, key, HASH_FIND, NULL);
	if (entry == NULL)
	{
		LWLockRelease(table->lock);
		LWLockAcquire(table->lock, LW_EXCLUSIVE);
		entry = enter(which, key);
	}
	if (entry != NULL)
	{
		SpinLockAcquire(&entry->mutex);
		add_sums(&entry->sums, sums);
		entry->usage += (double) sums->executions;
		SpinLockRelease(&entry->mutex);
	}
	LWLockRelease(table->lock);
}

/* Remove the entries that match, or all of them. */
void
la_stattable_reset(LaStatTable which, bool (*matches) (const LaStatKey *, void *), void *arg)
{
	LaShmemTable *table = &tables[which];
	HASH_SEQ_STATUS scan;
	LaStatEntry *entry;

	if (table->hash == NULL)
		return;
	LWLockAcquire(table->lock, LW_EXCLUSIVE);
	hash_seq_init(&scan, table->hash);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		if (matches == NULL || matches(&entry->key, arg))
			hash_search(table->hash, &entry->key, HASH_REMOVE, NULL);
	}
	if (matches == NULL)
		pg_atomic_write_u64(&info->deallocated[which], 0);
	LWLockRelease(table->lock);
}

/*
 * A copy of all entries, in memory of the caller's context.  Returns their number.  locked: take
 * the locks, as other processes may use the table.
 */
int
la_stattable_copy(LaStatTable which, bool locked, LaStatEntry **entries)
{
	LaShmemTable *table = &tables[which];
	int			most = table->hash == NULL ? 0 : Max(max_entries(which), 0);
	HASH_SEQ_STATUS scan;
	LaStatEntry *entry;
	int			n = 0;

	*entries = palloc_extended(Max(most, 1) * sizeof(LaStatEntry), MCXT_ALLOC_HUGE);
	if (most == 0)
		return 0;
	if (locked)
		LWLockAcquire(table->lock, LW_SHARED);
	hash_seq_init(&scan, table->hash);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		if (n >= most)
		{
			hash_seq_term(&scan);
			break;
		}
		if (locked)
			SpinLockAcquire(&entry->mutex);
		(*entries)[n++] = *entry;
		if (locked)
			SpinLockRelease(&entry->mutex);
	}
	if (locked)
		LWLockRelease(table->lock);
	return n;
}

LaStatTableInfo
la_stattable_info(LaStatTable which)
{
	LaStatTableInfo result = {0};

	if (tables[which].hash == NULL)
		return result;
	LWLockAcquire(tables[which].lock, LW_SHARED);
	result.entries = hash_get_num_entries(tables[which].hash);
	LWLockRelease(tables[which].lock);
	result.max_entries = max_entries(which);
	result.deallocated = (int64) pg_atomic_read_u64(&info->deallocated[which]);
	return result;
}

/* ---- reasons ----------------------------------------------------------------------- */

static int
find_reason(const char *reason)
{
	int			n = (int) pg_atomic_read_u32(&reasons->n);

	pg_read_barrier();
	for (int i = 0; i < n; i++)
	{
		if (strncmp(reasons->names[i], reason, REASON_SIZE - 1) == 0)
			return i;
	}
	return -1;
}

/* The bit of a reason, or 0 if there is no place for another one. */
uint64
la_stattable_reason(const char *reason)
{
	LWLock	   *lock = tables[0].lock;
	int			i;

	if (reasons == NULL || lock == NULL)
		return 0;
	i = find_reason(reason);
	if (i < 0)
	{
		LWLockAcquire(lock, LW_EXCLUSIVE);
		i = find_reason(reason);
		if (i < 0 && pg_atomic_read_u32(&reasons->n) < LA_MAX_REASONS)
		{
			i = (int) pg_atomic_read_u32(&reasons->n);
			snprintf(reasons->names[i], REASON_SIZE, "%s", reason);
			pg_write_barrier();
			pg_atomic_write_u32(&reasons->n, (uint32) i + 1);
		}
		LWLockRelease(lock);
	}
	return i < 0 ? 0 : UINT64CONST(1) << i;
}

/* The names of these reasons.  Returns how many there are. */
int
la_stattable_reason_names(uint64 bits, const char **names, int most)
{
	int			known = reasons == NULL ? 0 : (int) pg_atomic_read_u32(&reasons->n);
	int			n = 0;

	pg_read_barrier();
	for (int i = 0; i < known; i++)
	{
		if ((bits & (UINT64CONST(1) << i)) != 0 && n < most)
			names[n++] = reasons->names[i];
	}
	return n;
}

/* ---- the start of the server, and its end -------------------------------------------- */

static void
init_reasons(void *area)
{
	pg_atomic_init_u32(&((SharedReasons *) area)->n, 0);
}

/*
 * Enter what was copied before the server stopped.  No other process sees the tables yet.  Reasons
 * have to be entered first, in their order, as the entry has their numbers.
 */
void
la_stattable_restore(LaStatTable which, const LaStatEntry *saved)
{
	LaStatEntry *entry;

	if (!la_stattable_exists(which))
		return;
	entry = enter(which, &saved->key);
	if (entry == NULL)
		return;
	entry->usage = saved->usage;
	entry->since = saved->since;
	entry->sums = saved->sums;
}

void
la_stattable_init(void)
{
	la_shmem_register("pg_lookahead reasons", sizeof(SharedReasons), init_reasons,
					  (void **) &reasons);
	la_shmem_register("pg_lookahead tables", sizeof(SharedInfo), NULL, (void **) &info);
	la_shmem_register_table("pg_lookahead statements", Max(la_max_statements, 1),
							sizeof(LaStatKey), sizeof(LaStatEntry),
							&tables[LA_STAT_STATEMENTS]);
	la_shmem_register_table("pg_lookahead indexes", Max(la_max_indexes, 1),
							sizeof(LaStatKey), sizeof(LaStatEntry), &tables[LA_STAT_INDEXES]);
}
