/*
 * fits.h
 *	  Do the values of a row lie within it?
 *
 * src/rows/fits.h
 */
#ifndef LA_FITS_H
#define LA_FITS_H

#include "access/htup.h"
#include "access/itup.h"
#include "access/tupdesc.h"

extern bool la_fits_row(const HeapTupleData *tuple, TupleDesc desc);
extern bool la_fits_entry(IndexTuple tuple, TupleDesc desc);

#endif							/* LA_FITS_H */
