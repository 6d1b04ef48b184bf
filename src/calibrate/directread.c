/*
 * directread.c
 *	  Reads that go to the device, many at a time, and what they take.
 *
 * Linux's asynchronous reads of files that were opened with O_DIRECT, by their system calls: there
 * is no other way to have so many of them in flight from one process on every kernel, and no
 * library is needed.  So many requests are kept in flight, each replaced when it ends:
 *
 *		free slots --- io_submit() --> in flight --- io_getevents() --> times --> free slots
 *
 * WARM-UP.  The rate counts from when as many requests have ended as are kept in flight, and a
 * tenth of the time is over: the first ones found an idle device.
 *
 * ENOUGH.  A pattern goes on for its time, and then until enough requests have ended for an
 * average, but not longer than MAX_TIMES of it.
 *
 * ORDER.  Random requests are a permutation of all there are: none is made twice before all have
 * been made, as the device may have a cache.  The permutation is a Feistel network over the next
 * power of four, whose results that are too large are permuted again.
 *
 * MEMORY.  Each request in flight has its own, though nobody looks at what is read: reads into the
 * same pages may hinder each other.  What is not used is address space only.
 *
 * INTERRUPTS are served at least ten times a second, with requests in flight.  The kernel writes
 * into the memory until these have ended: la_reader_destroy() waits for them, and only then is
 * the memory given back.  It must be called after an error, and before the process is taken down,
 * too, while what palloc() has given is still there.  The memory for reads is not from palloc(),
 * so that reads can in no case end in what others use by then.
 *
 * src/calibrate/directread.c
 */
#include "postgres.h"

#if defined(__linux__) && defined(__has_include)
#if __has_include(<linux/aio_abi.h>)
#define HAVE_ASYNCHRONOUS_READS 1
#endif
#endif

#ifdef HAVE_ASYNCHRONOUS_READS
#include <linux/aio_abi.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#endif

#include "common/hashfn.h"
#include "miscadmin.h"
#include "utils/wait_event.h"

#include "calibrate/calibrate_int.h"
#include "calibrate/curve.h"

#define LEAST_REQUESTS	24		/* for an average, and two for each in flight */
#define MAX_TIMES		4

#define WAIT_NS			100000000	/* for the end of a request */

#define LARGEST_REQUEST	(LA_MAX_REQUEST_BLOCKS * BLCKSZ)
#define MEMORY			((size_t) LA_MAX_DEPTH * LARGEST_REQUEST)

#ifdef HAVE_ASYNCHRONOUS_READS

typedef struct Slot
{
	struct iocb request;
	double		started_us;
	const char *path;
} Slot;

struct LaReader
{
	aio_context_t context;
	bool		has_context;
	const LaBlockFiles *files;
	char	   *memory;
	int64		next;			/* in the order of requests */
	int			in_flight;
	int			nfree;
	int			free[LA_MAX_DEPTH];
	Slot		slots[LA_MAX_DEPTH];
	struct io_event events[LA_MAX_DEPTH];
};

/* A pattern that is measured. */
typedef struct Run
{
	const LaReadPattern *pattern;
	int64		positions;		/* where a request can begin */
	double		begun_us;
	double		counted_from_us;	/* or 0, while it warms up */
	int64		ended;			/* requests, in all */
	LaTimes		times;			/* since counted_from_us */
} Run;

static double
now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

/* ---- the kernel ------------------------------------------------------------------ */

/* Pages of our own, which nothing else is ever placed in. */
static void
map_memory(LaReader *reader)
{
	char	   *memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
							  -1, 0);

	if (memory == MAP_FAILED)
	{
		la_reader_destroy(reader);
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("Reads of storage need %zu MB.", MEMORY / (1024 * 1024))));
	}
	reader->memory = memory;
}

/*
 * Prepare as many requests as there may be, or say why that cannot be done.  Nothing is left behind
 * by an error here.
 */
LaReader *
la_reader_create(void)
{
	LaReader   *reader = palloc0(sizeof(LaReader));

	for (int i = 0; i < LA_MAX_DEPTH; i++)
		reader->free[reader->nfree++] = i;
	if (syscall(SYS_io_setup, LA_MAX_DEPTH, &reader->context) == 0)
	{
		reader->has_context = true;
		map_memory(reader);
		return reader;
	}
	if (errno == EAGAIN)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("the system has no asynchronous reads left: %m"),
				 errhint("Raise the kernel's parameter fs.aio-max-nr.")));
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("the system does not allow asynchronous reads: %m"),
			 errdetail("Storage is measured with the system calls io_setup(), io_submit() and "
					   "io_getevents(), which containers may forbid.")));
	return NULL;				/* keep compilers quiet */
}

/* Wait for what is in flight, and give everything back.  May be called again. */
void
la_reader_destroy(LaReader *reader)
{
	if (reader->has_context)
	{
		reader->has_context = false;
		syscall(SYS_io_destroy, reader->context);
	}
	if (reader->memory != NULL)
	{
		munmap(reader->memory, MEMORY);
		reader->memory = NULL;
	}
}

void
la_reader_use(LaReader *reader, const LaBlockFiles *files)
{
	reader->files = files;
	reader->next = 0;
}

/* Start the requests in the last n free slots.  Returns how many the kernel has taken. */
static int
submit(LaReader *reader, int n)
{
	struct iocb *requests[LA_MAX_DEPTH];
	double		now = now_us();
	int			taken;

	for (int i = 0; i < n; i++)
	{
		Slot	   *slot = &reader->slots[reader->free[reader->nfree - 1 - i]];

		slot->started_us = now;
		requests[i] = &slot->request;
	}
	taken = (int) syscall(SYS_io_submit, reader->context, (long) n, requests);
	if (taken < 0 && errno != EAGAIN && errno != EINTR)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read file \"%s\": %m", reader->files->files[0].path)));
	taken = Max(taken, 0);
	reader->nfree -= taken;
	reader->in_flight += taken;
	return taken;
}

/* Fail unless a request has read what it was to read. */
static void
check_end(const Slot *slot, const struct io_event *event)
{
	if (event->res < 0)
	{
		errno = (int) -event->res;
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read file \"%s\": %m", slot->path)));
	}
	if (event->res != (int64) slot->request.aio_nbytes)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("file \"%s\" has become shorter while it was read", slot->path),
				 errhint("Measure again.")));
}

/* Wait for some requests to end; returns how many did, perhaps none. */
static int
reap(LaReader *reader)
{
	struct timespec timeout = {0, WAIT_NS};
	int			n;

	pgstat_report_wait_start(WAIT_EVENT_DATA_FILE_READ);
	n = (int) syscall(SYS_io_getevents, reader->context, 1L, (long) LA_MAX_DEPTH,
					  reader->events, &timeout);
	pgstat_report_wait_end();
	if (n < 0 && errno != EINTR)
		elog(ERROR, "could not wait for asynchronous reads: %m");
	CHECK_FOR_INTERRUPTS();
	n = Max(n, 0);
	for (int i = 0; i < n; i++)
	{
		int			place = (int) reader->events[i].data;

		reader->free[reader->nfree++] = place;
		reader->in_flight--;
		check_end(&reader->slots[place], &reader->events[i]);
	}
	return n;
}

/* ---- the order of requests ------------------------------------------------------- */

/* Where requests of so many blocks can begin, in all files. */
static int64
count_positions(const LaBlockFiles *files, int blocks)
{
	int64		positions = 0;

	for (int i = 0; i < files->nfiles; i++)
		positions += files->files[i].blocks / blocks;
	return positions;
}

/* The i-th of n numbers below n in random order. */
static int64
permuted(int64 i, int64 n)
{
	int			half_bits = 1;
	uint64		x = (uint64) i;

	while (((int64) 1 << (2 * half_bits)) < n)
		half_bits++;
	do
	{
		uint64		mask = ((uint64) 1 << half_bits) - 1;
		uint64		left = x >> half_bits,
					right = x & mask;

		for (uint32 round = 0; round < 4; round++)
		{
			uint64		old = right;

			right = left ^ (murmurhash32((uint32) right ^ (round * 0x9e3779b9)) & mask);
			left = old;
		}
		x = left << half_bits | right;
	} while ((int64) x >= n);
	return (int64) x;
}

/* Fill in the next request of a pattern. */
static void
prepare(LaReader *reader, const Run *run, int place)
{
	const LaReadPattern *pattern = run->pattern;
	const LaBlockFile *file = reader->files->files;
	Slot	   *slot = &reader->slots[place];
	int64		bytes = (int64) pattern->blocks * BLCKSZ;
	int64		position = reader->next++ % run->positions;

	if (!pattern->sequential)
		position = permuted(position, run->positions);
	while (position >= file->blocks / pattern->blocks)
	{
		position -= file->blocks / pattern->blocks;
		file++;
	}
	memset(&slot->request, 0, sizeof(slot->request));
	slot->path = file->path;
	slot->request.aio_data = (uint64) place;
	slot->request.aio_lio_opcode = IOCB_CMD_PREAD;
	slot->request.aio_fildes = (uint32) file->fd;
	slot->request.aio_buf = (uint64) (uintptr_t) (reader->memory + place * bytes);
	slot->request.aio_nbytes = (uint64) bytes;
	slot->request.aio_offset = position * bytes;
}

/* ---- measuring ------------------------------------------------------------------- */

/* Requests have ended just now. */
static void
count(LaReader *reader, Run *run, int n, double now)
{
	run->ended += n;
	if (run->counted_from_us == 0)
		return;
	for (int i = 0; i < n; i++)
		la_times_add(&run->times, now - reader->slots[reader->events[i].data].started_us);
}

static bool
is_warm(const Run *run, double now)
{
	double		share = (now - run->begun_us) / (run->pattern->seconds * 1e6);

	return (run->ended >= run->pattern->depth && share >= 0.1) || share >= 1.0;
}

static bool
is_over(const Run *run, double now)
{
	double		times = (now - run->counted_from_us) / (run->pattern->seconds * 1e6);
	int			enough = Max(LEAST_REQUESTS, 2 * run->pattern->depth);

	return run->counted_from_us != 0 && times >= 1.0 &&
		(run->times.count >= enough || (times >= MAX_TIMES && run->times.count > 0));
}

static void
conclude(const Run *run, double now, LaMeasured *result)
{
	result->requests_per_s = run->times.count * 1e6 / (now - run->counted_from_us);
	result->average_us = la_times_average(&run->times);
	result->median_us = la_times_quantile(&run->times, 0.5);
	result->p99_us = la_times_quantile(&run->times, 0.99);
}

/* Make requests of a pattern for some time. */
void
la_reader_measure(LaReader *reader, const LaReadPattern *pattern, LaMeasured *result)
{
	Run		   *run = palloc0(sizeof(Run));
	double		now;

	Assert(pattern->depth <= LA_MAX_DEPTH && pattern->blocks <= LA_MAX_REQUEST_BLOCKS);
	run->pattern = pattern;
	run->positions = count_positions(reader->files, pattern->blocks);
	run->begun_us = now = now_us();
	while (!is_over(run, now))
	{
		int			n = pattern->depth - reader->in_flight;

		for (int i = 0; i < n; i++)
			prepare(reader, run, reader->free[reader->nfree - 1 - i]);
		n = submit(reader, n);
		if (reader->in_flight == 0)
			pg_usleep(1000L);	/* the kernel lacks resources for now */
		if (run->counted_from_us == 0 && is_warm(run, now))
			run->counted_from_us = now;
		n = reap(reader);
		now = now_us();
		count(reader, run, n, now);
	}
	conclude(run, now, result);
	result->bytes = (run->ended + reader->in_flight) * pattern->blocks * BLCKSZ;
	while (reader->in_flight > 0)
		reap(reader);
	pfree(run);
}

#else							/* no HAVE_ASYNCHRONOUS_READS */

LaReader *
la_reader_create(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("storage cannot be measured on this platform"),
			 errdetail("It is measured with the asynchronous reads of Linux."),
			 errhint("On Linux, the library has to be compiled with the kernel's headers.")));
	return NULL;				/* keep compilers quiet */
}

void
la_reader_destroy(LaReader *reader)
{
}

void
la_reader_use(LaReader *reader, const LaBlockFiles *files)
{
}

void
la_reader_measure(LaReader *reader, const LaReadPattern *pattern, LaMeasured *result)
{
}

#endif							/* HAVE_ASYNCHRONOUS_READS */
