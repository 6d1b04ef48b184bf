/*
 * toast.h
 *	  Values that are stored out of line.
 *
 * src/toast/toast.h
 */
#ifndef LA_TOAST_H
#define LA_TOAST_H

extern void la_toast_init(void);

#endif							/* LA_TOAST_H */
