/*
 * diskload.h
 *	  What a block device has read and written so far, for whomever.
 *
 * src/calibrate/diskload.h
 */
#ifndef LA_DISKLOAD_H
#define LA_DISKLOAD_H

#include <sys/types.h>

extern int64 la_disk_bytes(dev_t device);

#endif							/* LA_DISKLOAD_H */
