/*
 * accessmethod.h
 *	  Which index access methods may be run ahead of the executor.
 *
 * src/base/accessmethod.h
 */
#ifndef LA_ACCESSMETHOD_H
#define LA_ACCESSMETHOD_H

#include "utils/guc.h"

typedef enum LaAccessMethod
{
	LA_AM_UNKNOWN,
	LA_AM_BTREE,
	LA_AM_HASH,
	LA_AM_GIST,
	LA_AM_SPGIST,
	LA_AM_HNSW,
	LA_AM_IVFFLAT,
	LA_AM_RUM
} LaAccessMethod;

extern void la_am_init(void);
extern LaAccessMethod la_am_of(Oid am);
extern bool la_am_may_run_ahead(Oid am);
extern bool la_am_has_function(Oid am, Oid function);
extern bool la_am_is_vouched_for(Oid am);
extern bool la_am_is_excluded(Oid am);

/* hooks of the settings that list access methods */
extern bool la_am_check_excluded(char **newval, void **extra, GucSource source);
extern void la_am_assign_excluded(const char *newval, void *extra);
extern bool la_am_check_additional(char **newval, void **extra, GucSource source);
extern void la_am_assign_additional(const char *newval, void *extra);

#endif							/* LA_ACCESSMETHOD_H */
