/*
 * descent.h
 *	  Finding the leaf page and the entries of a key in a stock btree index.
 *
 * For rooms that know a key before the access method is asked for it.
 *
 * src/btree/descent.h
 */
#ifndef LA_DESCENT_H
#define LA_DESCENT_H

#include "storage/buf.h"
#include "storage/itemptr.h"
#include "storage/off.h"
#include "utils/rel.h"

typedef struct LaDescent LaDescent;

/* The result of a search of the inner pages. */
typedef enum LaDescentResult
{
	LA_DESCENT_FOUND,
	LA_DESCENT_PENDING,			/* an inner page is not cached */
	LA_DESCENT_NOTHING			/* the index is empty, or is being changed */
} LaDescentResult;

/* The entries on a leaf page that equal the key. */
typedef struct LaMatches
{
	ItemPointerData *tids;		/* allocated by the caller: max of them */
	int			max;
	int			count;
	bool		complete;		/* there are no others, on no page */
} LaMatches;

extern LaDescent *la_descent_create(Relation index, Relation heap);
extern Size la_descent_size(void);
extern void la_descent_free(LaDescent *d);
extern bool la_descent_add_column(LaDescent *d, Oid subtype, Oid collation);
extern Relation la_descent_index(const LaDescent *d);
extern int	la_descent_columns(const LaDescent *d);
extern bool la_descent_may_be_early(const LaDescent *d);
extern Oid	la_descent_comparison(const LaDescent *d, int column, Oid *type);
extern void la_descent_set(LaDescent *d, int column, Datum value);
extern bool la_descent_set_stored(LaDescent *d, int column, Datum value, bool is_varlena);
extern void la_descent_set_null(LaDescent *d, int column);
extern void la_descent_search_behind(LaDescent *d, bool behind);
extern void la_descent_search_backward(LaDescent *d);
extern void la_descent_issue(LaDescent *d, BlockNumber block);
extern LaDescentResult la_descent_find_leaf(LaDescent *d, bool may_wait,
											BlockNumber *leaf);
extern bool la_descent_search_leaf(LaDescent *d, Buffer *leaf,
								   OffsetNumber *position);
extern void la_descent_matches(LaDescent *d, Buffer leaf, OffsetNumber position,
							   bool skip_dead, LaMatches *matches);

#endif							/* LA_DESCENT_H */
