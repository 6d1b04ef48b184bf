/*
 * memory.c
 *	  Memory of a bitmap index scan that looks ahead.
 *
 * Most scans make one bitmap, and those of all partitions of a table are there until the query
 * ends.  So what look-ahead needs is given back when the first call of amgetbitmap ends, for the
 * scans after it.  A scan that makes another bitmap keeps it from then on.
 *
 * After an error it is freed with the query's memory context, and the budget is told by the
 * callback of getbitmap.c.
 *
 * src/bitmap/memory.c
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "bitmap/bitmap_int.h"

MemoryContext
la_memory_context(LaBitmapScan *bs)
{
	if (bs->memory == NULL)
		bs->memory = AllocSetContextCreate(bs->context, "pg_lookahead bitmap scan",
										   ALLOCSET_SMALL_SIZES);
	return bs->memory;
}

/* Memory set to zeros.  The caller has asked the budget whether there is so much. */
void *
la_memory_alloc(LaBitmapScan *bs, Size size)
{
	void	   *result = MemoryContextAllocZero(la_memory_context(bs), size);

	la_budget_take(&bs->budget, size);
	return result;
}

/* A call of amgetbitmap has ended. */
void
la_memory_end_call(LaBitmapScan *bs)
{
	if (bs->memory == NULL || bs->reads.calls > 1)
		return;
	MemoryContextDelete(bs->memory);
	la_budget_return(&bs->budget, bs->budget.used);
	bs->memory = NULL;
	bs->gin = NULL;
}
