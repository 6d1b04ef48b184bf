/*
 * copyto.h
 *	  COPY TO of a table.
 *
 * src/toast/copyto.h
 */
#ifndef LA_TOAST_COPYTO_H
#define LA_TOAST_COPYTO_H

extern void la_copyto_init(void);

#endif							/* LA_TOAST_COPYTO_H */
