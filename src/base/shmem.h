/*
 * shmem.h
 *	  Shared memory, if the library is preloaded by the server.
 *
 * src/base/shmem.h
 */
#ifndef LA_SHMEM_H
#define LA_SHMEM_H

extern void la_shmem_init(void);
extern void la_shmem_register(const char *name, Size size, void (*init) (void *area),
							  void **area);

#endif							/* LA_SHMEM_H */
