/*
 * slowdisk.c
 *	  A disk with the latency and the limits of a cloud volume, as a FUSE file.
 *
 *		slowdisk IMAGE MOUNTPOINT
 *
 * Mounts two files at MOUNTPOINT and serves them, in the foreground, until the
 * mount point is unmounted.  dev/slowdisk starts it, and attaches a loop device
 * to the first one:
 *
 *		disk	the bytes of IMAGE; what is written goes to IMAGE
 *		ctl		settings and counters
 *
 * Control.  A write to ctl is words name=value, separated by blanks or line
 * ends, of the settings below; those not named stay as they are, and without any
 * word all do.  A word that is wrong makes the write fail with EINVAL, and
 * nothing changes.  Every other write resets the counters.
 *
 *		latency_us			added to each read, at most 10 s
 *		write_latency_us	added to each write and flush, at most 10 s
 *		iops				reads and writes per second; 0: no limit
 *		mbps				of 10^6 bytes per second; 0: no limit
 *		eio_ppm				of a million reads, so many fail with EIO
 *		short_ppm			so many return a part of what they were asked for
 *		stall_ppm			so many take stall_us more
 *		stall_us			at most 60 s
 *		bad					BEGIN-END: a read of any byte from BEGIN to before END
 *							fails with EIO; a further range; none: no more ranges
 *
 * A read of ctl from its beginning gives a line name=value for each counter and
 * setting, as of that moment; it has to take them all at once (4096 bytes are
 * enough), for at any other offset the file is at its end.  Counters are of
 * requests answered since the last reset; mean_read_us is the time from a read's
 * arrival here to its answer, max_in_flight the most reads that were here at a
 * time, failed_reads those answered by an error, and bad the number of ranges.
 *
 * Faults.  Bad ranges are widened to blocks.  As on a disk, a read that touches
 * one fails as a whole; the pages of the page cache are then read one by one,
 * but for those that read-ahead has put into one folio.  So whoever reads a file
 * gets the error for the bad page, and a short read if a good one comes before it.  A read that is cut short ends at a block; the
 * loop device asks for the rest.  Only reads fail: a file system gives up after a
 * write that does.
 *
 * Time.  A request gets its deadline when it arrives: its turn, plus the
 * latency.  The turn is the first moment at which both buckets, of requests and
 * of bytes, have room.  A bucket is one number, the moment at which it has room
 * again: a request moves it on by its cost, and idle time is not saved up, so
 * there are no bursts.  Reads and writes share the buckets.  A request costs one
 * I/O for each 256 kB or part thereof, as the clouds count.  Then the image is
 * read or written at once, in the thread that has the request, and the answer is
 * held back until the deadline.  Being absolute, it takes in what the image
 * needed, and errors do not add up; an image that is slower than the deadline
 * makes the answer late.
 *
 * Invariants.
 *	- One lock guards settings, buckets and counters; nobody sleeps or does I/O
 *	  with it.
 *	- The image is open with O_DIRECT: a read here is a read of the device, and
 *	  the page cache holds the file system's pages only once.  Its size is fixed,
 *	  a multiple of BLOCK.  Reads are widened to blocks, writes must be blocks.
 *	- A write, flush or hole is answered when the image has answered it, and
 *	  errors are passed on.
 *	- No thread waits for memory that only writing to this disk can free
 *	  (PR_SET_IO_FLUSHER).
 *	- Only one process has the image (flock).
 *
 * There are no signal handlers: whatever ends the process makes the mounts on top
 * fail with I/O errors, and dev/slowdisk stop clears them away.
 *
 * dev/slowdisk.d/slowdisk.c
 */
#define _GNU_SOURCE
#define FUSE_USE_VERSION 312

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BLOCK		4096
#define IO_UNIT		(256 * 1024)	/* bytes that count as one I/O */
#define CTL_SIZE	4096		/* more than both directions need */
#define MAX_REQUEST	(1024 * 1024)	/* bytes in a request */
#define MAX_QUEUED	1024		/* requests that the kernel may have open */
#define THREADS		192			/* a loop device sends up to 128 at a time */

#define NS_PER_S	INT64_C(1000000000)
#define NS_PER_US	INT64_C(1000)

#define LATENCY_MAX	10000000
#define STALL_MAX	60000000
#define LIMIT_MAX	999999999
#define MILLION		1000000
#define MAX_BAD		1024		/* bad ranges */

/* inode numbers */
enum
{
	ROOT = FUSE_ROOT_ID,
	DISK,
	CTL
};

typedef struct File
{
	const char *name;
	fuse_ino_t	ino;
} File;

static const File files[] = {
	{".", ROOT}, {"..", ROOT}, {"disk", DISK}, {"ctl", CTL}
};

#define NFILES	(sizeof(files) / sizeof(files[0]))

/* bytes of the disk, whole blocks */
typedef struct Range
{
	int64_t		begin;
	int64_t		end;
} Range;

typedef struct Settings
{
	int64_t		latency_us;
	int64_t		write_latency_us;
	int64_t		iops;
	int64_t		mbps;
	int64_t		eio_ppm;
	int64_t		short_ppm;
	int64_t		stall_ppm;
	int64_t		stall_us;
	int			nbad;
	Range		bad[MAX_BAD];
} Settings;

typedef struct Name
{
	const char *name;
	size_t		offset;
	int64_t		max;
} Name;

static const Name names[] = {
	{"latency_us", offsetof(Settings, latency_us), LATENCY_MAX},
	{"write_latency_us", offsetof(Settings, write_latency_us), LATENCY_MAX},
	{"iops", offsetof(Settings, iops), LIMIT_MAX},
	{"mbps", offsetof(Settings, mbps), LIMIT_MAX},
	{"eio_ppm", offsetof(Settings, eio_ppm), MILLION},
	{"short_ppm", offsetof(Settings, short_ppm), MILLION},
	{"stall_ppm", offsetof(Settings, stall_ppm), MILLION},
	{"stall_us", offsetof(Settings, stall_us), STALL_MAX}
};

#define NNAMES	(sizeof(names) / sizeof(names[0]))

/* times are those of now() */
typedef struct Counters
{
	int64_t		since;
	int64_t		reads;
	int64_t		read_bytes;
	int64_t		read_ns;
	int64_t		failed_reads;
	int64_t		writes;
	int			max_in_flight;
} Counters;

/* What begin_read() has decided of a read. */
typedef struct Fate
{
	int64_t		deadline;
	bool		fails;
	bool		cut;			/* it ends early */
} Fate;

static int	image;
static off_t image_size;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* guarded by lock */
static Settings settings;
static Counters counters;
static int64_t iops_room;		/* when the bucket has room */
static int64_t mbps_room;
static int	in_flight;			/* reads */
static uint64_t dice = 88172645463325252;

static int64_t
max64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void
sleep_until(int64_t deadline)
{
	struct timespec t = {deadline / NS_PER_S, deadline % NS_PER_S};

	if (deadline <= now())
		return;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

/*
 * A block-aligned buffer of the current thread, kept for its next request.  The
 * threads live as long as the process.
 */
static char *
thread_buffer(size_t size)
{
	static _Thread_local char *buffer;
	static _Thread_local size_t capacity;

	if (size > capacity)
	{
		free(buffer);
		capacity = size > MAX_REQUEST + 2 * BLOCK ? size : MAX_REQUEST + 2 * BLOCK;
		buffer = aligned_alloc(BLOCK, (capacity + BLOCK - 1) / BLOCK * BLOCK);
		if (buffer == NULL)
			capacity = 0;
	}
	return buffer;
}

/* ---- the model ---------------------------------------------------------- */

/*
 * The turn of a request that arrives at this moment.  With the lock.
 */
static int64_t
take_turn(int64_t arrived, size_t size)
{
	int64_t		turn;

	iops_room = max64(iops_room, arrived);
	mbps_room = max64(mbps_room, arrived);
	turn = max64(iops_room, mbps_room);

	if (settings.iops > 0)
		iops_room += NS_PER_S * (int64_t) ((size + IO_UNIT - 1) / IO_UNIT) / settings.iops;
	if (settings.mbps > 0)
		mbps_room += (int64_t) size * 1000 / settings.mbps;
	return turn;
}

/*
 * True so many times in a million.  Xorshift: the same sequence in each run.
 * With the lock.
 */
static bool
chance(int64_t ppm)
{
	if (ppm == 0)
		return false;
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return (int64_t) (dice % MILLION) < ppm;
}

/*
 * Does a read touch a bad range?  With the lock.
 */
static bool
is_bad(off_t offset, size_t size)
{
	for (int i = 0; i < settings.nbad; i++)
	{
		if (offset < settings.bad[i].end && settings.bad[i].begin < offset + (off_t) size)
			return true;
	}
	return false;
}

static Fate
begin_read(int64_t arrived, size_t size, off_t offset)
{
	Fate		fate;

	pthread_mutex_lock(&lock);
	fate.deadline = take_turn(arrived, size) + settings.latency_us * NS_PER_US;
	if (chance(settings.stall_ppm))
		fate.deadline += settings.stall_us * NS_PER_US;
	fate.fails = is_bad(offset, size) || chance(settings.eio_ppm);
	fate.cut = size > BLOCK && chance(settings.short_ppm);
	in_flight++;
	if (in_flight > counters.max_in_flight)
		counters.max_in_flight = in_flight;
	pthread_mutex_unlock(&lock);
	return fate;
}

static void
end_read(int64_t arrived, size_t size, bool failed)
{
	pthread_mutex_lock(&lock);
	in_flight--;
	counters.reads++;
	counters.failed_reads += failed;
	counters.read_bytes += size;
	counters.read_ns += now() - arrived;
	pthread_mutex_unlock(&lock);
}

/* size 0: a flush, which does not count as an I/O */
static int64_t
begin_write(int64_t arrived, size_t size)
{
	int64_t		deadline;

	pthread_mutex_lock(&lock);
	deadline = size > 0 ? take_turn(arrived, size) : arrived;
	deadline += settings.write_latency_us * NS_PER_US;
	pthread_mutex_unlock(&lock);
	return deadline;
}

static void
end_write(void)
{
	pthread_mutex_lock(&lock);
	counters.writes++;
	pthread_mutex_unlock(&lock);
}

/* ---- the image ---------------------------------------------------------- */

/* All of it, or an error number. */
static int
image_read(char *buffer, size_t size, off_t offset)
{
	while (size > 0)
	{
		ssize_t		n = pread(image, buffer, size, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		if (n == 0)
			return EIO;			/* someone has cut the image short */
		buffer += n;
		size -= n;
		offset += n;
	}
	return 0;
}

static int
image_write(const char *buffer, size_t size, off_t offset)
{
	while (size > 0)
	{
		ssize_t		n = pwrite(image, buffer, size, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		if (n == 0)
			return EIO;
		buffer += n;
		size -= n;
		offset += n;
	}
	return 0;
}

static void
disk_read(fuse_req_t req, size_t size, off_t offset)
{
	int64_t		arrived = now();
	Fate		fate;
	off_t		begin;
	off_t		end;
	char	   *buffer;
	int			error = ENOMEM;

	if (offset >= image_size)
	{
		fuse_reply_buf(req, NULL, 0);
		return;
	}
	if ((off_t) size > image_size - offset)
		size = image_size - offset;

	fate = begin_read(arrived, size, offset);
	if (fate.cut)
		size = (size / 2 + BLOCK - 1) / BLOCK * BLOCK;
	begin = offset / BLOCK * BLOCK;
	end = (offset + (off_t) size + BLOCK - 1) / BLOCK * BLOCK;
	buffer = thread_buffer(end - begin);
	if (fate.fails)
		error = EIO;
	else if (buffer != NULL)
		error = image_read(buffer, end - begin, begin);
	sleep_until(fate.deadline);
	end_read(arrived, size, error != 0);

	if (error)
		fuse_reply_err(req, error);
	else
		fuse_reply_buf(req, buffer + (offset - begin), size);
}

static void
disk_write(fuse_req_t req, const char *data, size_t size, off_t offset)
{
	int64_t		deadline;
	char	   *buffer;
	int			error = ENOMEM;

	if (size % BLOCK != 0 || offset % BLOCK != 0)
	{
		fuse_reply_err(req, EINVAL);
		return;
	}
	if (offset > image_size || (off_t) size > image_size - offset)
	{
		fuse_reply_err(req, ENOSPC);
		return;
	}

	deadline = begin_write(now(), size);
	buffer = thread_buffer(size);
	if (buffer != NULL)
	{
		memcpy(buffer, data, size);
		error = image_write(buffer, size, offset);
	}
	sleep_until(deadline);
	end_write();

	if (error)
		fuse_reply_err(req, error);
	else
		fuse_reply_write(req, size);
}

/* ---- the control file --------------------------------------------------- */

/*
 * Digits, at most that many; returns what follows them, or NULL.
 */
static const char *
parse_number(const char *digits, size_t most, int64_t *value)
{
	size_t		ndigits = strspn(digits, "0123456789");

	if (ndigits < 1 || ndigits > most)
		return NULL;
	*value = strtoll(digits, NULL, 10);
	return digits + ndigits;
}

/*
 * The value of bad: a range, or "none".
 */
static bool
parse_bad(const char *value, Settings *result)
{
	Range		range;

	if (strcmp(value, "none") == 0)
	{
		result->nbad = 0;
		return true;
	}
	value = parse_number(value, 15, &range.begin);
	if (value == NULL || *value != '-')
		return false;
	value = parse_number(value + 1, 15, &range.end);
	if (value == NULL || *value != '\0')
		return false;
	if (result->nbad == MAX_BAD || range.end <= range.begin || range.end > image_size)
		return false;
	range.begin = range.begin / BLOCK * BLOCK;
	range.end = (range.end + BLOCK - 1) / BLOCK * BLOCK;
	result->bad[result->nbad++] = range;
	return true;
}

static bool
parse_word(const char *word, Settings *result)
{
	const char *equals = strchr(word, '=');
	size_t		length;

	if (equals == NULL)
		return false;
	length = equals - word;
	if (strncmp(word, "bad=", strlen("bad=")) == 0)
		return parse_bad(equals + 1, result);
	for (size_t i = 0; i < NNAMES; i++)
	{
		const char *rest;
		int64_t		value;

		if (strlen(names[i].name) != length || strncmp(names[i].name, word, length) != 0)
			continue;
		rest = parse_number(equals + 1, 9, &value);
		if (rest == NULL || *rest != '\0' || value > names[i].max)
			return false;
		memcpy((char *) result + names[i].offset, &value, sizeof(value));
		return true;
	}
	return false;
}

static void
ctl_write(fuse_req_t req, const char *data, size_t size)
{
	char		words[CTL_SIZE];
	char	   *rest = NULL;
	Settings	result;			/* 16 kB, less than a thread's stack */
	bool		valid = true;

	if (size >= sizeof(words) || memchr(data, '\0', size) != NULL)
	{
		fuse_reply_err(req, EINVAL);
		return;
	}
	memcpy(words, data, size);
	words[size] = '\0';

	pthread_mutex_lock(&lock);
	result = settings;
	for (char *word = strtok_r(words, " \t\r\n", &rest); word != NULL && valid;
		 word = strtok_r(NULL, " \t\r\n", &rest))
		valid = parse_word(word, &result);
	if (valid)
	{
		settings = result;
		iops_room = mbps_room = 0;
		counters = (Counters)
		{
			.since = now(),.max_in_flight = in_flight
		};
	}
	pthread_mutex_unlock(&lock);

	if (valid)
		fuse_reply_write(req, size);
	else
		fuse_reply_err(req, EINVAL);
}

static void
ctl_read(fuse_req_t req, size_t size, off_t offset)
{
	char		answer[CTL_SIZE];
	Settings	s;
	Counters	c;
	int			length;

	if (offset > 0)
	{
		fuse_reply_buf(req, NULL, 0);
		return;
	}
	pthread_mutex_lock(&lock);
	s = settings;
	c = counters;
	pthread_mutex_unlock(&lock);

	length = snprintf(answer, sizeof(answer),
					  "reads=%" PRId64 "\n"
					  "read_bytes=%" PRId64 "\n"
					  "failed_reads=%" PRId64 "\n"
					  "writes=%" PRId64 "\n"
					  "mean_read_us=%.1f\n"
					  "max_in_flight=%d\n"
					  "elapsed_s=%.3f\n"
					  "latency_us=%" PRId64 "\n"
					  "write_latency_us=%" PRId64 "\n"
					  "iops=%" PRId64 "\n"
					  "mbps=%" PRId64 "\n"
					  "eio_ppm=%" PRId64 "\n"
					  "short_ppm=%" PRId64 "\n"
					  "stall_ppm=%" PRId64 "\n"
					  "stall_us=%" PRId64 "\n"
					  "bad=%d\n",
					  c.reads, c.read_bytes, c.failed_reads, c.writes,
					  c.reads > 0 ? (double) c.read_ns / c.reads / NS_PER_US : 0.0,
					  c.max_in_flight, (double) (now() - c.since) / NS_PER_S,
					  s.latency_us, s.write_latency_us, s.iops, s.mbps,
					  s.eio_ppm, s.short_ppm, s.stall_ppm, s.stall_us, s.nbad);
	fuse_reply_buf(req, answer, (size_t) length < size ? (size_t) length : size);
}

/* ---- what FUSE calls ---------------------------------------------------- */

/* Nothing about the files changes, so the kernel need not ask again. */
#define ATTR_TIMEOUT	86400.0

static void
fill_stat(fuse_ino_t ino, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	st->st_ino = ino;
	st->st_nlink = ino == ROOT ? 2 : 1;
	st->st_mode = ino == ROOT ? S_IFDIR | 0700 : S_IFREG | 0600;
	st->st_blksize = BLOCK;
	if (ino == DISK)
	{
		st->st_size = image_size;
		st->st_blocks = image_size / 512;
	}
}

static void
op_init(void *userdata, struct fuse_conn_info *conn)
{
	(void) userdata;
	/* by default, 12 asynchronous requests are all that the kernel sends */
	conn->max_background = MAX_QUEUED;
	conn->congestion_threshold = MAX_QUEUED;
	conn->max_write = MAX_REQUEST;
	conn->want |= conn->capable & FUSE_CAP_ASYNC_DIO;
}

static void
op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param entry = {
		.attr_timeout = ATTR_TIMEOUT,.entry_timeout = ATTR_TIMEOUT
	};

	for (size_t i = 0; i < NFILES && parent == ROOT; i++)
	{
		if (files[i].ino == ROOT || strcmp(files[i].name, name) != 0)
			continue;
		entry.ino = files[i].ino;
		fill_stat(entry.ino, &entry.attr);
		fuse_reply_entry(req, &entry);
		return;
	}
	fuse_reply_err(req, ENOENT);
}

static void
op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat st;

	(void) fi;
	fill_stat(ino, &st);
	fuse_reply_attr(req, &st, ATTR_TIMEOUT);
}

/* Times are accepted and forgotten, and so is truncating ctl, as shells do. */
static void
op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int which,
		   struct fuse_file_info *fi)
{
	int			refused = FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID;

	if ((which & refused) != 0 ||
		((which & FUSE_SET_ATTR_SIZE) != 0 && ino != CTL && attr->st_size != image_size))
		fuse_reply_err(req, EPERM);
	else
		op_getattr(req, ino, fi);
}

static void
op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		   struct fuse_file_info *fi)
{
	char		entries[1024];
	size_t		used = 0;

	(void) ino;
	(void) fi;
	if (size > sizeof(entries))
		size = sizeof(entries);
	for (size_t i = offset; i < NFILES; i++)
	{
		struct stat st;
		size_t		needed;

		fill_stat(files[i].ino, &st);
		needed = fuse_add_direntry(req, entries + used, size - used, files[i].name, &st, i + 1);
		if (needed > size - used)
			break;
		used += needed;
	}
	fuse_reply_buf(req, entries, used);
}

static void
op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	if (ino == DISK && (fi->flags & O_TRUNC) != 0)
	{
		fuse_reply_err(req, EPERM);
		return;
	}
	fi->direct_io = 1;
	fuse_reply_open(req, fi);
}

static void
op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	(void) fi;
	if (ino == DISK)
		disk_read(req, size, offset);
	else
		ctl_read(req, size, offset);
}

static void
op_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset,
		 struct fuse_file_info *fi)
{
	(void) fi;
	if (ino == DISK)
		disk_write(req, data, size, offset);
	else
		ctl_write(req, data, size);
}

static void
op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	int			error = 0;

	(void) datasync;
	(void) fi;
	if (ino == DISK)
	{
		int64_t		deadline = begin_write(now(), 0);

		if (fdatasync(image) != 0)
			error = errno;
		sleep_until(deadline);
	}
	fuse_reply_err(req, error);
}

/* A discard, or writing zeroes; both leave the size alone. */
static void
op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
			 struct fuse_file_info *fi)
{
	(void) fi;
	if (ino != DISK || (mode != (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE) &&
						mode != (FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE)))
		fuse_reply_err(req, EOPNOTSUPP);
	else if (offset > image_size || length > image_size - offset)
		fuse_reply_err(req, ENOSPC);
	else
		fuse_reply_err(req, fallocate(image, mode, offset, length) == 0 ? 0 : errno);
}

static const struct fuse_lowlevel_ops operations = {
	.init = op_init,
	.lookup = op_lookup,
	.getattr = op_getattr,
	.setattr = op_setattr,
	.readdir = op_readdir,
	.open = op_open,
	.read = op_read,
	.write = op_write,
	.fsync = op_fsync,
	.fallocate = op_fallocate
};

/* ---- start -------------------------------------------------------------- */

static void
fail(const char *what, const char *why)
{
	fprintf(stderr, "slowdisk: %s: %s\n", what, why);
	exit(1);
}

static void
open_image(const char *path)
{
	struct stat st;

	image = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
	if (image < 0 && errno == EINVAL)
		fail(path, "its file system has no direct I/O");
	if (image < 0 || fstat(image, &st) != 0)
		fail(path, strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_size == 0 || st.st_size % BLOCK != 0)
		fail(path, "not a file of whole blocks of 4096 bytes");
	if (flock(image, LOCK_EX | LOCK_NB) != 0)
		fail(path, errno == EWOULDBLOCK ? "in use by another slowdisk" : strerror(errno));
	image_size = st.st_size;
}

int
main(int argc, char **argv)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	struct fuse_session *session;
	int			result;

	if (argc != 3)
	{
		fprintf(stderr, "usage: slowdisk IMAGE MOUNTPOINT\n");
		return 2;
	}

	/* what the caller has open (locks, pipes) is not ours to keep */
	close_range(STDERR_FILENO + 1, ~0U, 0);
	open_image(argv[1]);
	counters.since = now();

	/*
	 * Threads inherit these: wake up on time, and no waiting for writes to
	 * this disk when memory is short.  Where the kernel refuses, we do
	 * without.
	 */
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	prctl(PR_SET_IO_FLUSHER, 1UL, 0UL, 0UL, 0UL);
	mlockall(MCL_CURRENT);

	if (fuse_opt_add_arg(&args, argv[0]) != 0 ||
		fuse_opt_add_arg(&args, "-ofsname=slowdisk,subtype=slowdisk") != 0 ||
		config == NULL)
		fail(argv[2], "out of memory");
	session = fuse_session_new(&args, &operations, sizeof(operations), NULL);
	if (session == NULL || fuse_session_mount(session, argv[2]) != 0)
		fail(argv[2], "cannot be mounted");

	fuse_loop_cfg_set_clone_fd(config, 1);
	fuse_loop_cfg_set_max_threads(config, THREADS);
	fuse_loop_cfg_set_idle_threads(config, THREADS);
	result = fuse_session_loop_mt(session, config);

	fuse_session_unmount(session);
	fuse_session_destroy(session);
	fuse_loop_cfg_destroy(config);
	fuse_opt_free_args(&args);
	return result == 0 ? 0 : 1;
}
