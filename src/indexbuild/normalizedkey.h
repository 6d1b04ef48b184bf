/*
 * normalizedkey.h
 *	  Rows of an index as strings of bytes that memcmp orders as the index does.
 *
 * src/indexbuild/normalizedkey.h
 */
#ifndef LA_NORMALIZEDKEY_H
#define LA_NORMALIZEDKEY_H

#include "utils/rel.h"

typedef struct LaNormalizedKey LaNormalizedKey;

/* What the dictionaries of an index (dictionary.c) may take. */
typedef struct LaDictionaryLimits
{
	Size		memory;			/* of each column, bytes */
	double		rows;			/* of the index, about */
} LaDictionaryLimits;

/* Instead of a length: a value has no code. */
#define LA_NORMKEY_NONE (-1)

extern LaNormalizedKey *la_normkey_create(Relation index,
										  const LaDictionaryLimits *limits,
										  const char **why);
extern bool la_normkey_has_dictionary(const LaNormalizedKey *key);
extern bool la_normkey_may_fail(const LaNormalizedKey *key);
extern bool la_normkey_is_worthwhile(const LaNormalizedKey *key);
extern Size la_normkey_size(const LaNormalizedKey *key);
extern int	la_normkey_encode(LaNormalizedKey *key, const Datum *values,
							  const bool *isnull, uint8 *to, int space,
							  bool *has_null);

#endif							/* LA_NORMALIZEDKEY_H */
