/*
 * partition.c
 *	  The number of a key's partition.
 *
 * The server finds the partition of a row when it inserts the row, and opens and locks it then.
 * Here it is looked up without being opened.
 *
 * src/rows/partition.c
 */
#include "postgres.h"

#include "partitioning/partbounds.h"
#include "partitioning/partdesc.h"
#include "utils/partcache.h"
#include "utils/rel.h"

#include "attach/attach.h"
#include "rows/rows.h"

/* Can it not be noticed if the functions of a partition key are called early? */
bool
la_partition_key_is_pure(const PartitionKey key)
{
	LaEffects	effects = {0};

	la_effects_of_expression(&effects, (Node *) key->partexprs);
	for (int i = 0; i < key->partnatts; i++)
	{
		la_effects_of_support(&effects, key->partsupfunc[i].fn_oid, 1, &key->parttypid[i]);
		la_effects_of_collation(&effects, key->partcollation[i]);
	}
	return effects.flags == 0;
}

/* The number of the partition for a key, by list; or -1. */
static int
find_by_list(const PartitionKey key, const PartitionBoundInfo bounds, Datum value, bool isnull)
{
	bool		equal = false;
	int			offset;

	if (isnull)
		return partition_bound_accepts_nulls(bounds) ? bounds->null_index : -1;
	offset = partition_list_bsearch(key->partsupfunc, key->partcollation, bounds, value, &equal);
	return offset >= 0 && equal ? bounds->indexes[offset] : -1;
}

static int
find_by_range(const PartitionKey key, const PartitionBoundInfo bounds, Datum *values,
			  const bool *isnull)
{
	bool		equal = false;
	int			offset;

	for (int i = 0; i < key->partnatts; i++)
	{
		if (isnull[i])
			return -1;
	}
	offset = partition_range_datum_bsearch(key->partsupfunc, key->partcollation, bounds,
										   key->partnatts, values, &equal);
	return bounds->indexes[offset + 1];
}

/* The number of the partition for a key; or -1. */
int
la_partition_number(Relation root, const PartitionDesc desc, Datum *values, bool *isnull)
{
	PartitionKey key = RelationGetPartitionKey(root);
	const PartitionBoundInfo bounds = desc->boundinfo;
	int			n = -1;

	switch (key->strategy)
	{
		case PARTITION_STRATEGY_HASH:
			return bounds->indexes[compute_partition_hash_value(key->partnatts, key->partsupfunc,
																key->partcollation, values,
																isnull) % bounds->nindexes];
		case PARTITION_STRATEGY_LIST:
			n = find_by_list(key, bounds, values[0], isnull[0]);
			break;
		case PARTITION_STRATEGY_RANGE:
			n = find_by_range(key, bounds, values, isnull);
			break;
	}
	return n >= 0 ? n : bounds->default_index;
}
