/*
 * history.h
 *	  What earlier scans of an index have learnt, for later ones of the session.
 *
 * src/window/history.h
 */
#ifndef LA_HISTORY_H
#define LA_HISTORY_H

#include "window/cache_policy.h"
#include "window/io_policy.h"

extern void la_history_init(void);
extern bool la_history_known_slow(Oid index);
extern bool la_history_known_fast(Oid index);
extern bool la_history_known_cached(Oid index);
extern bool la_history_known_unhelpful(Oid index);
extern void la_history_note(Oid index, LaIoVerdict reads, LaCacheVerdict cache);
extern void la_history_note_cached(Oid index, bool cached);

#endif							/* LA_HISTORY_H */
