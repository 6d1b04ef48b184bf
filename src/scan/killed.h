/*
 * killed.h
 *	  Index entries that are reported dead after the access method has left them.
 *
 * src/scan/killed.h
 */
#ifndef LA_KILLED_H
#define LA_KILLED_H

#include "access/xlogdefs.h"

#include "scan/scan_int.h"

/* Where an access method found an entry. */
typedef struct LaIndexEntry
{
	ItemPointerData tid;		/* the heap row it points to */
	OffsetNumber offset;		/* its place on the index page */
	BlockNumber page;			/* InvalidBlockNumber: cannot be killed */
	XLogRecPtr	lsn;			/* of the page when it was read (GiST) */
} LaIndexEntry;

/* Entries of one index page that were reported dead. */
typedef struct LaKilledItems
{
	/* marks them, as the access method would; NULL: it marks none */
	void		(*kill) (LaScan *ls, struct LaKilledItems *killed);

	BlockNumber page;
	XLogRecPtr	lsn;
	int			n;
	LaIndexEntry *entries;		/* MaxIndexTuplesPerPage of them; NULL until
								 * the first */

	/* hash: primary bucket pages, pinned while their entries are in a queue */
	Buffer		pins[2];

	void	   *work;			/* the method's, allocated when needed */
} LaKilledItems;

extern void la_killed_add(LaScan *ls, LaKilledItems *killed, const LaIndexEntry *entry);
extern void la_killed_apply(LaScan *ls, LaKilledItems *killed);
extern void la_killed_unpin(LaKilledItems *killed);
extern void la_killed_free(LaKilledItems *killed);

#endif							/* LA_KILLED_H */
