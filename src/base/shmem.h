/*
 * shmem.h
 *	  Shared memory, if the library is preloaded by the server.
 *
 * src/base/shmem.h
 */
#ifndef LA_SHMEM_H
#define LA_SHMEM_H

#include "storage/lwlock.h"
#include "utils/hsearch.h"

/* A hash table in shared memory, of keys that are compared as bytes, and its lock. */
typedef struct LaShmemTable
{
	HTAB	   *hash;			/* NULL: there is no shared memory */
	LWLock	   *lock;
} LaShmemTable;

/* A double as an atomic variable holds it. */
static inline uint64
la_bits_of(double value)
{
	uint64		bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static inline double
la_double_of(uint64 bits)
{
	double		value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

extern void la_shmem_init(void);
extern bool la_shmem_is_there(void);
extern void la_shmem_require(void);
extern void la_shmem_init_counters(void *area, Size size);
extern void la_shmem_reset_counters(void *area, Size size);
extern void la_shmem_register(const char *name, Size size, void (*init) (void *area),
							  void **area);
extern void la_shmem_register_per_backend(const char *name, Size size,
										  void (*init) (void *area), void **area);
extern void la_shmem_register_table(const char *name, int max_entries, Size key_size,
									Size entry_size, LaShmemTable *table);
extern void la_shmem_register_startup(void (*started) (void));

#endif							/* LA_SHMEM_H */
