/*
 * collations.h
 *	  What a session may be told when it uses a collation for the first time.
 *
 * src/attach/collations.h
 */
#ifndef LA_COLLATIONS_H
#define LA_COLLATIONS_H

extern bool la_collation_is_silent(Oid collation);

#endif							/* LA_COLLATIONS_H */
