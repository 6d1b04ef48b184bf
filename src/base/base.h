/*
 * base.h
 *	  What all rooms use: settings, counters, limits.
 *
 * src/base/base.h
 */
#ifndef LA_BASE_H
#define LA_BASE_H

extern void la_base_init(void);

#endif							/* LA_BASE_H */
