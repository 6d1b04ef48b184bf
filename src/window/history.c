/*
 * history.c
 *	  What earlier scans have learnt, for later ones: in all sessions, if there is shared memory.
 *
 * A scan learns from a few reads that they are waits; one of a dozen rows would be over by then.
 * So what it has learnt is kept for the next scans, in three tables:
 *
 *		of				what
 *		a tablespace	how long a read takes, and how many reads are waits; how long a read
 *						takes with no other in flight, for the statistics
 *		an index		are reads of its table waits; do scans begin with reads; is cache prefetch
 *						unhelpful; are reads of its own pages waits; has the last bitmap scan
 *						found all of these in shared buffers
 *		a scan of		how many visits it makes before it is left early, if it is
 *		a statement
 *
 * The verdict on an index counts more than that on its tablespace, as the operating system may
 * have cached one table and not another.  It is kept by index, not by table: rows that one index
 * finds scattered, another one may find side by side, where the kernel reads ahead.  An index is
 * smaller than its table, and may be cached where the table is not: so the verdict on reads of its
 * own pages, which bitmap scans make, is another one.
 *
 * A scan of a statement is identified by its index, its number in the plan, and the statement's
 * identifier, which is 0 unless the server computes it (compute_query_id).  Then statements of
 * the same shape may share an entry.
 *
 * Hints.  An entry is one atomic variable, and is read, changed and written back without a lock:
 * of changes at the same time, one may be lost.  Of keys with the same place in a table, the last
 * one has it.  Nothing is ever invalidated, since a wrong entry costs little: see EVIDENCE and
 * HISTORY in io_policy.c.  An entry is written only if it changes, as sessions that scan the same
 * index share the cache line.
 *
 * With shared_preload_libraries the tables are shared by all sessions, until the server stops.
 * Otherwise each session has its own, which DISCARD ALL clears (base/utility.c).
 *
 * src/window/history.c
 */
#include "postgres.h"

#include <math.h>

#include "common/hashfn.h"
#include "miscadmin.h"
#include "port/atomics.h"

#include "base/base.h"
#include "window/window.h"

#define INDEXES			1024
#define SCANS			1024
#define TABLESPACES		64

#define SHARE_MAX		127		/* of an average that is a share */
#define COLD_WEIGHT		4		/* scans over which shares are averaged */
#define WAITS_WEIGHT	8		/* reads, likewise */
#define READ_WEIGHT		16
#define READS_ENOUGH	8		/* timed in a tablespace before that is a
								 * verdict */
#define READS_MAX		31

#define SINGLE_WEIGHT	16		/* single reads over which they are averaged */
#define SINGLE_MAX		1000000.0	/* quarters of a microsecond */
#define DEVIATION_UNITS 32		/* to a factor of e */
#define DEVIATION_MAX	127
#define DEVIATION_MOST	0.3		/* a larger variance is one of outliers */
#define STANDARD		1.25	/* a standard deviation is so many mean ones */
#define TWO_SIGMA		2.0		/* 95% */

#define UNHELPFUL_SCANS	32
#define UNHELPFUL_STEP	8

#define TO_END_ENOUGH	4		/* scans in a row that were read to their end */
#define VISITS_MAX		(PG_UINT16_MAX / LA_SIXTEENTHS)

/*
 * Reads of an index or its table: a slow scan sets the highest level, a fast one the lowest, and
 * one that seems to be fast goes down by one.
 */
#define LEVEL_UNKNOWN	0
#define LEVEL_FAST		1
#define LEVEL_KNOWN		3		/* from here on they are known to be slow */
#define LEVEL_SLOW		5

typedef struct TablespaceEntry
{
	Oid			tablespace;
	uint32		quarter_us:20;	/* average of reads that were waits, or 0 */
	uint32		waits:7;		/* their share */
	uint32		reads:5;		/* timed so far, up to READS_MAX */
} TablespaceEntry;

typedef struct SingleReadEntry
{
	Oid			tablespace;
	uint32		quarter_us:20;	/* geometric average, or 0 */
	uint32		deviation:7;	/* mean of logarithms, 1/32ths */
	uint32		reads:5;		/* timed so far, up to READS_MAX */
} SingleReadEntry;

typedef struct IndexEntry
{
	uint32		key;			/* made of database and index */
	uint8		level:4;		/* of reads of the table: LEVEL_xxx */
	uint8		page_level:4;	/* of the index's own pages, likewise */
	uint8		cold;			/* share of scans that begin with reads */
	uint8		unhelpful;		/* scans that do not begin with a trial */
	bool		cached;			/* the last bitmap scan has read no page */
} IndexEntry;

typedef struct ScanEntry
{
	uint32		key;
	uint16		early_visits;	/* of those left early, 1/16ths, or 0 */
	uint8		to_end;			/* scans in a row that were not */
	uint8		unused;
} ScanEntry;

typedef union Entry
{
	uint64		bits;
	TablespaceEntry tablespace;
	SingleReadEntry single;
	IndexEntry	index;
	ScanEntry	scan;
} Entry;

StaticAssertDecl(sizeof(Entry) == sizeof(uint64), "an entry is not one atomic variable");

typedef struct History
{
	pg_atomic_uint64 tablespaces[TABLESPACES];
	pg_atomic_uint64 single_reads[TABLESPACES];
	pg_atomic_uint64 indexes[INDEXES];
	pg_atomic_uint64 scans[SCANS];
} History;

static History own;				/* of the session */
static History *history = &own; /* or that of all sessions */

/* An empty entry has key 0, and says that nothing is known. */
static Entry
read_entry(pg_atomic_uint64 *place, uint32 key)
{
	Entry		e = {.bits = pg_atomic_read_u64(place)};
	Entry		fresh = {.index = {.key = key}};

	return e.index.key == key ? e : fresh;
}

static void
write_entry(pg_atomic_uint64 *place, Entry e)
{
	if (pg_atomic_read_u64(place) != e.bits)
		pg_atomic_write_u64(place, e.bits);
}

static int
average(int share, bool belongs, int weight)
{
	return share + ((belongs ? SHARE_MAX : 0) - share) / weight;
}

/* ---- tablespaces ------------------------------------------------------------- */

static Entry
read_tablespace(Oid tablespace, pg_atomic_uint64 **place)
{
	/* 0 is the database's */
	Oid			key = OidIsValid(tablespace) ? tablespace : MyDatabaseTableSpace;

	*place = &history->tablespaces[murmurhash32(key) % TABLESPACES];
	return read_entry(*place, key);
}

/* How many microseconds does a single read take, if it is a wait?  0: not known. */
double
la_history_read_us(Oid tablespace)
{
	pg_atomic_uint64 *place;

	return read_tablespace(tablespace, &place).tablespace.quarter_us / 4.0;
}

/* A read that nothing had started before has taken so long. */
void
la_history_note_read(Oid tablespace, double us)
{
	pg_atomic_uint64 *place;
	Entry		e = read_tablespace(tablespace, &place);
	TablespaceEntry *t = &e.tablespace;
	bool		wait = us >= la_min_read_time * 1000.0;

	if (wait)
	{
		int			quarters = (int) Min(us * 4.0 + 1.0, 1000000.0);

		t->quarter_us = t->quarter_us == 0 ? quarters :
			(int) t->quarter_us + (quarters - (int) t->quarter_us) / READ_WEIGHT;
	}
	t->waits = t->reads == 0 ? (wait ? SHARE_MAX : 0) : average(t->waits, wait, WAITS_WEIGHT);
	t->reads = Min(t->reads + 1, READS_MAX);
	write_entry(place, e);
}

static Entry
read_single(Oid tablespace, pg_atomic_uint64 **place)
{
	Oid			key = OidIsValid(tablespace) ? tablespace : MyDatabaseTableSpace;

	*place = &history->single_reads[murmurhash32(key) % TABLESPACES];
	return read_entry(*place, key);
}

/*
 * A read has taken so long while this session had no other in flight.  The average is one of
 * logarithms: a few reads that took many times as long, as those of a server that has just started,
 * must not outweigh all others.
 */
void
la_history_note_single_read(Oid tablespace, double us)
{
	pg_atomic_uint64 *place;
	Entry		e = read_single(tablespace, &place);
	SingleReadEntry *s = &e.single;
	double		weight = Min(s->reads + 1, SINGLE_WEIGHT);
	double		average_log;
	double		difference;

	us = Max(us, 1.0);
	if (s->reads == 0)
		s->quarter_us = (uint32) Min(us * 4.0, SINGLE_MAX);
	average_log = log(s->quarter_us / 4.0);
	difference = log(us) - average_log;
	s->quarter_us = (uint32) Max(Min(rint(exp(average_log + difference / weight) * 4.0),
									 SINGLE_MAX), 1.0);
	s->deviation = (uint32) Min(rint(s->deviation + (fabs(difference) * DEVIATION_UNITS -
													 s->deviation) / weight),
								DEVIATION_MAX);
	s->reads = Min(s->reads + 1, READS_MAX);
	write_entry(place, e);
}

/*
 * How many such reads are known?  *us: how long one takes; *error_us: how uncertain that is, see
 * saving.c.
 */
int
la_history_single_read(Oid tablespace, double *us, double *error_us)
{
	pg_atomic_uint64 *place;
	Entry		e = read_single(tablespace, &place);
	int			reads = (int) e.single.reads;
	double		deviation = STANDARD * Max(e.single.deviation, 1) / DEVIATION_UNITS;

	/* the mean of values whose logarithms are normally distributed is larger */
	*us = e.single.quarter_us / 4.0 * exp(Min(deviation * deviation / 2.0, DEVIATION_MOST));
	*error_us = reads < 2 ? *us :
		*us * Min(TWO_SIGMA * deviation / sqrt(Min(reads, SINGLE_WEIGHT)), 1.0);
	return reads;
}

/* ---- indexes ----------------------------------------------------------------- */

static Entry
read_index(Oid index, pg_atomic_uint64 **place)
{
	uint32		key = hash_combine(murmurhash32(MyDatabaseId), murmurhash32(index));

	*place = &history->indexes[key % INDEXES];
	return read_entry(*place, key);
}

/* Is this a level of waits?  If it is unknown, are most reads in the tablespace? */
static bool
is_slow(int level, Oid tablespace)
{
	pg_atomic_uint64 *place;
	Entry		e;

	if (level != LEVEL_UNKNOWN)
		return level >= LEVEL_KNOWN;
	e = read_tablespace(tablespace, &place);
	return e.tablespace.reads >= READS_ENOUGH && e.tablespace.waits > SHARE_MAX / 2;
}

/* Are reads of the index's table waits? */
bool
la_history_known_slow(Oid index, Oid tablespace)
{
	pg_atomic_uint64 *place;

	return is_slow(read_index(index, &place).index.level, tablespace);
}

/* Are reads of the index's own pages waits? */
bool
la_history_pages_known_slow(Oid index, Oid tablespace)
{
	pg_atomic_uint64 *place;

	return is_slow(read_index(index, &place).index.page_level, tablespace);
}

/* Are reads of the index's table served by the operating system's cache? */
bool
la_history_known_fast(Oid index)
{
	pg_atomic_uint64 *place;

	return read_index(index, &place).index.level == LEVEL_FAST;
}

/* Has the last bitmap scan read no page of the index? */
bool
la_history_known_cached(Oid index)
{
	pg_atomic_uint64 *place;

	return read_index(index, &place).index.cached;
}

/* Are reads waits, and do scans of this index begin with them? */
bool
la_history_begins_cold(Oid index)
{
	pg_atomic_uint64 *place;
	Entry		e = read_index(index, &place);

	return e.index.level >= LEVEL_KNOWN && e.index.cold > SHARE_MAX / 2;
}

/* Did the last ones begin with reads, whatever these are? */
bool
la_history_begins_with_reads(Oid index)
{
	pg_atomic_uint64 *place;
	Entry		e = read_index(index, &place);

	return e.index.level != LEVEL_FAST && e.index.cold > SHARE_MAX / 2;
}

/*
 * Was cache prefetch not faster?  To be called once for each scan.  The next UNHELPFUL_SCANS scans
 * do not begin with another trial.  To be written less often, the entry is counted down by
 * UNHELPFUL_STEP in one of so many scans, chosen at random.
 */
bool
la_history_known_unhelpful(Oid index)
{
	static uint32 calls = 0;
	pg_atomic_uint64 *place;
	Entry		e = read_index(index, &place);

	if (e.index.unhelpful == 0)
		return false;
	if (murmurhash32((uint32) MyProcPid + ++calls) % UNHELPFUL_STEP == 0)
	{
		e.index.unhelpful -= Min(e.index.unhelpful, UNHELPFUL_STEP);
		write_entry(place, e);
	}
	return true;
}

/* The level after a scan with this verdict. */
static int
next_level(int level, LaIoVerdict reads)
{
	switch (reads)
	{
		case LA_READS_UNKNOWN:
			break;
		case LA_READS_SLOW:
			return LEVEL_SLOW;
		case LA_READS_FAST:
			return LEVEL_FAST;
		case LA_READS_SEEM_FAST:
			return Max(level - 1, LEVEL_FAST);
	}
	return level;
}

/* Keep what a scan that ends has learnt. */
void
la_history_note(Oid index, LaIoVerdict reads, LaCacheVerdict cache)
{
	pg_atomic_uint64 *place;
	Entry		e;

	if (reads == LA_READS_UNKNOWN && cache == LA_CACHE_UNKNOWN)
		return;
	e = read_index(index, &place);
	e.index.level = next_level(e.index.level, reads);
	if (cache != LA_CACHE_UNKNOWN)
		e.index.unhelpful = cache == LA_CACHE_NOT_FASTER ? UNHELPFUL_SCANS : 0;
	write_entry(place, e);
}

/* Keep what a scan has learnt of the index's own pages. */
void
la_history_note_pages(Oid index, LaIoVerdict reads)
{
	pg_atomic_uint64 *place;
	Entry		e = read_index(index, &place);

	e.index.page_level = next_level(e.index.page_level, reads);
	write_entry(place, e);
}

/* cached: a bitmap scan has read no page of the index. */
void
la_history_note_cached(Oid index, bool cached)
{
	pg_atomic_uint64 *place;
	Entry		e = read_index(index, &place);

	e.index.cached = cached;
	write_entry(place, e);
}

/* cold: a scan began with reads that look-ahead from its first visit on would have hidden. */
void
la_history_note_begin(Oid index, bool cold)
{
	pg_atomic_uint64 *place;
	Entry		e = read_index(index, &place);

	e.index.cold = average(e.index.cold, cold, COLD_WEIGHT);
	write_entry(place, e);
}

/* ---- scans of statements ------------------------------------------------------- */

/* What identifies a scan; query is 0 if that is not known. */
uint32
la_history_scan_of(Oid index, uint64 query, int node)
{
	uint32		key = hash_combine(murmurhash32(MyDatabaseId), murmurhash32(index));

	key = hash_combine(key, murmurhash32((uint32) query));
	key = hash_combine(key, murmurhash32((uint32) (query >> 32)));
	return hash_combine(key, murmurhash32((uint32) node));
}

LaHistoryDemand
la_history_demand(uint32 scan)
{
	Entry		e = read_entry(&history->scans[scan % SCANS], scan);
	LaHistoryDemand demand = {e.scan.early_visits, e.scan.to_end >= TO_END_ENOUGH};

	return demand;
}

/* The first scan of an execution has ended. */
void
la_history_note_demand(uint32 scan, int64 visits, bool ended_early)
{
	pg_atomic_uint64 *place = &history->scans[scan % SCANS];
	Entry		e = read_entry(place, scan);
	int32_t		sixteenths = (int32_t) Min(visits, VISITS_MAX) * LA_SIXTEENTHS;

	e.scan.early_visits = la_scan_length_early(e.scan.early_visits, sixteenths, ended_early);
	e.scan.to_end = ended_early ? 0 : Min(e.scan.to_end + 1, TO_END_ENOUGH);
	write_entry(place, e);
}

/* ---- the tables ---------------------------------------------------------------- */

static void
forget(void)
{
	la_shmem_init_counters(&own, sizeof(own));
}

void
la_history_init(void)
{
	forget();
	la_shmem_register("pg_lookahead history", sizeof(History), NULL, (void **) &history);
	la_utility_register(la_utility_resets_session, forget);
}
