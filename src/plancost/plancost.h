/*
 * plancost.h
 *	  Plans by what reads cost on this storage.
 *
 * src/plancost/plancost.h
 */
#ifndef LA_PLANCOST_H
#define LA_PLANCOST_H

extern void la_plancost_init(void);

#endif							/* LA_PLANCOST_H */
