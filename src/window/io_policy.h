/*
 * io_policy.h
 *	  When a scan looks ahead for reads, how far, and when it stops.
 *
 * Pure functions of counters, without I/O, memory, or PostgreSQL's headers: test/unit simulates
 * scans.  See io_policy.c.
 *
 * src/window/io_policy.h
 */
#ifndef LA_IO_POLICY_H
#define LA_IO_POLICY_H

#include "window/scan_length.h"

/* So close that the kernel's read-ahead for one block may read the other. */
#define LA_NEAR_BLOCKS	16

/* In which order are blocks issued?  See lot_policy.c. */
typedef enum LaIssueOrder
{
	LA_ORDER_BY_PROBE,			/* of the table, if a probe finds neighbours */
	LA_ORDER_OF_NEED,
	LA_ORDER_OF_TABLE
} LaIssueOrder;

typedef struct LaIoPolicyConfig
{
	int			max_distance;	/* blocks in flight, at most */
	int			miss_threshold; /* waits before look-ahead begins */
	double		min_read_us;	/* a faster read is no wait */
	int			touch_distance; /* visits whose cached pages are touched ahead */
	bool		advice_works;	/* reads can be started */
	bool		read_to_end;	/* the scan will not be left early */
	bool		end_is_certain; /* ... as the plan shows, not earlier scans */
	bool		known_slow;		/* reads were waits in an earlier scan, or for
								 * the first row */
	bool		begins_cold;	/* ... and among the first visits */
	int			expected;		/* visits that the planner expects, or 0 */
	int32_t		early_visits;	/* of earlier scans that were ended early,
								 * 1/16ths, or 0 */
	bool		costly_to_observe;	/* to observe a visit is to make it twice */
	LaIssueOrder order;
	bool		kernel_reads_near;	/* advice would spoil its read-ahead */
	bool		force;			/* look ahead at once and for good */
	bool		supply_varies;	/* few visits that can be foreseen now do not
								 * mean few later */
} LaIoPolicyConfig;

typedef enum LaIoState
{
	LA_PASS,					/* only misses are noticed */
	LA_OBSERVE,					/* reads are timed, nothing more */
	LA_ARMED					/* looking ahead */
} LaIoState;

/* What has been learnt of reads. */
typedef enum LaIoVerdict
{
	LA_READS_UNKNOWN,
	LA_READS_SLOW,				/* they are waits */
	LA_READS_FAST,				/* the operating system has the blocks */
	LA_READS_SEEM_FAST			/* the same, of too few reads */
} LaIoVerdict;

/* What became of one visit to a block. */
typedef enum LaVisitResult
{
	LA_VISIT_HIT,				/* in shared buffers */
	LA_VISIT_MISS,				/* read, and not issued before */
	LA_VISIT_NEAR_MISS,			/* the same, close to the previous block */
	LA_VISIT_NEXT_MISS,			/* the same, the block after the previous one */
	LA_VISIT_STREAM_MISS,		/* the same, after a block that was cached */
	LA_VISIT_CONTROL,			/* the same, as a control */
	LA_VISIT_ISSUED				/* read, and issued before */
} LaVisitResult;

/* Blocks of some kind are left to the kernel: does it read them ahead? */
typedef struct LaKernelTrial
{
	bool		leave;			/* they are left to it */
	bool		proven;			/* it does, by the last trial */
	int			reads;			/* on trial */
	int			slow;			/* ... that were waits */
	double		us;				/* ... and their time */
	int64_t		again_at;		/* visit of the next trial */
	int			pause;			/* visits between trials */
} LaKernelTrial;

typedef struct LaIoPolicy
{
	LaIoPolicyConfig config;
	LaIoState	state;
	LaIoVerdict verdict;
	LaScanLength length;
	int64_t		first_read;		/* first visit that had to read, or 0 */
	int32_t		early_visits;	/* of scans ended early, 1/16ths, or 0 */

	/* PASS and OBSERVE */
	int64_t		holdoff_until;	/* no OBSERVE before this visit */
	int			holdoff_length; /* visits, the next time */
	int			slow;			/* timed reads that were waits, weighted */
	int			near_waits;		/* ... near the block before */
	int			fast;			/* timed reads that were not */
	int			fast_run;		/* ... since the last wait */
	int			hits;			/* visits since the last miss */
	bool		begun;			/* so has the kernel's read-ahead */
	int			observed;		/* reads since then, or since OBSERVE began */
	double		observed_us;	/* their time */

	/* ARMED */
	bool		for_reads;		/* not for the cache policy only */
	bool		assumed;		/* waits are known from an earlier scan only */
	int			ahead;			/* visits to foresee */
	int			hit_run;		/* visits since a block was issued */
	int			control_interval;	/* issued blocks between controls */
	int			until_control;
	int			fast_controls;	/* in a row */

	bool		kernel_is_slow; /* behaviour DISTANT */
	LaKernelTrial next;
	LaKernelTrial near;			/* behaviour NEAR */
	LaKernelTrial stream;		/* behaviour STREAMS */
	int			near_share;		/* of foreseen blocks, those near the one
								 * before, in 1/1024ths */
	int			follow_share;	/* of blocks not cached, those whose
								 * predecessor is, in 1/1024ths */
} LaIoPolicy;

extern void la_io_policy_init(LaIoPolicy *p, const LaIoPolicyConfig *config);
extern void la_io_policy_disable(LaIoPolicy *p);
extern void la_io_policy_rescan(LaIoPolicy *p, bool ended_early);
extern void la_io_policy_on_miss(LaIoPolicy *p);
extern void la_io_policy_on_wait(LaIoPolicy *p);
extern bool la_io_policy_on_first_row(LaIoPolicy *p, int64_t reads, double us);
extern void la_io_policy_on_visit(LaIoPolicy *p, LaVisitResult result, double us);
extern void la_io_policy_assist(LaIoPolicy *p, int distance);
extern void la_io_policy_stop(LaIoPolicy *p);
extern void la_io_policy_doubt(LaIoPolicy *p);
extern void la_io_policy_hold_off(LaIoPolicy *p);
extern int	la_io_policy_rest(const LaIoPolicy *p);
extern void la_io_policy_on_rest(LaIoPolicy *p, int visits);
extern bool la_io_policy_control_due(const LaIoPolicy *p);
extern void la_io_policy_on_control(LaIoPolicy *p);
extern void la_io_policy_on_lost_control(LaIoPolicy *p);
extern void la_io_policy_on_issue(LaIoPolicy *p);
extern void la_io_policy_on_foreseen(LaIoPolicy *p, bool near);
extern bool la_io_policy_leave_near(LaIoPolicy *p);
extern void la_io_policy_on_uncached(LaIoPolicy *p, bool follows);
extern bool la_io_policy_leave_stream(LaIoPolicy *p);
extern int	la_io_policy_visits_ahead(const LaIoPolicy *p);
extern bool la_io_policy_began_cold(const LaIoPolicy *p);
extern LaIoVerdict la_io_policy_verdict(const LaIoPolicy *p);

/* A visit in state PASS; missed: a buffer has been read since the previous one. */
static inline void
la_io_policy_on_pass(LaIoPolicy *p, bool missed)
{
	p->length.total++;
	if (missed)
		la_io_policy_on_miss(p);
}

#endif							/* LA_IO_POLICY_H */
