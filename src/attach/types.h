/*
 * types.h
 *	  What the server's polymorphic functions call for the types that they are given.
 *
 * src/attach/types.h
 */
#ifndef LA_TYPES_H
#define LA_TYPES_H

extern bool la_type_is_plain(Oid type);
extern bool la_type_is_quiet(Oid type);
extern bool la_type_has_rows(Oid type);
extern bool la_type_comparison_may_fail(Oid type, Oid function);

#endif							/* LA_TYPES_H */
