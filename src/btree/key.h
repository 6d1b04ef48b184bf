/*
 * key.h
 *	  A search key, and how it is compared with the tuples of a stock btree index.
 *
 * The room's own; see key.c.
 *
 * src/btree/key.h
 */
#ifndef LA_KEY_H
#define LA_KEY_H

#include "access/itup.h"
#include "fmgr.h"
#include "storage/itemptr.h"
#include "utils/rel.h"

/* How a column is compared. */
typedef enum LaCompareKind
{
	COMPARE_FUNCTION,
	COMPARE_INT16,
	COMPARE_INT32,
	COMPARE_INT64,
	COMPARE_OID,
	COMPARE_UUID,
	COMPARE_BYTES				/* varlena, by memcmp and length */
} LaCompareKind;

typedef struct LaKeyColumn
{
	/* of the index's column */
	int16		length;
	bool		byval;
	char		align;
	int			offset;			/* in the tuple's data if nothing before it is
								 * null, or -1 */

	/* of the key */
	LaCompareKind kind;
	bool		desc;
	bool		nulls_first;
	Oid			collation;
	FmgrInfo	function;
	bool		isnull;
	Datum		value;
	int64		integer;		/* the value, for integers */
	const char *bytes;			/* ... for UUIDs and bytes */
	int			nbytes;
} LaKeyColumn;

typedef struct LaKey
{
	MemoryContext context;		/* of what comparison functions keep */
	Relation	index;
	int			options;		/* of LA_DESCENT_... */
	bool		heapkeyspace;
	int			ncolumns;		/* of the key */
	ItemPointer tid;			/* the row address behind them, or NULL */
	LaKeyColumn columns[INDEX_MAX_KEYS];
} LaKey;

extern void la_key_init(LaKey *k, Relation index, int options,
						MemoryContext context);
extern bool la_key_add_column(LaKey *k, Oid subtype, Oid collation);
extern bool la_key_is_costly(const LaKey *k);
extern Oid	la_key_comparison(const LaKey *k, int column, Oid *type);
extern void la_key_set(LaKey *k, int column, Datum value);
extern void la_key_set_null(LaKey *k, int column);
extern int	la_key_compare(LaKey *k, IndexTuple tuple, int from, int *equal);

#endif							/* LA_KEY_H */
