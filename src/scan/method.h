/*
 * method.h
 *	  What look-ahead knows of index access methods other than btree.
 *
 * src/scan/method.h
 */
#ifndef LA_METHOD_H
#define LA_METHOD_H

#include "access/xlogdefs.h"
#include "storage/block.h"
#include "storage/itemptr.h"
#include "storage/off.h"

#include "scan/shim.h"

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
	BlockNumber page;
	XLogRecPtr	lsn;
	int			n;
	LaIndexEntry *entries;		/* MaxIndexTuplesPerPage of them; NULL until
								 * the first */

	/* hash: primary bucket pages, pinned while their entries are in a queue */
	Buffer		pins[2];

	void	   *work;			/* the method's, allocated when needed */
} LaKilledItems;

/*
 * Any function may be NULL.
 */
typedef struct LaMethod
{
	/* where is the row that the access method returned last? */
	void		(*locate) (LaScan *ls, LaKilledItems *dead, LaIndexEntry *entry);

	/* mark the collected entries dead, as the access method would */
	void		(*kill) (LaScan *ls, LaKilledItems *dead);

	/*
	 * Move entries of the current page that were reported dead from the
	 * access method's own list, and back to it.  Where marking entries may
	 * change the page's LSN, those of one page must be marked at once.
	 */
	void		(*take_dead) (LaScan *ls, LaKilledItems *dead);
	bool		(*give_dead) (LaScan *ls, LaKilledItems *dead);

	/* how many more rows of the current index page will it return? */
	int			(*rows_on_page) (LaScan *ls);

	/* start reads of index pages that it will turn to */
	void		(*issue_pages) (LaScan *ls);

	/* does it return the distances of ORDER BY with each row? */
	bool		sets_distances;
} LaMethod;

extern const LaMethod *la_method_of(Oid am);
extern void la_killed_add(LaScan *ls, LaKilledItems *dead, const LaIndexEntry *entry);
extern void la_killed_flush(LaScan *ls, LaKilledItems *dead);
extern void la_killed_unpin(LaKilledItems *dead);

#endif							/* LA_METHOD_H */
