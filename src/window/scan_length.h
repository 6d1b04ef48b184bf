/*
 * scan_length.h
 *	  How many visits the scans of one plan node make, for the policies.
 *
 * A rescan begins a new scan.  The mean is a moving one, in sixteenths.
 *
 * src/window/scan_length.h
 */
#ifndef LA_SCAN_LENGTH_H
#define LA_SCAN_LENGTH_H

#include <stdbool.h>
#include <stdint.h>

#define LA_SIXTEENTHS	16
#define la_min(a, b)	((a) < (b) ? (a) : (b))
#define la_max(a, b)	((a) > (b) ? (a) : (b))

typedef struct LaScanLength
{
	int64_t		total;			/* visits of all scans */
	int64_t		start;			/* value of total when this one began */
	int64_t		scans;			/* completed so far */
	int32_t		mean;			/* visits of completed ones, 1/16ths */
} LaScanLength;

/* Visits of the current scan. */
static inline int64_t
la_scan_length_visits(const LaScanLength *length)
{
	return length->total - length->start;
}

/* Has the scan this many visits, or is it expected to have them? */
static inline bool
la_scan_length_reaches(const LaScanLength *length, int visits)
{
	return length->scans == 0 || la_scan_length_visits(length) >= visits ||
		length->mean >= visits * LA_SIXTEENTHS;
}

/* The scan ended.  Returns its visits in sixteenths, as averages count them. */
static inline int32_t
la_scan_length_end(LaScanLength *length)
{
	int64_t		n = la_scan_length_visits(length);
	int32_t		sixteenths = (int32_t) la_min(n, 100000) * LA_SIXTEENTHS;

	if (length->scans == 0)
		length->mean = sixteenths;
	else
		length->mean += (sixteenths - length->mean) / 4;
	length->scans++;
	length->start = length->total;
	return sixteenths;
}

/*
 * The average visits of scans that are ended early, 0 if there were none, after one more scan; all
 * in sixteenths.  It falls faster than it rises, since looking too far ahead wastes reads.
 */
static inline int32_t
la_scan_length_early(int32_t early, int32_t visits, bool ended_early)
{
	if (!ended_early)
		return early > 0 ? la_max(early, visits) : 0;
	if (early == 0)
		return visits;
	return early + (visits - early) / (visits < early ? 2 : 4);
}

#endif							/* LA_SCAN_LENGTH_H */
