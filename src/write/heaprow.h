/*
 * heaprow.h
 *	  Copies of rows that the statement has written.
 *
 * src/write/heaprow.h
 */
#ifndef LA_HEAPROW_H
#define LA_HEAPROW_H

#include "access/htup.h"
#include "utils/relcache.h"

/* Is it a row that the caller looks for?  Called with the page share-locked. */
typedef bool (*LaRowFilter) (HeapTupleHeader row);

extern bool la_heaprow_is_own(TransactionId xid);
extern bool la_heaprow_is_replaced(HeapTupleHeader row);
extern HeapTuple la_heaprow_copy(Relation table, const ItemPointerData *tid, LaRowFilter filter);
extern void la_heaprow_seek(Relation table, ItemPointer next, LaRowFilter filter);
extern HeapTuple la_heaprow_next(Relation table, ItemPointer next, LaRowFilter filter);

#endif							/* LA_HEAPROW_H */
