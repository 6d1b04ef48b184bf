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

#endif							/* LA_LOCK_H */
