/*
 * diskload.h
 *	  What a block device has read and written so far, for whomever, and reads ahead.
 *
 * src/calibrate/diskload.h
 */
#ifndef LA_DISKLOAD_H
#define LA_DISKLOAD_H

#include <sys/types.h>

extern int64 la_disk_bytes(dev_t device);
extern int	la_disk_read_ahead(dev_t device);

#endif							/* LA_DISKLOAD_H */
