/*
 * blockfiles.c
 *	  Files of a tablespace, open for direct reads.
 *
 * The largest files of relations, of whatever database, are opened for reading, since their data
 * lies where queries will read, and nothing has to be written.  If they are too small together, so
 * that the storage's own cache might answer, a temporary file is written.
 *
 * THE TEMPORARY FILE is made where the server's own are, with a name that the server removes when
 * it starts.  Its name is taken away as soon as it is open: whatever ends the statement, or the
 * process, closes the file, and that frees its space.  It has random contents, since a file system
 * or a device may not store what repeats itself.
 *
 * Descriptors are closed at the end of the (sub)transaction by the server, if not before.  A table
 * that is dropped or truncated meanwhile keeps its space until then, for some seconds.
 *
 * src/calibrate/blockfiles.c
 */
#include "postgres.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "commands/tablespace.h"
#include "common/file_utils.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/timestamp.h"

#include "calibrate/calibrate_int.h"

#define MEGABYTE		((int64) 1024 * 1024)
#define ENOUGH			(64 * MEGABYTE) /* of relations; else a temporary file */
#define TEMPORARY_SIZE	(128 * MEGABYTE)
#define CHUNK			MEGABYTE

/* What a temporary file has to leave free: a twentieth of the file system, within limits. */
#define MIN_RESERVE		(256 * MEGABYTE)
#define MAX_RESERVE		(4096 * MEGABYTE)

#define OPEN_FLAGS		(PG_BINARY | PG_O_DIRECT)

/* ---- where files are ------------------------------------------------------------ */

/* The directory that has a subdirectory for each database. */
static void
directory_of(Oid tablespace, char *path)
{
	TempTablespacePath(path, tablespace);
	*strrchr(path, '/') = '\0';
}

static bool
is_number(const char *name)
{
	return name[0] != '\0' && name[strspn(name, "0123456789")] == '\0';
}

/* Is it the main fork of a relation that is not temporary, or a later segment of it? */
static bool
is_relation_file(const char *name)
{
	size_t		digits = strspn(name, "0123456789");

	return digits > 0 && (name[digits] == '\0' ||
						  (name[digits] == '.' && is_number(name + digits + 1)));
}

/* Keep it if it belongs to the largest ones so far, which are in descending order. */
static void
consider(LaBlockFiles *files, const char *path)
{
	struct stat status;
	int64		blocks;
	int			place = files->nfiles;

	if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
		return;					/* dropped meanwhile */
	blocks = status.st_size / BLCKSZ;
	while (place > 0 && files->files[place - 1].blocks < blocks)
		place--;
	if (blocks == 0 || place == LA_MAX_FILES)
		return;
	files->nfiles = Min(files->nfiles + 1, LA_MAX_FILES);
	memmove(&files->files[place + 1], &files->files[place],
			(files->nfiles - 1 - place) * sizeof(LaBlockFile));
	files->files[place].fd = -1;
	files->files[place].blocks = blocks;
	snprintf(files->files[place].path, MAXPGPATH, "%s", path);
}

/* The largest files of a database's directory. */
static void
search_database(LaBlockFiles *files, const char *directory)
{
	DIR		   *dir = AllocateDir(directory);
	struct dirent *entry;
	char		path[MAXPGPATH * 2];

	while ((entry = ReadDirExtended(dir, directory, LOG)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (!is_relation_file(entry->d_name))
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		consider(files, path);
	}
	FreeDir(dir);
}

static void
search_tablespace(LaBlockFiles *files, const char *directory)
{
	DIR		   *dir = AllocateDir(directory);
	struct dirent *entry;
	char		path[MAXPGPATH * 2];

	while ((entry = ReadDir(dir, directory)) != NULL)
	{
		if (!is_number(entry->d_name))
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		search_database(files, path);
	}
	FreeDir(dir);
}

/* ---- opening them ---------------------------------------------------------------- */

static void
report_open_failure(const char *path)
{
	if (errno == EINVAL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("file \"%s\" cannot be opened for direct reads", path),
				 errdetail("Its file system does not support O_DIRECT.")));
	ereport(ERROR,
			(errcode_for_file_access(),
			 errmsg("could not open file \"%s\": %m", path)));
}

/* Open the files that were found; those that have been dropped meanwhile are left out. */
static void
open_found(LaBlockFiles *files)
{
	int			n = 0;

	for (int i = 0; i < files->nfiles; i++)
	{
		LaBlockFile *file = &files->files[i];

		file->fd = OpenTransientFile(file->path, O_RDONLY | OPEN_FLAGS);
		if (file->fd >= 0)
			files->files[n++] = *file;
		else if (errno != ENOENT)
			report_open_failure(file->path);
	}
	files->nfiles = n;
}

static bool
are_enough(const LaBlockFiles *files)
{
	int64		blocks = 0;

	for (int i = 0; i < files->nfiles; i++)
		blocks += files->files[i].blocks;
	return blocks >= ENOUGH / BLCKSZ;
}

/* ---- a temporary file ------------------------------------------------------------- */

/* Is there space, and the right to use it? */
static void
check_file_system(const char *directory)
{
	struct statvfs fs;
	int64		free,
				reserve;

	if (statvfs(directory, &fs) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not get the free space of \"%s\": %m", directory)));
	if (fs.f_flag & ST_RDONLY)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the file system of \"%s\" is read-only", directory),
				 errdetail("The tablespace has less than %d MB in files of relations, "
						   "so a temporary file would have to be written.",
						   (int) (ENOUGH / MEGABYTE))));
	free = (int64) fs.f_bavail * (int64) fs.f_frsize;
	reserve = (int64) fs.f_blocks * (int64) fs.f_frsize / 20;
	reserve = Max(MIN_RESERVE, Min(reserve, MAX_RESERVE));
	if (free < TEMPORARY_SIZE + reserve)
		ereport(ERROR,
				(errcode(ERRCODE_DISK_FULL),
				 errmsg("not enough free space for a temporary file in \"%s\"", directory),
				 errdetail("There are %lld MB free; the file has %d MB, "
						   "and %lld MB have to be left.",
						   (long long) (free / MEGABYTE), (int) (TEMPORARY_SIZE / MEGABYTE),
						   (long long) (reserve / MEGABYTE)),
				 errhint("A tablespace with tables of %d MB and more is measured "
						 "without a temporary file.",
						 (int) (ENOUGH / MEGABYTE))));
}

static void
fill(const LaBlockFile *file)
{
	char	   *unaligned = palloc(CHUNK + LA_DIRECT_ALIGNMENT);
	uint64	   *chunk = (uint64 *) TYPEALIGN(LA_DIRECT_ALIGNMENT, unaligned);
	pg_prng_state random;

	pg_prng_seed(&random, (uint64) GetCurrentTimestamp());
	for (int64 offset = 0; offset < TEMPORARY_SIZE; offset += CHUNK)
	{
		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < CHUNK / (int) sizeof(uint64); i++)
			chunk[i] = pg_prng_uint64(&random);
		errno = 0;
		if (pwrite(file->fd, chunk, CHUNK, offset) != CHUNK)
		{
			/* a short write is said to be for lack of space */
			if (errno == 0)
				errno = ENOSPC;
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not write temporary file \"%s\": %m", file->path)));
		}
	}
	if (fsync(file->fd) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not fsync temporary file \"%s\": %m", file->path)));
	pfree(unaligned);
}

static void
create_temporary(LaBlockFiles *files, Oid tablespace)
{
	LaBlockFile *file = &files->files[0];
	char		directory[MAXPGPATH];
	int			saved_errno;

	TempTablespacePath(directory, tablespace);
	if (MakePGDirectory(directory) < 0 && errno != EEXIST)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not create directory \"%s\": %m", directory)));
	snprintf(file->path, sizeof(file->path), "%s/%s%d.lookahead", directory,
			 PG_TEMP_FILE_PREFIX, MyProcPid);
	file->fd = OpenTransientFile(file->path, O_RDWR | O_CREAT | O_TRUNC | OPEN_FLAGS);
	saved_errno = errno;
	/* even a file that cannot be opened for direct reads has been created */
	unlink(file->path);
	errno = saved_errno;
	if (file->fd < 0)
		report_open_failure(file->path);
	file->blocks = TEMPORARY_SIZE / BLCKSZ;
	files->nfiles = 1;
	fill(file);
}

/* ---- all of it -------------------------------------------------------------------- */

/* Open files of the tablespace with at least ENOUGH blocks together, or fail. */
void
la_block_files_open(Oid tablespace, LaBlockFiles *files)
{
	char		directory[MAXPGPATH];
	struct stat status;

	directory_of(tablespace, directory);
	files->nfiles = 0;
	search_tablespace(files, directory);
	if (are_enough(files))
		open_found(files);
	if (!are_enough(files))
	{
		la_block_files_close(files);
		check_file_system(directory);
		create_temporary(files, tablespace);
	}
	if (fstat(files->files[0].fd, &status) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not stat file \"%s\": %m", files->files[0].path)));
	files->device = status.st_dev;
}

void
la_block_files_close(LaBlockFiles *files)
{
	for (int i = 0; i < files->nfiles; i++)
	{
		if (files->files[i].fd >= 0)
			CloseTransientFile(files->files[i].fd);
	}
	files->nfiles = 0;
}
