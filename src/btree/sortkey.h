/*
 * sortkey.h
 *	  Rows of an index as strings of bytes that memcmp orders as the index does.
 *
 * See sortkey.c.
 *
 * src/btree/sortkey.h
 */
#ifndef LA_SORTKEY_H
#define LA_SORTKEY_H

#include "utils/rel.h"

typedef struct LaSortKey LaSortKey;

/* What ranks of a column's values (rank.c) may cost. */
typedef struct LaRanking
{
	Size		memory;			/* for each column, bytes */
	double		rows;			/* of the index, about */
} LaRanking;

/* instead of a length: too many values to rank them, or a value without a code */
#define LA_SORTKEY_GIVEN_UP (-1)

extern LaSortKey *la_sortkey_create(Relation index, const LaRanking *ranking,
									const char **why);
extern bool la_sortkey_is_ranked(const LaSortKey *key);
extern bool la_sortkey_may_give_up(const LaSortKey *key);
extern Size la_sortkey_size(const LaSortKey *key);
extern bool la_sortkey_promises(const LaSortKey *key);
extern int	la_sortkey_encode(LaSortKey *key, const Datum *values,
							  const bool *isnull, uint8 *to, int room,
							  bool *has_null);

#endif							/* LA_SORTKEY_H */
