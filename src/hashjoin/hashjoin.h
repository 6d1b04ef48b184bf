/*
 * hashjoin.h
 *	  Hash joins that do not wait for memory.
 *
 * src/hashjoin/hashjoin.h
 */
#ifndef LA_HASHJOIN_H
#define LA_HASHJOIN_H

extern void la_hashjoin_init(void);

#endif							/* LA_HASHJOIN_H */
