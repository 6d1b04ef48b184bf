/*
 * simulation.h
 *	  A simulated scan under the policies of src/window: traces in, decisions out.
 *
 * The scan visits blocks one after another.  Where a block is, a letter of the
 * trace says:
 *
 *		h	in shared buffers
 *		o	in the operating system's cache: a read takes 4 us
 *		d	on disk: a read takes 90 us
 *		n	on disk, and the block after the one before
 *		m	a mix: every other block as o, the rest as d
 *
 * The simulation keeps the ring of foreseen blocks as window.c does, asks the
 * policies what window.c and an index scan ask, and reports what they report.
 * Time is counted in reads that had to be waited for, not measured.
 *
 * test/unit/simulation.h
 */
#ifndef SIMULATION_H
#define SIMULATION_H

#include "window/scan_policy.h"

#define OS_CACHE_US		4.0
#define DISK_US			90.0
#define RING			8192

typedef enum Mark
{
	NOT_CACHED,
	CACHED,
	ISSUED,
	CONTROL
} Mark;

typedef struct Sim
{
	LaIoPolicy	io;
	LaCachePolicy cache;
	Mark		ring[RING];
	long		head;			/* visits consumed while armed */
	long		tail;			/* visits foreseen */
	int			in_flight;

	long		visit;			/* of the whole simulation, for 'm' */
	long		armed_at;		/* first visit that was armed, or -1 */
	long		armed_visits;
	long		observed;		/* visits in state OBSERVE */
	long		waits;			/* slow reads that were waited for */
	long		issued;
	long		issued_in_vain; /* of blocks that the OS had */
	long		wasted;
	int			max_in_flight;
	int			max_ahead;

	double		now_us;			/* simulated time, for cache prefetch */
	double		passive_us;		/* per cached visit, passive */
	double		armed_us;		/* ... armed */
} Sim;

extern const LaIoPolicyConfig io_defaults;
extern const LaCachePolicyConfig cache_defaults;

extern void check(const char *what, bool ok);
extern int	report(void);
extern void start(Sim *s, const LaIoPolicyConfig *io, const LaCachePolicyConfig *cache);
extern void visit(Sim *s, char trace_place, long left);
extern void visits(Sim *s, char place, long n);
extern void rescan(Sim *s, bool early);

#endif							/* SIMULATION_H */
