/*
 * normalizedkey.h
 *	  Rows of an index as strings of bytes that memcmp orders as the index does.
 *
 * See normalizedkey.c.
 *
 * src/indexbuild/normalizedkey.h
 */
#ifndef LA_NORMALIZEDKEY_H
#define LA_NORMALIZEDKEY_H

#include "utils/rel.h"

typedef struct LaNormalizedKey LaNormalizedKey;

/* What ranks of a column's values (rank.c) may cost. */
typedef struct LaRanking
{
	Size		memory;			/* for each column, bytes */
	double		rows;			/* of the index, about */
} LaRanking;

/* instead of a length: too many values to rank them, or a value without a code */
#define LA_SORTKEY_GIVEN_UP (-1)

extern LaNormalizedKey *la_normkey_create(Relation index, const LaRanking *ranking,
										  const char **why);
extern bool la_normkey_is_ranked(const LaNormalizedKey *key);
extern bool la_normkey_may_give_up(const LaNormalizedKey *key);
extern Size la_normkey_size(const LaNormalizedKey *key);
extern bool la_normkey_is_worthwhile(const LaNormalizedKey *key);
extern int	la_normkey_encode(LaNormalizedKey *key, const Datum *values,
							  const bool *isnull, uint8 *to, int room,
							  bool *has_null);

#endif							/* LA_NORMALIZEDKEY_H */
