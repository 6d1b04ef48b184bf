/*
 * btree_int.h
 *	  What the files of this room share.
 *
 * src/btree/btree_int.h
 */
#ifndef LA_BTREE_INT_H
#define LA_BTREE_INT_H

#include "access/genam.h"
#include "access/sdir.h"
#include "storage/block.h"
#include "utils/rel.h"

/* ---- downlinks: the leaf pages that a scan of a stock btree index will come to ---- */

typedef struct LaDownlinks LaDownlinks;

extern LaDownlinks *la_downlinks_create(Relation index, IndexScanDesc scan,
										MemoryContext context);
extern Size la_downlinks_size(void);
extern bool la_downlinks_seek(LaDownlinks *d, BlockNumber leaf, ScanDirection dir);
extern BlockNumber la_downlinks_next(LaDownlinks *d);
extern void la_downlinks_restart(LaDownlinks *d);
extern void la_downlinks_free(LaDownlinks *d);

#endif							/* LA_BTREE_INT_H */
