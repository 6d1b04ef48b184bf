/*
 * method.h
 *	  What look-ahead knows of index access methods other than btree.
 *
 * src/scan/method.h
 */
#ifndef LA_METHOD_H
#define LA_METHOD_H

#include "scan/killed.h"

/* Any function may be NULL. */
typedef struct LaMethod
{
	/* where is the row that the access method returned last? */
	void		(*locate) (LaScan *ls, LaKilledItems *killed, LaIndexEntry *entry);

	/* mark the collected entries dead, as the access method would */
	void		(*kill) (LaScan *ls, LaKilledItems *killed);

	/*
	 * Move the current page's dead entries from the access method's own list,
	 * and back to it.  See GiST in method.c.
	 */
	void		(*take_killed) (LaScan *ls, LaKilledItems *killed);
	void		(*return_killed) (LaScan *ls, LaKilledItems *killed);

	/* how many more rows of the current index page will it return? */
	int			(*rows_on_page) (LaScan *ls);

	/* start reads of index pages that it will turn to */
	void		(*issue_pages) (LaScan *ls);

	/* does it return the distances of ORDER BY with each row? */
	bool		sets_distances;
} LaMethod;

extern const LaMethod *la_method_of(Oid am);

#endif							/* LA_METHOD_H */
