/*
 * processor.h
 *	  What the processor takes for tuples.
 *
 * src/calibrate/processor.h
 */
#ifndef LA_PROCESSOR_H
#define LA_PROCESSOR_H

#include "calibrate/directread.h"

extern double la_processor_measure(LaMeasured *blocks);

#endif							/* LA_PROCESSOR_H */
