/*
 * storage.c
 *	  What reads cost on a tablespace's storage, by how many of them are in flight.
 *
 * calibrate/ measures it and sets it here.  Policies and the planner ask here, since they cannot
 * read the extension's table, which not every database has.
 *
 *		calibrate/ --- la_storage_set() --> an entry of a tablespace --> la_storage_get()
 *										|					^
 *										+--> the file ------+ when the server starts
 *
 * ENTRIES.  An entry is an array of atomic variables between two reads of a counter: it is odd
 * while the entry is written, and another one afterwards, so that a reader sees all values of one
 * calibration or tries again.  Readers take no lock.  Writers are rare, and take the lock under
 * which shared memory is initialized, which nobody else takes once the server has started.
 * Entries are never removed, since others may have been placed behind them; what has been forgotten
 * has times of 0.  The OID of a tablespace that is gone is not used again.
 *
 * NOT PRELOADED.  Then the session has entries of its own, which it takes from the file when it
 * first asks.  DISCARD ALL leaves them: they are of the storage, not of a client.
 *
 * THE FILE is in the directory of the server's own statistics.  It is replaced as a whole, so a
 * crash leaves the old one or the new one.  A file that is damaged, of another version or a copy
 * is removed, with a line in the log.  A copy is of another disk: a base backup has one, and it
 * is restored on other storage, or on another machine.  It is known by its inode, which the file
 * contains; a copy of the whole volume, block by block, has the same one and is not recognised.
 *
 * NOT CALIBRATED.  What a wait has taken so far (history.c) is then the time of a read at depth 1.
 * Nothing is known of other depths: that four reads in flight take as long as one, and that more
 * bring nothing, is true of nearly all storage, and so is that a sequential read costs a
 * sixteenth of it.  What the processor takes is not known.
 *
 * src/window/storage.c
 */
#include "postgres.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "catalog/pg_tablespace_d.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "port/pg_crc32c.h"
#include "storage/fd.h"
#include "storage/lwlock.h"

#include "base/base.h"
#include "window/window.h"

#define TABLESPACES		64

#define FILE_NAME		PGSTAT_STAT_PERMANENT_DIRECTORY "/pg_lookahead_storage.stat"
#define FILE_NAME_NEW	FILE_NAME ".tmp"
#define FILE_MAGIC		0x6c615374
#define FILE_VERSION	2

/* of an entry: random_us, sequential_us, extra_block_us, tuple_us */
#define VALUES			(LA_STORAGE_DEPTHS + 3)

/* times that an entry is read while another session writes it */
#define TRIES			100

/* without calibration */
#define DEPTH_USEFUL	4
#define SEQUENTIAL_SHARE 16

typedef struct Entry
{
	pg_atomic_uint32 changes;	/* odd: one is under way */
	pg_atomic_uint32 tablespace;	/* or 0 */
	pg_atomic_uint64 values[VALUES];	/* the bits of doubles */
} Entry;

typedef struct Table
{
	Entry		entries[TABLESPACES];
} Table;

typedef struct FileEntry
{
	Oid			tablespace;		/* or 0 */
	uint32		unused;
	double		values[VALUES];
} FileEntry;

typedef struct StorageFile
{
	uint32		magic;
	uint32		version;
	uint64		inode;			/* of the file itself */
	FileEntry	entries[TABLESPACES];
	pg_crc32c	crc;			/* of all before it */
} StorageFile;

static Table own;				/* of the session */
static Table *shared = NULL;
static bool own_is_loaded = false;

/* ---- entries ------------------------------------------------------------------- */

/*
 * The entry of a tablespace, or the one that it is to have; if that would be the 65th, another
 * one's.
 */
static Entry *
entry_of(Table *table, Oid tablespace)
{
	uint32		first = murmurhash32(tablespace);

	for (int i = 0; i < TABLESPACES; i++)
	{
		Entry	   *e = &table->entries[(first + i) % TABLESPACES];
		Oid			owner = pg_atomic_read_u32(&e->tablespace);

		if (owner == tablespace || !OidIsValid(owner))
			return e;
	}
	return &table->entries[first % TABLESPACES];
}

/* By one process at a time. */
static void
write_entry(Entry *e, Oid tablespace, const double *values)
{
	uint32		changes = pg_atomic_read_u32(&e->changes);

	pg_atomic_write_u32(&e->changes, changes + 1);
	pg_write_barrier();
	pg_atomic_write_u32(&e->tablespace, tablespace);
	for (int i = 0; i < VALUES; i++)
		pg_atomic_write_u64(&e->values[i], la_bits_of(values[i]));
	pg_write_barrier();
	pg_atomic_write_u32(&e->changes, changes + 2);
}

/* False: nothing is known of the tablespace. */
static bool
read_entry(Entry *e, Oid tablespace, double *values)
{
	for (int try = 0; try < TRIES; try++)
	{
		uint32		changes = pg_atomic_read_u32(&e->changes);
		Oid			owner;

		pg_read_barrier();
		owner = pg_atomic_read_u32(&e->tablespace);
		for (int i = 0; i < VALUES; i++)
			values[i] = la_double_of(pg_atomic_read_u64(&e->values[i]));
		pg_read_barrier();
		if (changes % 2 == 0 && pg_atomic_read_u32(&e->changes) == changes)
			return owner == tablespace && values[0] > 0;
	}
	return false;
}

static void
init_table(Table *table)
{
	for (int i = 0; i < TABLESPACES; i++)
	{
		Entry	   *e = &table->entries[i];

		pg_atomic_init_u32(&e->changes, 0);
		pg_atomic_init_u32(&e->tablespace, InvalidOid);
		for (int v = 0; v < VALUES; v++)
			pg_atomic_init_u64(&e->values[v], 0);
	}
}

/* ---- the file ------------------------------------------------------------------ */

static pg_crc32c
checksum(const StorageFile *file)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, file, offsetof(StorageFile, crc));
	FIN_CRC32C(crc);
	return crc;
}

static bool
values_are_valid(const double *values)
{
	for (int i = 0; i < VALUES; i++)
	{
		if (!isfinite(values[i]) || values[i] < 0 || (i < LA_STORAGE_DEPTHS && values[i] == 0))
			return false;
	}
	return true;
}

/* What is wrong with the contents of a file of that inode, or NULL. */
static const char *
defect_of(const StorageFile *file, ssize_t length, uint64 inode)
{
	if (length < (ssize_t) offsetof(StorageFile, inode) || file->magic != FILE_MAGIC)
		return "it is damaged";
	if (file->version != FILE_VERSION)
		return "it is of another version";
	if (length != sizeof(StorageFile) || checksum(file) != file->crc)
		return "it is damaged";
	if (file->inode != inode)
		return "it is a copy, and what it says may be of other storage";
	for (int i = 0; i < TABLESPACES; i++)
	{
		if (OidIsValid(file->entries[i].tablespace) &&
			!values_are_valid(file->entries[i].values))
			return "it is damaged";
	}
	return NULL;
}

/* Read the file into a table.  The lock is held. */
static void
load_table(Table *table)
{
	StorageFile file;
	struct stat status;
	ssize_t		length;
	const char *defect;
	int			fd = OpenTransientFile(FILE_NAME, O_RDONLY | PG_BINARY);

	if (fd < 0)
	{
		if (errno != ENOENT)
			ereport(LOG,
					(errcode_for_file_access(),
					 errmsg("could not open file \"%s\": %m", FILE_NAME)));
		return;
	}
	memset(&file, 0, sizeof(file));
	length = read(fd, &file, sizeof(file));
	if (length < 0 || fstat(fd, &status) != 0)
	{
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not read file \"%s\": %m", FILE_NAME)));
		CloseTransientFile(fd);
		return;
	}
	CloseTransientFile(fd);

	defect = defect_of(&file, status.st_size == length ? length : 0, (uint64) status.st_ino);
	if (defect != NULL)
	{
		ereport(LOG,
				(errmsg("removing file \"%s\": %s", FILE_NAME, defect),
				 errhint("Call pg_lookahead_calibrate() to measure the storage again.")));
		unlink(FILE_NAME);
		return;
	}
	for (int i = 0; i < TABLESPACES; i++)
	{
		const FileEntry *e = &file.entries[i];

		if (OidIsValid(e->tablespace))
			write_entry(entry_of(table, e->tablespace), e->tablespace, e->values);
	}
}

/* The contents that the file is to have; all bytes are set, as they are summed. */
static void
fill_file(StorageFile *file, Table *table, uint64 inode)
{
	memset(file, 0, sizeof(*file));
	file->magic = FILE_MAGIC;
	file->version = FILE_VERSION;
	file->inode = inode;
	for (int i = 0; i < TABLESPACES; i++)
	{
		Oid			tablespace = pg_atomic_read_u32(&table->entries[i].tablespace);
		FileEntry  *e = &file->entries[i];

		if (OidIsValid(tablespace) &&
			read_entry(&table->entries[i], tablespace, e->values))
			e->tablespace = tablespace;
	}
	file->crc = checksum(file);
}

/* Write the table into the open file.  False: errno says why not. */
static bool
write_contents(int fd, Table *table)
{
	StorageFile file;
	struct stat status;

	if (fstat(fd, &status) != 0)
		return false;
	fill_file(&file, table, (uint64) status.st_ino);
	errno = 0;
	if (write(fd, &file, sizeof(file)) == sizeof(file))
		return true;
	if (errno == 0)
		errno = ENOSPC;
	return false;
}

/* The lock is held.  A failure is a warning, since the calibration itself is there. */
static void
save_table(Table *table)
{
	int			fd = OpenTransientFile(FILE_NAME_NEW, O_WRONLY | O_CREAT | O_TRUNC | PG_BINARY);
	bool		written = fd >= 0 && write_contents(fd, table);

	if (!written)
		ereport(WARNING,
				(errcode_for_file_access(),
				 errmsg("could not write file \"%s\": %m", FILE_NAME_NEW),
				 errdetail("What has been measured is forgotten when the server stops.")));
	if (fd >= 0)
		CloseTransientFile(fd);
	if (written)
		(void) durable_rename(FILE_NAME_NEW, FILE_NAME, WARNING);
	else if (fd >= 0)
		unlink(FILE_NAME_NEW);
}

/* ---- what others ask --------------------------------------------------------- */

/* Where the session finds what is known. */
static Table *
table_of_session(void)
{
	if (shared != NULL)
		return shared;
	if (!own_is_loaded)
	{
		own_is_loaded = true;
		LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
		load_table(&own);
		LWLockRelease(AddinShmemInitLock);
	}
	return &own;
}

/*
 * Without shared memory, the file may say something else by now: others have measured, or forgotten
 * everything.  The lock is held.
 */
static void
reload(Table *table)
{
	init_table(table);
	load_table(table);
}

/* 0 is the database's.  What is shared by all databases lies beside pg_default. */
static Oid
resolve(Oid tablespace)
{
	if (!OidIsValid(tablespace))
		tablespace = MyDatabaseTableSpace;
	return tablespace == GLOBALTABLESPACE_OID ? DEFAULTTABLESPACE_OID : tablespace;
}

/* What may be assumed of storage of which only the time of a read is known; 0: not even that. */
static void
assume(LaStorage *storage, double read_us)
{
	for (int i = 0; i < LA_STORAGE_DEPTHS; i++)
		storage->random_us[i] = read_us / Min(1 << i, DEPTH_USEFUL);
	storage->sequential_us = read_us / SEQUENTIAL_SHARE;
	storage->extra_block_us = storage->sequential_us;
	storage->tuple_us = 0.0;
}

/*
 * What reads cost in a tablespace, 0 being the database's.  False: it has not been calibrated,
 * and the times are assumed, or 0.
 */
bool
la_storage_get(Oid tablespace, LaStorage *storage)
{
	double		values[VALUES];
	Oid			key = resolve(tablespace);

	if (!OidIsValid(key) || !read_entry(entry_of(table_of_session(), key), key, values))
	{
		assume(storage, la_history_read_us(tablespace));
		return false;
	}
	memcpy(storage->random_us, values, sizeof(storage->random_us));
	storage->sequential_us = values[LA_STORAGE_DEPTHS];
	storage->extra_block_us = values[LA_STORAGE_DEPTHS + 1];
	storage->tuple_us = values[LA_STORAGE_DEPTHS + 2];
	return true;
}

/* It has been measured.  All sessions know it from now on, and the server after a restart. */
void
la_storage_set(Oid tablespace, const LaStorage *storage)
{
	Table	   *table = table_of_session();
	double		values[VALUES];
	Oid			key = resolve(tablespace);

	memcpy(values, storage->random_us, sizeof(storage->random_us));
	values[LA_STORAGE_DEPTHS] = storage->sequential_us;
	values[LA_STORAGE_DEPTHS + 1] = storage->extra_block_us;
	values[LA_STORAGE_DEPTHS + 2] = storage->tuple_us;
	if (!values_are_valid(values))
		elog(ERROR, "invalid times of reads in tablespace %u", key);

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	if (shared == NULL)
		reload(table);
	write_entry(entry_of(table, key), key, values);
	save_table(table);
	LWLockRelease(AddinShmemInitLock);
}

/* Everything that was measured is out of date. */
void
la_storage_forget(void)
{
	static const double nothing[VALUES] = {0};
	Table	   *table = table_of_session();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	if (shared == NULL)
		reload(table);
	for (int i = 0; i < TABLESPACES; i++)
	{
		Oid			tablespace = pg_atomic_read_u32(&table->entries[i].tablespace);

		if (OidIsValid(tablespace))
			write_entry(&table->entries[i], tablespace, nothing);
	}
	save_table(table);
	LWLockRelease(AddinShmemInitLock);
}

static void
init_shared(void *area)
{
	init_table(area);
	load_table(area);
}

void
la_storage_init(void)
{
	init_table(&own);
	la_shmem_register("pg_lookahead storage", sizeof(Table), init_shared, (void **) &shared);
}
