/*
 * statfile.c
 *	  The statistics of statements and indexes, kept in a file while the server is down.
 *
 *		clean shutdown	--> pg_stat/pg_lookahead.stat --> next start, which removes the file
 *		crash, or immediate shutdown	--> no file; the statistics begin anew, as those of the
 *											server do
 *
 * The file is written under another name and renamed when it is complete.  A file that is damaged,
 * or of another release of the server or of this library, is removed with a LOG line.
 *
 *		header | reasons, in the order of their bits | entries of statements | ... of indexes | CRC
 *
 * src/base/statfile.c
 */
#include "postgres.h"

#include <unistd.h>

#include "catalog/pg_control.h"
#include "common/controldata_utils.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/pg_crc32c.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "utils/memutils.h"

#include "base/base.h"
#include "base/base_int.h"
#include "base/compat.h"

#define FILE_NAME	PGSTAT_STAT_PERMANENT_DIRECTORY "/pg_lookahead.stat"
#define FILE_FORMAT 0x4c410001	/* to be raised when LaStatEntry changes its
								 * meaning */

typedef struct FileHeader
{
	uint32		format;
	uint32		server;			/* LA_BUILT_VERSION_NUM / 100 */
	uint32		entry_size;
	uint32		nreasons;
	uint32		nentries[LA_NUM_STAT_TABLES];
} FileHeader;

/* An open file, and what has been read or written of it. */
typedef struct StatFile
{
	FILE	   *file;
	pg_crc32c	crc;
} StatFile;

static bool
put(StatFile *f, const void *data, Size size)
{
	COMP_CRC32C(f->crc, data, size);
	return size == 0 || fwrite(data, size, 1, f->file) == 1;
}

static bool
get(StatFile *f, void *data, Size size)
{
	if (fread(data, size, 1, f->file) != 1)
		return false;
	COMP_CRC32C(f->crc, data, size);
	return true;
}

/* ---- writing ----------------------------------------------------------------- */

static bool
put_reason(StatFile *f, const char *name)
{
	uint32		length = (uint32) strlen(name);

	return put(f, &length, sizeof(length)) && put(f, name, length);
}

static bool
put_all(StatFile *f)
{
	FileHeader	header = {
		.format = FILE_FORMAT,
		.server = LA_BUILT_VERSION_NUM / 100,
		.entry_size = sizeof(LaStatEntry)
	};
	const char *names[LA_MAX_REASONS];
	LaStatEntry *entries[LA_NUM_STAT_TABLES];
	bool		ok;

	header.nreasons = la_stattable_reason_names(PG_UINT64_MAX, names, LA_MAX_REASONS);
	for (int t = 0; t < LA_NUM_STAT_TABLES; t++)
		header.nentries[t] = la_stattable_copy((LaStatTable) t, false, &entries[t]);

	ok = put(f, &header, sizeof(header));
	for (uint32 i = 0; ok && i < header.nreasons; i++)
		ok = put_reason(f, names[i]);
	for (int t = 0; ok && t < LA_NUM_STAT_TABLES; t++)
		ok = put(f, entries[t], header.nentries[t] * sizeof(LaStatEntry));
	FIN_CRC32C(f->crc);
	return ok && fwrite(&f->crc, sizeof(f->crc), 1, f->file) == 1;
}

static void
complain(const char *what)
{
	ereport(LOG,
			(errcode_for_file_access(),
			 errmsg("could not %s file \"%s\": %m", what, FILE_NAME)));
}

/*
 * Has the server been shut down cleanly?  If it was not, as in an immediate shutdown, a process may
 * have ended in the middle of a change, and the next start is a recovery.
 */
static bool
is_shut_down(void)
{
	bool		crc_ok;
	ControlFileData *control = get_controlfile(DataDir, &crc_ok);

	return crc_ok && (control->state == DB_SHUTDOWNED ||
					  control->state == DB_SHUTDOWNED_IN_RECOVERY);
}

/* The postmaster ends.  No other process is left, so no lock is needed, or could be waited for. */
static void
save(int code, Datum arg)
{
	StatFile	f;
	bool		written;

	if (code != 0 || !la_save_statistics || !is_shut_down() ||
		!(la_stattable_exists(LA_STAT_STATEMENTS) || la_stattable_exists(LA_STAT_INDEXES)))
		return;
	INIT_CRC32C(f.crc);
	f.file = AllocateFile(FILE_NAME ".tmp", PG_BINARY_W);
	if (f.file == NULL)
	{
		complain("write");
		return;
	}
	written = put_all(&f);
	if (!written)
		complain("write");
	if (FreeFile(f.file) != 0 && written)
	{
		complain("write");
		written = false;
	}
	if (written)
		(void) durable_rename(FILE_NAME ".tmp", FILE_NAME, LOG);
	else
		unlink(FILE_NAME ".tmp");
}

/* ---- reading ------------------------------------------------------------------- */

static char *
get_reason(StatFile *f)
{
	uint32		length;
	char	   *name;

	if (!get(f, &length, sizeof(length)) || length == 0 || length > 1024)
		return NULL;
	name = palloc0(length + 1);
	return get(f, name, length) ? name : NULL;
}

/* Returns false if there is less in the file than it says. */
static bool
get_entries(StatFile *f, const FileHeader *header, LaStatEntry **entries)
{
	for (int t = 0; t < LA_NUM_STAT_TABLES; t++)
	{
		Size		size = header->nentries[t] * sizeof(LaStatEntry);

		entries[t] = palloc_extended(Max(size, 1), MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
		if (entries[t] == NULL || (size > 0 && !get(f, entries[t], size)))
			return false;
	}
	return true;
}

/* Is the file whole, and of this release?  Only then is anything taken from it. */
static bool
get_all(StatFile *f)
{
	FileHeader	header;
	char	   *names[LA_MAX_REASONS];
	LaStatEntry *entries[LA_NUM_STAT_TABLES];
	pg_crc32c	crc;

	if (!get(f, &header, sizeof(header)) || header.format != FILE_FORMAT ||
		header.server != LA_BUILT_VERSION_NUM / 100 || header.entry_size != sizeof(LaStatEntry) ||
		header.nreasons > LA_MAX_REASONS)
		return false;
	for (uint32 i = 0; i < header.nreasons; i++)
	{
		names[i] = get_reason(f);
		if (names[i] == NULL)
			return false;
	}
	if (!get_entries(f, &header, entries))
		return false;
	FIN_CRC32C(f->crc);
	if (fread(&crc, sizeof(crc), 1, f->file) != 1 || !EQ_CRC32C(crc, f->crc))
		return false;

	for (uint32 i = 0; i < header.nreasons; i++)
		(void) la_stattable_reason(names[i]);
	for (int t = 0; t < LA_NUM_STAT_TABLES; t++)
		for (uint32 i = 0; i < header.nentries[t]; i++)
			la_stattable_restore((LaStatTable) t, &entries[t][i]);
	return true;
}

/*
 * The postmaster starts: take over what the file has, and remove it, so that a later crash does not
 * bring back what is outdated by then.
 */
static void
load(void)
{
	MemoryContext context;
	MemoryContext old;
	StatFile	f;

	on_shmem_exit(save, (Datum) 0);
	(void) unlink(FILE_NAME ".tmp");
	f.file = AllocateFile(FILE_NAME, PG_BINARY_R);
	if (f.file == NULL)
	{
		if (errno != ENOENT)
			complain("read");
		return;
	}
	INIT_CRC32C(f.crc);
	context = AllocSetContextCreate(CurrentMemoryContext, "pg_lookahead file",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	if (la_save_statistics && !get_all(&f))
		ereport(LOG,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("ignoring invalid data in file \"%s\"", FILE_NAME)));
	FreeFile(f.file);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	(void) unlink(FILE_NAME);
}

void
la_statfile_init(void)
{
	la_shmem_register_startup(load);
}
