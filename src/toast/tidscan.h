/*
 * tidscan.h
 *	  Scans of rows by their addresses.
 *
 * src/toast/tidscan.h
 */
#ifndef LA_TOAST_TIDSCAN_H
#define LA_TOAST_TIDSCAN_H

extern void la_tidscan_init(void);

#endif							/* LA_TOAST_TIDSCAN_H */
