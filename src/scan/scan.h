/*
 * scan.h
 *	  The room of index and index-only scans.
 *
 * src/scan/scan.h
 */
#ifndef LA_SCAN_H
#define LA_SCAN_H

extern void la_scan_init(void);

#endif							/* LA_SCAN_H */
