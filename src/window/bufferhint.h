/*
 * bufferhint.h
 *	  Where this backend has seen blocks in shared buffers.
 *
 * src/window/bufferhint.h
 */
#ifndef LA_BUFFERHINT_H
#define LA_BUFFERHINT_H

#include "storage/block.h"
#include "storage/buf.h"
#include "utils/relcache.h"

extern Buffer la_bufferhint_find(Relation rel, BlockNumber block);
extern void la_bufferhint_note(Relation rel, BlockNumber block, Buffer buffer);

#endif							/* LA_BUFFERHINT_H */
