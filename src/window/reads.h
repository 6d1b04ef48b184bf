/*
 * reads.h
 *	  Reads of blocks that are made for the server, a moment before its own.
 *
 * src/window/reads.h
 */
#ifndef LA_READS_H
#define LA_READS_H

#include "window/window.h"

/* Reads of some relations' blocks, in the order of need. */
typedef struct LaReads
{
	Relation   *rels;
	LaIoPolicy	policy;
	LaCounters	counters;
	LaWindow   *window;			/* NULL until look-ahead first may begin */

	/* for state OBSERVE: the last visit, if there was one */
	bool		visited;
	int			last_rel;
	BlockNumber last_block;
} LaReads;

extern void la_reads_visit(LaReads *reads, int rel, BlockNumber block, bool foreseen,
						   Buffer *buffer);
extern void la_reads_no_visit(LaReads *reads);

#endif							/* LA_READS_H */
