/*
 * applylock.h
 *	  Locks of a turn, none of which is waited for.
 *
 * See applylock.c.
 *
 * src/replay/applylock.h
 */
#ifndef LA_APPLYLOCK_H
#define LA_APPLYLOCK_H

extern void la_applylock_begin(void);
extern bool la_applylock_take(Oid relid);
extern void la_applylock_release_all(void);
extern bool la_applylock_ran_out(void);

#endif							/* LA_APPLYLOCK_H */
