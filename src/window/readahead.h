/*
 * readahead.h
 *	  Which blocks the operating system would have read ahead for the server.
 *
 * Pure functions, without PostgreSQL's headers: test/unit checks them.  See readahead.c.
 *
 * src/window/readahead.h
 */
#ifndef LA_READAHEAD_H
#define LA_READAHEAD_H

#include <stdbool.h>
#include <stdint.h>

#define LA_READAHEAD_WORDS	128

typedef struct LaReadahead
{
	uint64_t	last;			/* the block visited last */
	struct
	{
		uint64_t	number;		/* of the 64 blocks, and 1; 0: none */
		uint64_t	present;
		uint64_t	marked;		/* there a stream goes on */
	}			words[LA_READAHEAD_WORDS];
} LaReadahead;

extern bool la_readahead_serves(LaReadahead *r, uint64_t block);

#endif							/* LA_READAHEAD_H */
