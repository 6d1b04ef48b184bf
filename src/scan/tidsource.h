/*
 * tidsource.h
 *	  An index scan whose TIDs another room has found already.
 *
 * src/scan/tidsource.h
 */
#ifndef LA_TIDSOURCE_H
#define LA_TIDSOURCE_H

#include "attach/attach.h"
#include "scan/scan_int.h"

extern bool la_tidsource_set(LaScan *ls, const LaTidSource *source);

#endif							/* LA_TIDSOURCE_H */
