/*
 * killed.c
 *	  Index entries that are reported dead after the access method has left them.
 *
 * The executor reports an entry dead when it asks for the row after it.  If the access method has
 * been run ahead by then, it stands on another entry.  Reports are collected for one index page at
 * a time, and a function of method.c marks the entries before one of another page is collected.
 *
 * src/scan/killed.c
 */
#include "postgres.h"

#include "access/itup.h"
#include "storage/bufmgr.h"

#include "scan/scan_int.h"

/* Have the collected entries marked. */
void
la_killed_apply(LaScan *ls, LaKilledItems *killed)
{
	if (killed->n == 0)
		return;
	ls->counters.c[LA_ENTRIES_KILLED] += killed->n;
	killed->kill(ls, killed);
	killed->n = 0;
}

/* Collect an entry. */
void
la_killed_add(LaScan *ls, LaKilledItems *killed, const LaIndexEntry *entry)
{
	if (killed->kill == NULL || entry->page == InvalidBlockNumber)
		return;
	if (entry->page != killed->page || entry->lsn != killed->lsn)
		la_killed_apply(ls, killed);
	if (killed->entries == NULL)
		killed->entries = MemoryContextAlloc(ls->context,
											 MaxIndexTuplesPerPage * sizeof(LaIndexEntry));
	killed->page = entry->page;
	killed->lsn = entry->lsn;
	if (killed->n < MaxIndexTuplesPerPage)
		killed->entries[killed->n++] = *entry;
}

/* No entry is left that could be reported: pages need not stay pinned. */
void
la_killed_unpin(LaKilledItems *killed)
{
	for (Size i = 0; i < lengthof(killed->pins); i++)
	{
		if (BufferIsValid(killed->pins[i]))
			ReleaseBuffer(killed->pins[i]);
		killed->pins[i] = InvalidBuffer;
	}
}

void
la_killed_free(LaKilledItems *killed)
{
	if (killed->entries)
		pfree(killed->entries);
	if (killed->work)
		pfree(killed->work);
}
