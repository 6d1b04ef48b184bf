/*
 * shmem.c
 *	  Shared memory, if the library is preloaded by the server: one pair of hooks for all rooms.
 *
 * Rooms register areas while the library is loaded, of a fixed size, or of one for each backend
 * that there can be.  There is shared memory only if that happens through
 * shared_preload_libraries, since a running backend cannot request any. Otherwise a room's
 * pointer to its area remains NULL, and the room does without.
 *
 * Most areas are structs of counters, that is, of atomic variables of 64 bits.  They begin as
 * zeros, and need no function for that.
 *
 * Hash tables are registered likewise.  Each has a lock, which the room that uses it takes.
 *
 * AddinShmemInitLock is held while areas are initialized.  After that no lock protects them: what
 * they hold are atomic variables, or belongs to a table and is protected by its lock.
 *
 * src/base/shmem.c
 */
#include "postgres.h"

#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "base/base.h"
#include "base/compat.h"

#define MAX_AREAS 16
#define MAX_TABLES 2
#define TRANCHE "pg_lookahead"

static struct
{
	const char *name;
	Size		size;
	bool		per_backend;	/* of each backend's part */
	void		(*init) (void *area);	/* NULL: counters */
	void	  **area;
}			areas[MAX_AREAS];
static int	nareas = 0;

static struct
{
	const char *name;
	int			max_entries;
	Size		key_size;
	Size		entry_size;
	LaShmemTable *table;
}			tables[MAX_TABLES];
static int	ntables = 0;

static void (*startup_function) (void) = NULL;
static bool preloaded = false;

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

/* MaxBackends is known when shared memory is requested, and not before. */
static Size
area_size(int i)
{
	return areas[i].per_backend ? mul_size(areas[i].size, MaxBackends) : areas[i].size;
}

static void
request_shmem(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	for (int i = 0; i < nareas; i++)
		RequestAddinShmemSpace(CACHELINEALIGN(area_size(i)));
	for (int i = 0; i < ntables; i++)
		RequestAddinShmemSpace(hash_estimate_size(tables[i].max_entries, tables[i].entry_size));
	if (ntables > 0)
		RequestNamedLWLockTranche(TRANCHE, ntables);
}

static void
startup_tables(void)
{
	LWLockPadded *locks = ntables > 0 ? GetNamedLWLockTranche(TRANCHE) : NULL;

	for (int i = 0; i < ntables; i++)
	{
		HASHCTL		info = {0};

		info.keysize = tables[i].key_size;
		info.entrysize = tables[i].entry_size;
		tables[i].table->hash = la_shmem_init_hash(tables[i].name, tables[i].max_entries,
												   &info, HASH_ELEM | HASH_BLOBS);
		tables[i].table->lock = &locks[i].lock;
	}
}

/* Counters that nobody else sees yet are set to zero. */
void
la_shmem_init_counters(void *area, Size size)
{
	pg_atomic_uint64 *counters = area;

	for (Size i = 0; i < size / sizeof(pg_atomic_uint64); i++)
		pg_atomic_init_u64(&counters[i], 0);
}

/* The same of counters that others may see.  What they add meanwhile may be lost. */
void
la_shmem_reset_counters(void *area, Size size)
{
	pg_atomic_uint64 *counters = area;

	for (Size i = 0; i < size / sizeof(pg_atomic_uint64); i++)
		pg_atomic_write_u64(&counters[i], 0);
}

static void
startup_shmem(void)
{
	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	for (int i = 0; i < nareas; i++)
	{
		bool		found;
		void	   *area = ShmemInitStruct(areas[i].name, area_size(i), &found);

		if (!found && areas[i].init == NULL)
			la_shmem_init_counters(area, area_size(i));
		else if (!found)
			areas[i].init(area);
		*areas[i].area = area;
	}
	startup_tables();
	LWLockRelease(AddinShmemInitLock);

	/* other processes attach to what there is */
	if (!IsUnderPostmaster && startup_function)
		startup_function();
}

static void
register_area(const char *name, Size size, bool per_backend, void (*init) (void *area),
			  void **area)
{
	if (nareas >= MAX_AREAS)
		elog(ERROR, "too many areas of shared memory registered");
	areas[nareas].name = name;
	areas[nareas].size = size;
	areas[nareas].per_backend = per_backend;
	areas[nareas].init = init;
	areas[nareas].area = area;
	nareas++;
}

/*
 * Have *area point to shared memory when the server has started.  init is called once, with the
 * uninitialized area; NULL if that has counters only.
 */
void
la_shmem_register(const char *name, Size size, void (*init) (void *area), void **area)
{
	register_area(name, size, false, init, area);
}

/* The same, of an array of MaxBackends elements. */
void
la_shmem_register_per_backend(const char *name, Size size, void (*init) (void *area),
							  void **area)
{
	register_area(name, size, true, init, area);
}

/* Have *table in shared memory when the server has started. */
void
la_shmem_register_table(const char *name, int max_entries, Size key_size, Size entry_size,
						LaShmemTable *table)
{
	if (ntables >= MAX_TABLES)
		elog(ERROR, "too many tables in shared memory registered");
	tables[ntables].name = name;
	tables[ntables].max_entries = max_entries;
	tables[ntables].key_size = key_size;
	tables[ntables].entry_size = entry_size;
	tables[ntables].table = table;
	ntables++;
}

/* To be called in the postmaster when shared memory is there, also after a crash. */
void
la_shmem_register_startup(void (*started) (void))
{
	Assert(startup_function == NULL);
	startup_function = started;
}

/* Was the library loaded when shared memory could be requested? */
bool
la_shmem_is_there(void)
{
	return preloaded;
}

/* For SQL functions, which cannot do without. */
void
la_shmem_require(void)
{
	if (!preloaded)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pg_lookahead must be loaded via \"shared_preload_libraries\""),
				 errhint("Set \"shared_preload_libraries = 'pg_lookahead'\" and restart "
						 "the server; pg_lookahead_last_statement() works without.")));
}

void
la_shmem_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	preloaded = true;
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_shmem;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = startup_shmem;
}
