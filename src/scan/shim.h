/*
 * shim.h
 *	  Between an index scan and its access method.
 *
 * src/scan/shim.h
 */
#ifndef LA_SHIM_H
#define LA_SHIM_H

#include "scan/scan_int.h"

extern LaScan *la_shim_install(IndexScanDesc scan, LaKind kind, const LaScanDemand *demand,
							   MemoryContext context);
extern LaScan *la_shim_of(IndexScanDesc scan);

#endif							/* LA_SHIM_H */
