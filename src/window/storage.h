/*
 * storage.h
 *	  What reads cost on a tablespace's storage, by how many of them are in flight.
 *
 * src/window/storage.h
 */
#ifndef LA_STORAGE_H
#define LA_STORAGE_H

#define LA_STORAGE_DEPTHS 9		/* 1, 2, 4, ... 256 */

typedef struct LaStorage
{
	double		random_us[LA_STORAGE_DEPTHS];	/* microseconds per 8 kB block
												 * of random reads at that
												 * depth: wall time / reads */
	double		sequential_us;	/* per block */
	double		extra_block_us; /* of each further neighbour in a request */
	double		tuple_us;		/* of the processor, for a tuple of a
								 * sequential scan in memory, its condition
								 * and its count; 0: not known */
} LaStorage;

extern void la_storage_init(void);
extern bool la_storage_get(Oid tablespace, LaStorage *storage);
extern void la_storage_set(Oid tablespace, const LaStorage *storage);
extern void la_storage_forget(void);

#endif							/* LA_STORAGE_H */
