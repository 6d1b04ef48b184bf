/*
 * knowntable.h
 *	  Is this a table whose pages and descriptors are known?
 *
 * Apart from gate.h, which has it for the rooms, since node_effects.c asks it for the gate.
 *
 * src/attach/knowntable.h
 */
#ifndef LA_KNOWNTABLE_H
#define LA_KNOWNTABLE_H

#include "access/tableam.h"
#include "utils/rel.h"

/* One of heap.  Views, foreign tables and tables of other access methods are not. */
static inline bool
la_gate_is_heap(const RelationData *table)
{
	return table != NULL && table->rd_tableam == GetHeapamTableAmRoutine();
}

#endif							/* LA_KNOWNTABLE_H */
