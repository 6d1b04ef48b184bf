/*
 * rowqueue.h
 *	  Rows read ahead through any access method's amgettuple.
 *
 * src/scan/rowqueue.h
 */
#ifndef LA_ROWQUEUE_H
#define LA_ROWQUEUE_H

#include "scan/scan_int.h"

extern const LaScanOps la_rowqueue_ops;

#endif							/* LA_ROWQUEUE_H */
