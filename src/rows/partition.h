/*
 * partition.h
 *	  The number of a key's partition.
 *
 * src/rows/partition.h
 */
#ifndef LA_PARTITION_H
#define LA_PARTITION_H

#include "partitioning/partdefs.h"
#include "utils/relcache.h"

extern bool la_partition_key_is_pure(const PartitionKey key);
extern int	la_partition_number(Relation root, const PartitionDesc desc, Datum *values,
								bool *isnull);

#endif							/* LA_PARTITION_H */
