/*
 * lock.h
 *	  A relation's lock, taken at once or not at all.
 *
 * src/base/lock.h
 */
#ifndef LA_LOCK_H
#define LA_LOCK_H

#include "storage/lockdefs.h"

extern bool la_lock_relation_at_once(Oid relid, LOCKMODE mode);
extern bool la_lock_catalogs_at_once(const Oid *relids, int n);
extern void la_lock_release_catalogs(const Oid *relids, int n);

#endif							/* LA_LOCK_H */
