/*
 * history.c
 *	  What earlier scans of an index have learnt, for later ones of the session.
 *
 * A scan learns from a few reads that they are waits; one of a dozen rows would be over by then.
 * So the verdict is kept for the next scan.  It is kept by index, not by table: rows that one
 * index finds scattered, another one may find side by side, where the kernel reads ahead.
 *
 *		index OID ---(modulo)---> one entry of SIZE: { index, slow?, fast?, cached?, unhelpful? }
 *
 * Where a bitmap scan has read no page of the index, the next one expects the same.
 *
 * Where a trial of cache prefetch was not faster, the next UNHELPFUL_SCANS scans do not begin
 * with another one.
 *
 * The last verdict counts, and two indexes that share an entry overwrite each other's.  A wrong
 * verdict costs little (EVIDENCE and HISTORY in io_policy.c), so none is invalidated.  DISCARD
 * ALL forgets them all (base/utility.c).
 *
 * src/window/history.c
 */
#include "postgres.h"

#include "base/utility.h"
#include "window/history.h"

#define SIZE	256
#define UNHELPFUL_SCANS 32

typedef struct Entry
{
	Oid			index;
	bool		slow;
	bool		fast;
	bool		cached;
	int			unhelpful;		/* scans that do not begin with a trial */
} Entry;

static Entry entries[SIZE];

/* What is known of the index, or NULL. */
static Entry *
find(Oid index)
{
	Entry	   *entry = &entries[index % SIZE];

	return entry->index == index ? entry : NULL;
}

bool
la_history_known_slow(Oid index)
{
	Entry	   *entry = find(index);

	return entry != NULL && entry->slow;
}

bool
la_history_known_fast(Oid index)
{
	Entry	   *entry = find(index);

	return entry != NULL && entry->fast;
}

/* Has the last bitmap scan read no page of the index? */
bool
la_history_known_cached(Oid index)
{
	Entry	   *entry = find(index);

	return entry != NULL && entry->cached;
}

/* Was cache prefetch not faster?  To be called once for each scan. */
bool
la_history_known_unhelpful(Oid index)
{
	Entry	   *entry = find(index);

	if (entry == NULL || entry->unhelpful == 0)
		return false;
	entry->unhelpful--;
	return true;
}

/* Keep what a scan that ends has learnt. */
void
la_history_note(Oid index, LaIoVerdict reads, LaCacheVerdict cache)
{
	Entry	   *entry = &entries[index % SIZE];
	Entry		fresh = {.index = index};

	if (reads == LA_READS_UNKNOWN && cache == LA_CACHE_UNKNOWN)
		return;
	if (entry->index != index)
		*entry = fresh;
	if (reads != LA_READS_UNKNOWN)
	{
		entry->slow = reads == LA_READS_SLOW;
		entry->fast = reads == LA_READS_FAST;
	}
	if (cache != LA_CACHE_UNKNOWN)
		entry->unhelpful = cache == LA_CACHE_NOT_FASTER ? UNHELPFUL_SCANS : 0;
}

/* Keep whether a bitmap scan that ends has read no page of the index. */
void
la_history_note_cached(Oid index, bool cached)
{
	Entry	   *entry = &entries[index % SIZE];
	Entry		fresh = {.index = index};

	if (entry->index != index)
		*entry = fresh;
	entry->cached = cached;
}

static void
forget(void)
{
	memset(entries, 0, sizeof(entries));
}

void
la_history_init(void)
{
	la_utility_register(la_utility_resets_session, forget);
}
