/*
 * history.c
 *	  What earlier scans of this session have learnt of an index's reads.
 *
 * A scan has to wait for a few reads before it knows that they are waits.  The
 * next scan of the same index need not learn it again: queries of a dozen rows
 * would be over before.  By index, not by table: rows that one index finds
 * scattered over the table, another one finds side by side, where the kernel
 * reads ahead by itself.
 *
 *		index OID ---(modulo)---> one entry of SIZE: { index, slow?, unhelpful? }
 *
 * The same for look-ahead in memory, which takes a trial to be found out: for
 * UNHELPFUL_SCANS scans after one that it did not help, it is not tried at once.
 *
 * The last verdict counts; two indexes that share an entry forget each other.
 * Being wrong is cheap in both directions (policy.c, behaviours B and J), so
 * nothing is invalidated: not by a vacuumed cache, not by a dropped index.  A session
 * that is given to another client starts anew (base/utility.c).
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
	int			unhelpful;		/* scans that believe it */
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

/*
 * Was memory look-ahead not faster?  To be asked once for each scan, since only so
 * many believe it.
 */
bool
la_history_known_unhelpful(Oid index)
{
	Entry	   *entry = find(index);

	if (entry == NULL || entry->unhelpful == 0)
		return false;
	entry->unhelpful--;
	return true;
}

/*
 * What a scan that ends has learnt.
 */
void
la_history_note(Oid index, const LaPolicy *policy)
{
	Entry	   *entry = &entries[index % SIZE];
	Entry		fresh = {.index = index};

	if (policy->verdict == LA_READS_UNKNOWN &&
		policy->memory_verdict == LA_MEMORY_UNKNOWN)
		return;
	if (entry->index != index)
		*entry = fresh;
	if (policy->verdict != LA_READS_UNKNOWN)
		entry->slow = policy->verdict == LA_READS_SLOW;
	if (policy->memory_verdict != LA_MEMORY_UNKNOWN)
		entry->unhelpful = policy->memory_verdict == LA_MEMORY_NOT_FASTER ?
			UNHELPFUL_SCANS : 0;
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
