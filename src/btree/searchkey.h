/*
 * searchkey.h
 *	  A search key, and how it is compared with the tuples of a stock btree index.
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
	LA_COMPARE_FUNCTION,
	LA_COMPARE_INT16,
	LA_COMPARE_INT32,
	LA_COMPARE_INT64,
	LA_COMPARE_OID,
	LA_COMPARE_UUID,
	LA_COMPARE_BYTES			/* varlena, by memcmp and length */
} LaCompareKind;

typedef struct LaSearchKeyColumn
{
	/* of the index's column */
	int16		length;
	bool		byval;
	char		align;
	int			offset;			/* in the tuple's data if no column before it
								 * is null, or -1 */

	/* of the key */
	LaCompareKind kind;
	bool		desc;
	bool		nulls_first;
	Oid			collation;
	FmgrInfo	function;
	bool		isnull;
	Datum		value;
	int64		integer;		/* the value, if it is an integer */
	const char *bytes;			/* the same for a UUID or for bytes */
	int			nbytes;
} LaSearchKeyColumn;

typedef struct LaSearchKey
{
	MemoryContext context;		/* of what comparison functions allocate */
	Relation	index;
	bool		heapkeyspace;
	int			ncolumns;		/* of the key */
	ItemPointer tid;			/* the heap TID behind them, or NULL */
	bool		damaged;		/* it was compared with a tuple that is
								 * damaged */
	LaSearchKeyColumn columns[INDEX_MAX_KEYS];
} LaSearchKey;

/* What takes the place of a damaged tuple: a pivot tuple without columns. */
extern const IndexTupleData la_no_entry;

extern void la_searchkey_init(LaSearchKey *k, Relation index, MemoryContext context);
extern bool la_searchkey_add_column(LaSearchKey *k, Oid subtype, Oid collation);
extern bool la_searchkey_may_be_early(const LaSearchKey *k, int column);
extern Oid	la_searchkey_comparison(const LaSearchKey *k, int column, Oid *type);
extern void la_searchkey_set(LaSearchKey *k, int column, Datum value);
extern void la_searchkey_set_null(LaSearchKey *k, int column);
extern bool la_searchkey_fits(const LaSearchKey *k, IndexTuple tuple);
extern int	la_searchkey_compare(LaSearchKey *k, IndexTuple tuple, int from, int *equal);

#endif							/* LA_SEARCHKEY_H */
