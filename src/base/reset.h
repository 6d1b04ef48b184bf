/*
 * reset.h
 *	  Forgetting what a session keeps for itself.
 *
 * src/base/reset.h
 */
#ifndef LA_RESET_H
#define LA_RESET_H

typedef void (*la_reset_function) (void);

extern void la_reset_register(la_reset_function function);
extern void la_reset_init(void);

#endif							/* LA_RESET_H */
