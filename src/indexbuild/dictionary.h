/*
 * dictionary.h
 *	  An order-preserving dictionary of a column's values.
 *
 * src/indexbuild/dictionary.h
 */
#ifndef LA_DICTIONARY_H
#define LA_DICTIONARY_H

#include "utils/rel.h"

typedef struct LaDictionary LaDictionary;

/* A value's code: a number in fixed point. */
typedef struct LaDictionaryCode
{
	uint32		whole;
	uint64		fraction;
} LaDictionaryCode;

extern LaDictionary *la_dictionary_create(Relation index, int column, Size memory,
										  double rows);
extern bool la_dictionary_find(LaDictionary *d, Datum value, LaDictionaryCode *code);
extern bool la_dictionary_is_worthwhile(const LaDictionary *d);

#endif							/* LA_DICTIONARY_H */
