/*
 * residency.c
 *	  Which share of a relation's blocks is in memory: shared buffers, or the operating system's
 *	  cache.
 *
 * A sample of up to SAMPLES blocks is looked up, at places that are always the same ones, so
 * that a plan does not change unless the contents of the caches do.  A relation of many files has
 * them in up to FILES of these.
 *
 * Nothing is read for it, no block is pinned, and neither cache changes.  In shared buffers a
 * block is looked up by its tag.  Of the system's cache, mincore() tells what is there of a file
 * that is mapped for the moment, but never touched.  It takes some 20 microseconds, and the result
 * is kept for a tenth of a second, as some statements have the same relations many times.
 *
 * Under direct I/O only shared buffers count.  Where the system has no mincore(), or it fails, the
 * share is not known.  Nor is it on ZFS, which has a cache of its own that mincore() does not see.
 *
 * Blocks that are not in a file yet, as it is shorter than was said, count neither way.
 *
 * src/plancost/residency.c
 */
#include "postgres.h"

#include <fcntl.h>
#ifdef __linux__
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>
#endif

#include "storage/fd.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "base/compat.h"
#include "plancost/plancost_int.h"
#include "window/window.h"

#define SAMPLES			32
#define FILES			4
#define KEPT			64
#define KEPT_US			100000

/* the least regular of sequences: multiples of the golden ratio */
#define GOLDEN_RATIO	0.6180339887498949

typedef struct Sample
{
	BlockNumber block;
	bool		resident;
	bool		missing;		/* behind the end of its file */
} Sample;

static struct
{
	Oid			relid;
	Oid			file;
	BlockNumber blocks;
	TimestampTz when;
	double		share;
}			kept[KEPT];

#ifdef __linux__

#define ZFS_MAGIC		0x2fc12fc1	/* no header of the system's has it */

/* Is what the file system has in memory what mincore() sees? */
static bool
has_page_cache(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && (uint32) fs.f_type != ZFS_MAGIC;
}

/*
 * Look up blocks of one file of the relation, of which nothing is known yet.  False: it cannot be
 * told.
 */
static bool
look_into_file(Relation rel, BlockNumber segment, Sample *samples, int n)
{
	char	   *path = la_relation_path(rel);
	char	   *name = segment == 0 ? path : psprintf("%s.%u", path, segment);
	long		page = sysconf(_SC_PAGESIZE);
	bool		known;
	int			fd;
	off_t		size;
	char	   *start = NULL;

	if (page <= 0 || (fd = OpenTransientFile(name, O_RDONLY | PG_BINARY)) < 0)
		return false;
	size = lseek(fd, 0, SEEK_END);
	known = size >= 0 && has_page_cache(fd);
	if (known && size > 0)
		start = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	CloseTransientFile(fd);
	if (start == MAP_FAILED)
		return false;
	for (int i = 0; i < n && known; i++)
	{
		off_t		at = (off_t) (samples[i].block % RELSEG_SIZE) * BLCKSZ;
		unsigned char there = 0;

		/* one page of the system's stands for the block */
		at -= at % page;
		samples[i].missing = !samples[i].resident && at >= size;
		if (samples[i].resident || samples[i].missing)
			continue;
		known = mincore(start + at, 1, &there) == 0;
		samples[i].resident = (there & 1) != 0;
	}
	if (start != NULL)
		munmap(start, size);
	return known;
}

#else

static bool
look_into_file(Relation rel, BlockNumber segment, Sample *samples, int n)
{
	return false;
}

#endif							/* __linux__ */

/* Look up blocks of one file, or all its blocks if they are few.  False: it cannot be told. */
static bool
look(Relation rel, BlockNumber segment, BlockNumber blocks, int wanted, int *resident, int *looked)
{
	Sample		samples[SAMPLES];
	int			n = (int) Min((BlockNumber) wanted, blocks);
	bool		all = (BlockNumber) n == blocks;

	for (int i = 0; i < n; i++)
	{
		double		place = (i + 0.5) * GOLDEN_RATIO;
		Buffer		recent;

		samples[i].block = segment * RELSEG_SIZE +
			(all ? (BlockNumber) i : (BlockNumber) ((place - (int) place) * blocks));
		samples[i].resident = la_issue_is_cached(rel, samples[i].block, &recent);
		samples[i].missing = false;
	}
	if (!la_direct_io() && !look_into_file(rel, segment, samples, n))
		return false;
	for (int i = 0; i < n; i++)
	{
		*resident += samples[i].resident;
		*looked += !samples[i].missing;
	}
	return true;
}

static double
share_of(Relation rel, BlockNumber blocks)
{
	BlockNumber segments = (blocks + RELSEG_SIZE - 1) / RELSEG_SIZE;
	int			files = (int) Min(segments, (BlockNumber) FILES);
	int			resident = 0,
				looked = 0;

	for (int i = 0; i < files; i++)
	{
		/* in the middle of each of so many parts of the relation */
		BlockNumber segment = (BlockNumber) ((i + 0.5) * segments / files);
		BlockNumber first = segment * RELSEG_SIZE;

		if (!look(rel, segment, Min(blocks - first, (BlockNumber) RELSEG_SIZE),
				  SAMPLES / files, &resident, &looked))
			return LA_RESIDENCY_UNKNOWN;
	}
	return looked == 0 ? 1.0 : (double) resident / looked;
}

/*
 * Which share of the relation's blocks, of which there are so many, is in memory?  It is not
 * a temporary one.
 */
double
la_residency(Relation rel, BlockNumber blocks)
{
	int			i = RelationGetRelid(rel) % KEPT;
	TimestampTz now = GetCurrentTimestamp();

	if (kept[i].relid != RelationGetRelid(rel) || kept[i].file != la_rel_file_number(rel) ||
		kept[i].blocks != blocks || now < kept[i].when || now - kept[i].when >= KEPT_US)
	{
		kept[i].relid = InvalidOid;
		kept[i].share = share_of(rel, blocks);
		kept[i].relid = RelationGetRelid(rel);
		kept[i].file = la_rel_file_number(rel);
		kept[i].blocks = blocks;
		kept[i].when = now;
	}
	return kept[i].share;
}
