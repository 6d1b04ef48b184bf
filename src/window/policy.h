/*
 * policy.h
 *	  When to look ahead, how far, and when to stop: counters in, decisions out.
 *
 * No I/O, no memory, no PostgreSQL: see policy.c, and test/unit for the
 * simulation.
 *
 * src/window/policy.h
 */
#ifndef LA_POLICY_H
#define LA_POLICY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct LaPolicyConfig
{
	int			max_distance;	/* blocks in flight, at most */
	int			miss_threshold; /* slow reads waited for before arming */
	double		min_read_us;	/* a faster read was no wait */
	int			memory_threshold;	/* cached visits before memory look-ahead,
									 * or -1 */
	int			memory_distance;	/* visits to touch ahead */
	int			memory_trial;	/* visits timed without it, and with it */
	double		memory_faster;	/* it is kept below this share of the time */
	double		memory_visit_us;	/* longer visits have little to gain */
	bool		advice_works;	/* false under direct I/O */
	bool		read_to_end;	/* the scan will not be left early */
	bool		known_slow;		/* reads were waits the last time */
	bool		known_unhelpful;	/* memory look-ahead was not faster */
	bool		nested_loop;	/* visits are made by inner scans, and to be
								 * observed are made twice */
	bool		force;			/* arm at once, never disarm */
} LaPolicyConfig;

/* Blocks no further apart than this are near to each other. */
#define LA_NEAR_BLOCKS	16

typedef enum LaPolicyState
{
	LA_PASS,					/* untouched but for two comparisons */
	LA_OBSERVE,					/* heap reads are timed, nothing more */
	LA_ARMED					/* looking ahead */
} LaPolicyState;

/* See policy.c, behaviour I. */
typedef enum LaMemoryPhase
{
	LA_MEMORY_IDLE,
	LA_MEMORY_SETTLE,			/* passive again, not yet timed */
	LA_MEMORY_PASSIVE,			/* passive, timed */
	LA_MEMORY_WARM_UP,			/* armed, not yet timed */
	LA_MEMORY_TRIAL,			/* armed, timed */
	LA_MEMORY_KEPT				/* armed, since it was faster */
} LaMemoryPhase;

/* What was learnt of reads that were timed. */
typedef enum LaVerdict
{
	LA_READS_UNKNOWN,
	LA_READS_SLOW,				/* they are waits */
	LA_READS_FAST				/* the operating system has the blocks */
} LaVerdict;

/* The same of memory look-ahead. */
typedef enum LaMemoryVerdict
{
	LA_MEMORY_UNKNOWN,
	LA_MEMORY_FASTER,
	LA_MEMORY_NOT_FASTER
} LaMemoryVerdict;

/* What became of one visit to a heap block. */
typedef enum LaVisitResult
{
	LA_VISIT_HIT,				/* it was in shared buffers */
	LA_VISIT_MISS,				/* read without having been issued */
	LA_VISIT_NEAR_MISS,			/* the same, close to the previous block */
	LA_VISIT_NEXT_MISS,			/* the same, the block after the previous one */
	LA_VISIT_STREAM_MISS,		/* the same, after a block read by a scan
								 * before */
	LA_VISIT_CONTROL,			/* the same, left out of advice on purpose */
	LA_VISIT_ISSUED				/* read after having been issued */
} LaVisitResult;

/* Blocks of some kind are left to the kernel: does it read them ahead? */
typedef struct LaTrial
{
	bool		leave;			/* leave them to it */
	bool		proven;			/* it does, by the last trial */
	int			reads;			/* on trial */
	int			slow;			/* ... that were waits */
	int64_t		again_at;		/* value of total for the next trial */
	int			pause;			/* visits between trials */
} LaTrial;

typedef struct LaPolicy
{
	LaPolicyConfig config;
	LaPolicyState state;
	LaVerdict	verdict;
	LaMemoryVerdict memory_verdict;

	/* PASS and OBSERVE */
	int64_t		holdoff_until;	/* value of total from which to observe again */
	int			holdoff_length; /* visits, the next time */
	int			slow;			/* timed reads that were waits, weighted */
	int			fast;			/* timed reads that were not */
	int			near_waits;		/* ... that were, near the block before */
	int			hits;			/* visits since the last miss */
	int			quiet_hits;		/* so many need no decision */

	/* ARMED */
	int			ahead;			/* visits to foresee */
	bool		io;				/* armed for reads, not only for memory */
	int			hit_run;		/* visits since a block was issued */
	int			control_interval;	/* issued blocks between controls */
	int			until_control;
	int			fast_controls;	/* in a row */
	bool		assumed;		/* armed without evidence of this scan's own */

	/* is memory look-ahead faster here? */
	LaMemoryPhase phase;
	int64_t		clock_at;		/* value of total when the time is wanted */
	double		phase_start_us;
	double		passive_us;		/* what TRIAL_VISITS took without it */
	int64_t		memory_again_at;	/* value of total for the next trial */
	int			memory_pause;	/* visits between trials */

	/* blocks left to the kernel's read-ahead, behaviours G and K */
	LaTrial		near;
	LaTrial		stream;
	int			near_share;		/* of foreseen blocks, those near the one
								 * before, 1/1024ths; in nested loops */
	int			follow_share;	/* of blocks not cached, those whose
								 * predecessor was, 1/1024ths */

	/* rescans */
	int64_t		total;			/* visits of all scans */
	int64_t		scan_start;		/* value of total when this one began */
	int64_t		scans;			/* completed so far */
	int32_t		mean_visits;	/* of completed ones, 1/16ths */
	int32_t		early_visits;	/* of those that were ended early, 1/16ths, 0
								 * if none was */
} LaPolicy;

extern void la_policy_init(LaPolicy *p, const LaPolicyConfig *config);
extern void la_policy_rescan(LaPolicy *p, bool ended_early);
extern void la_policy_on_pass(LaPolicy *p, bool missed);
extern void la_policy_rest(LaPolicy *p);
extern void la_policy_on_read(LaPolicy *p);
extern void la_policy_on_visit(LaPolicy *p, LaVisitResult result, double us);
extern void la_policy_on_clock(LaPolicy *p, double now_us);
extern bool la_policy_control_due(const LaPolicy *p);
extern void la_policy_on_control(LaPolicy *p);
extern void la_policy_on_issue(LaPolicy *p);
extern bool la_policy_leave_near(LaPolicy *p);
extern void la_policy_on_foreseen(LaPolicy *p, bool near);
extern void la_policy_on_uncached(LaPolicy *p, bool follows);
extern bool la_policy_leave_stream(LaPolicy *p);
extern int	la_policy_visits_ahead(const LaPolicy *p);

/*
 * A visit in state PASS without a miss, as most are.  Returns false if it is one
 * that needs a decision; then la_policy_on_pass() counts it.
 */
static inline bool
la_policy_quiet_visit(LaPolicy *p)
{
	if (p->hits >= p->quiet_hits || p->total + 1 >= p->clock_at)
		return false;
	p->hits++;
	p->total++;
	return true;
}

/* Does the policy want to know the time? */
static inline bool
la_policy_clock_due(const LaPolicy *p)
{
	return p->total >= p->clock_at;
}

#endif							/* LA_POLICY_H */
