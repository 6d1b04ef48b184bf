/*
 * searchkey.h
 *	  A search key, and how it is compared with the tuples of a stock btree index.
 *
 * The room's own; see searchkey.c.
 *
 * src/btree/searchkey.h
 */
#ifndef LA_SEARCHKEY_H
#define LA_SEARCHKEY_H

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

typedef struct LaSearchKeyColumn
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
} LaSearchKeyColumn;

typedef struct LaSearchKey
{
	MemoryContext context;		/* of what comparison functions keep */
	Relation	index;
	int			options;		/* of LA_DESCENT_... */
	bool		heapkeyspace;
	int			ncolumns;		/* of the key */
	ItemPointer tid;			/* the row address behind them, or NULL */
	LaSearchKeyColumn columns[INDEX_MAX_KEYS];
} LaSearchKey;

extern void la_key_init(LaSearchKey *k, Relation index, int options,
						MemoryContext context);
extern bool la_key_add_column(LaSearchKey *k, Oid subtype, Oid collation);
extern bool la_key_is_costly(const LaSearchKey *k);
extern Oid	la_key_comparison(const LaSearchKey *k, int column, Oid *type);
extern void la_key_set(LaSearchKey *k, int column, Datum value);
extern void la_key_set_null(LaSearchKey *k, int column);
extern int	la_key_compare(LaSearchKey *k, IndexTuple tuple, int from, int *equal);

#endif							/* LA_SEARCHKEY_H */
