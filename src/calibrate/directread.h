/*
 * directread.h
 *	  Reads that go to the device, many at a time, and what they take.
 *
 * src/calibrate/directread.h
 */
#ifndef LA_DIRECTREAD_H
#define LA_DIRECTREAD_H

#include "calibrate/blockfiles.h"

#define LA_MAX_DEPTH			256 /* requests in flight */
#define LA_MAX_REQUEST_BLOCKS	16

typedef struct LaReadPattern
{
	bool		sequential;		/* else in random order */
	int			depth;			/* requests in flight */
	int			blocks;			/* of a request */
	double		seconds;
} LaReadPattern;

typedef struct LaMeasured
{
	double		requests_per_s;
	double		average_us;		/* of a request, from its start to its end */
	double		median_us;
	double		p99_us;
	int64		bytes;			/* read in all */
} LaMeasured;

typedef struct LaReader LaReader;

extern LaReader *la_reader_create(void);
extern void la_reader_use(LaReader *reader, const LaBlockFiles *files);
extern void la_reader_measure(LaReader *reader, const LaReadPattern *pattern,
							  LaMeasured *result);
extern void la_reader_destroy(LaReader *reader);

#endif							/* LA_DIRECTREAD_H */
