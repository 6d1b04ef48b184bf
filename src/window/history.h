/*
 * history.h
 *	  What earlier scans of this session have learnt of an index's reads.
 *
 * src/window/history.h
 */
#ifndef LA_HISTORY_H
#define LA_HISTORY_H

#include "window/policy.h"

extern void la_history_init(void);
extern bool la_history_known_slow(Oid index);
extern bool la_history_known_unhelpful(Oid index);
extern void la_history_note(Oid index, const LaPolicy *policy);

#endif							/* LA_HISTORY_H */
