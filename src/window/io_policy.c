/*
 * io_policy.c
 *	  When a scan looks ahead for reads, how far, and when it stops.
 *
 * The unit is the visit: the scan turns from one block to another.  Rows on the block that it
 * is already on do not count.
 *
 *			 a miss                 miss_threshold waits
 *	  PASS -----------> OBSERVE --------------------------------> ARMED
 *	   ^ ^                 |                                       | |
 *	   | +-----------------+                                       | |
 *	   |  FAST_ENOUGH fast reads (hold-off), HITS_ENOUGH hits      | |
 *	   +-----------------------------------------------------------+ |
 *	   |  IO_QUIET visits without a block to issue                   |
 *	   +-------------------------------------------------------------+
 *		  CONTROLS_ENOUGH fast controls in a row (hold-off)
 *
 * During a hold-off, misses are ignored; each is twice as long as the previous.  Look-ahead
 * that the cache policy wants (la_io_policy_assist) is ARMED as well; for_reads is false then,
 * until an issued block has been visited.
 *
 * Behaviours, cited by name:
 *
 *	EVIDENCE	With small shared buffers the operating system serves most misses in a few
 *		microseconds, and look-ahead costs more than it gains.  So misses are timed, and only
 *		waits count.
 *	COST		Where observing a visit means to make it twice (costly_to_observe), fewer hits
 *		in a row end OBSERVE, with a hold-off.
 *	RAMP		The number of foreseen visits doubles with each issued block that is consumed,
 *		up to max_distance, and where hits keep fewer blocks than that in flight, up to
 *		FORESEE_FACTOR times max_distance.  So a scan that is ended soon wastes few reads.  One
 *		that is read to its end, or whose end is known from earlier ones, starts at
 *		EXPECTED_DOUBT times what the planner expects, at most max_distance.  Hits do not shrink
 *		the number: on mixed data a distance that decays with each hit stays near 1.
 *	QUIET		A wait costs as much as hundreds of cached visits, so only IO_QUIET visits
 *		without a block to issue end ARMED.
 *	CONTROLS	The read of an issued block is fast whether or not it would have been a wait.
 *		So now and then a block is not issued but timed, as a control.  Slow controls make the
 *		interval longer, and so do waits for issued blocks, which cost nothing extra.
 *	LENGTH		Scans of one visit, such as primary key lookups below a nested loop, cannot look
 *		ahead and stay in PASS.  Where scans are ended early (LIMIT, semijoins), no more is
 *		foreseen than they visit on average.
 *	NEAR		The kernel may read blocks ahead that are close to each other, with larger
 *		requests than ours; when it does differs between systems.  In OBSERVE a wait close to
 *		the previous block counts a quarter, so that its read-ahead has time to begin, and fast
 *		reads there in a row, which show that it has, take something back.  In ARMED, runs of
 *		near blocks are left to it if at most NEAR_SLOW of NEAR_TRIAL reads are waits, else
 *		issued until the next trial.  (With half of them, read-ahead of 128 kB would keep every
 *		third read a wait.)  Waits from block to next block mean a busy disk, and never count.
 *		With kernel_reads_near, near waits are no evidence, but end OBSERVE, and ARMED ends when
 *		three quarters of the blocks are near the previous one.
 *	STREAMS		Short scans may together read a table in order, each continuing where another
 *		one ended.  The kernel sees many sequential streams and reads each ahead, which advice
 *		would prevent.  So where most blocks that are not cached have a cached predecessor, such
 *		blocks are left to the kernel.  As each stream starts with a wait or two, half of
 *		STREAM_TRIAL reads may be waits.
 *	DISTANT		The kernel reads 128 kB ahead, so that there is a wait now and then.  Where a read
 *		takes long, as on a volume behind a network, these waits are most of the time, few as they
 *		are.  So the mean time of reads counts, too, also of those from block to next block: if it
 *		exceeds KERNEL_US, the kernel is too slow, and lot_policy.c has its blocks issued by
 *		larger requests.  In OBSERVE its read-ahead has yet to begin, with waits that say nothing
 *		of it: a mean above KERNEL_US makes for another BEGUN_ENOUGH fast reads that count.
 *	HISTORY		With known_slow, the first miss arms.  Until a wait has been seen, at most
 *		ASSUMED_AHEAD visits are foreseen, each read that was not issued is a control, and
 *		ASSUMED_ENOUGH fast ones end ARMED.  Where the next block is seen to be near the one that
 *		was missed, the kernel reads ahead better if nothing is issued at all, and what is known of
 *		others is no evidence: the scan is observed.
 *	FIRST ROW	A scan's first row takes reads of the index's pages, one after the other, and one of
 *		the table.  If miss_threshold of them and more have taken min_read_us each, on average,
 *		then the next ones are presumed to be waits, as with known_slow.
 *	BEGIN		With begins_cold as well, a scan is ARMED from its first visit on, if the planner
 *		expects EXPECTED_WORTH visits: then a dozen blocks are read at the same time.
 *		BEGIN_QUIET cached ones end that.
 *	FORCE		ARMED from the start, with FORESEE_FACTOR * max_distance visits foreseen, for good.
 *
 * src/window/io_policy.c
 */
#include <string.h>

#include "window/io_policy.h"

#define FAST_ENOUGH			8	/* fast reads that end OBSERVE */
#define BEGUN_ENOUGH		16	/* ... after the kernel has begun */
#define HITS_ENOUGH			256 /* hits in a row that end OBSERVE */
#define HITS_ENOUGH_COSTLY	128 /* ... if costly_to_observe */
#define NEAR_ENOUGH			8	/* near waits that do, if kernel_reads_near */
#define IO_QUIET			1024
#define HOLDOFF_FIRST		64
#define HOLDOFF_LAST		4096
#define START_AHEAD			2
#define FORESEE_FACTOR		4
#define CONTROL_FIRST		16
#define CONTROL_LAST		1024
#define CONTROLS_ENOUGH		8
#define ASSUMED_ENOUGH		2
#define ASSUMED_AHEAD		16
#define BEGIN_VISITS		8	/* the first ones, as far as reads go */
#define BEGIN_QUIET			16
#define FIRST_READS			8	/* with more, the first row was not the first
								 * that was looked at */
#define EXPECTED_WORTH		2
#define EXPECTED_DOUBT		16	/* estimates are often too low */
#define FAR_WEIGHT			12	/* a wait far from the previous block */
#define NEAR_WEIGHT			3	/* ... near it */
#define KERNEL_WEIGHT		1	/* taken back by a fast read after another */
#define NEAR_TRIAL			16	/* near reads that make a trial */
#define NEAR_SLOW			4	/* so many of them may be waits */
#define NEAR_HOPELESS		3	/* ... or so many, if all are waits */
#define NEXT_TRIAL			64	/* reads from block to next block likewise */
#define KERNEL_US			50.0	/* mean time of a read, not exceeded near */
#define STREAM_TRIAL		512
#define STREAM_SLOW			256
#define TRIAL_PAUSE_FIRST	1024
#define TRIAL_PAUSE_LAST	65536
#define SHARE_UNIT			1024
#define SHARE_WEIGHT		16	/* blocks over which a share is averaged */

/* When a trial ends; see on_kernel_read(). */
typedef struct TrialRules
{
	int			reads;
	int			slow;			/* so many of them may be waits, */
	int			hopeless;		/* ... and not all of the first ones */
} TrialRules;

static const TrialRules near_rules = {NEAR_TRIAL, NEAR_SLOW, NEAR_HOPELESS};
static const TrialRules stream_rules = {STREAM_TRIAL, STREAM_SLOW, STREAM_TRIAL};

/* waits are expected; only their time matters */
static const TrialRules next_rules = {NEXT_TRIAL, NEXT_TRIAL, NEXT_TRIAL + 1};

static void
pass(LaIoPolicy *p)
{
	p->state = LA_PASS;
	p->slow = p->fast = p->near_waits = p->hits = 0;
	p->fast_run = p->observed = 0;
	p->begun = false;
	p->observed_us = 0.0;
	p->for_reads = false;
}

/* PASS with a hold-off. */
void
la_io_policy_hold_off(LaIoPolicy *p)
{
	pass(p);
	p->holdoff_until = p->length.total + p->holdoff_length;
	p->holdoff_length = la_min(p->holdoff_length * 2, HOLDOFF_LAST);
}

/* In state PASS: so many visits need not be reported one by one, as misses are ignored. */
int
la_io_policy_rest(const LaIoPolicy *p)
{
	if (!p->config.advice_works)
		return HOLDOFF_LAST;
	return (int) la_max(p->holdoff_until - p->length.total, 0);
}

/* So many of them have been made. */
void
la_io_policy_on_rest(LaIoPolicy *p, int visits)
{
	p->length.total += visits;
}

static void
hold_off_fast_reads(LaIoPolicy *p)
{
	la_io_policy_hold_off(p);
	p->verdict = LA_READS_FAST;
	p->config.known_slow = false;
}

/* Start to look ahead, by so many visits. */
static void
arm(LaIoPolicy *p, bool for_reads, bool assumed, int ahead)
{
	p->state = LA_ARMED;
	p->for_reads = for_reads;
	p->assumed = assumed;
	p->hit_run = 0;
	p->fast_controls = 0;
	p->control_interval = CONTROL_FIRST;
	p->until_control = CONTROL_FIRST;
	p->ahead = p->config.force ? FORESEE_FACTOR * p->config.max_distance : ahead;
}

/* RAMP: how many visits to foresee first.  LENGTH may want fewer. */
static int
first_ahead(const LaIoPolicy *p)
{
	const LaIoPolicyConfig *config = &p->config;

	if (!config->read_to_end && p->early_visits == 0)
		return START_AHEAD;
	if (config->expected == 0 || config->expected > config->max_distance)
		return config->max_distance;
	return la_min(config->expected * EXPECTED_DOUBT, config->max_distance);
}

static void
arm_for_reads(LaIoPolicy *p, bool assumed)
{
	arm(p, true, assumed, first_ahead(p));
}

void
la_io_policy_init(LaIoPolicy *p, const LaIoPolicyConfig *config)
{
	memset(p, 0, sizeof(*p));
	p->config = *config;
	p->holdoff_length = HOLDOFF_FIRST;
	p->near.leave = p->stream.leave = true;
	p->near.pause = p->stream.pause = TRIAL_PAUSE_FIRST;
	p->early_visits = config->early_visits;
	if (config->force)
		arm_for_reads(p, false);
	else if (config->known_slow && config->begins_cold && config->advice_works &&
			 config->expected >= EXPECTED_WORTH)
		arm_for_reads(p, true);
}

/* Never look ahead. */
void
la_io_policy_disable(LaIoPolicy *p)
{
	p->config.advice_works = p->config.force = false;
	pass(p);
}

/* The scan has ended, or starts again with other keys; ended_early: it was left before its end. */
void
la_io_policy_rescan(LaIoPolicy *p, bool ended_early)
{
	int32_t		visits = la_scan_length_end(&p->length);

	p->early_visits = la_scan_length_early(p->early_visits, visits, ended_early);

	/* LENGTH */
	if (p->state == LA_ARMED && !p->config.force &&
		!la_scan_length_reaches(&p->length, 2))
		pass(p);
}

/* A buffer was read for a visit in state PASS, which has been counted. */
void
la_io_policy_on_miss(LaIoPolicy *p)
{
	if (p->first_read == 0)
		p->first_read = p->length.total;
	if (p->length.total < p->holdoff_until || !p->config.advice_works ||
		!la_scan_length_reaches(&p->length, 2))
		return;
	p->state = LA_OBSERVE;
	if (p->config.miss_threshold == 0)
		arm_for_reads(p, false);
	else if (p->config.known_slow)
		arm_for_reads(p, true);
}

/* FIRST ROW: it has taken so many reads, and so long.  Were these waits? */
bool
la_io_policy_on_first_row(LaIoPolicy *p, int64_t reads, double us)
{
	bool		waits = reads > 0 && reads <= FIRST_READS &&
		us >= (double) reads * p->config.min_read_us;

	if (waits && reads >= p->config.miss_threshold)
		p->config.known_slow = true;
	return waits;
}

/* In state PASS: reads are waits, as those have shown that this policy was not told of. */
void
la_io_policy_on_wait(LaIoPolicy *p)
{
	if (!p->config.advice_works)
		return;
	p->verdict = LA_READS_SLOW;
	arm_for_reads(p, false);
}

/* The cache policy wants to look ahead by so many visits. */
void
la_io_policy_assist(LaIoPolicy *p, int distance)
{
	arm(p, false, false, distance);
}

/* HISTORY: the next block is near this one, which the scan's own reads have to judge. */
void
la_io_policy_doubt(LaIoPolicy *p)
{
	pass(p);
	p->assumed = false;
	p->state = LA_OBSERVE;
}

/* Another policy has decided: neither look ahead nor observe. */
void
la_io_policy_stop(LaIoPolicy *p)
{
	if (p->state != LA_PASS)
		pass(p);
}

/* QUIET, BEGIN: nothing was issued for this visit, nor waited for. */
static void
on_quiet_visit(LaIoPolicy *p)
{
	if (p->for_reads && ++p->hit_run > (p->first_read == 0 ? BEGIN_QUIET : IO_QUIET))
		pass(p);
}

/*
 * NEAR, STREAMS and DISTANT: a block left to the kernel had to be read.  A trial ends after so
 * many reads, or as soon as more were waits than may be.
 */
static void
on_kernel_read(LaIoPolicy *p, LaKernelTrial *trial, const TrialRules *rules, bool slow,
			   double us)
{
	bool		distant;

	if (slow)
		p->hit_run = 0;
	else
		on_quiet_visit(p);

	trial->reads++;
	if (slow)
		trial->slow++;
	trial->us += us;
	distant = trial->us > rules->reads * KERNEL_US;
	if (distant)
		p->kernel_is_slow = true;
	if (trial->slow > rules->slow || distant ||
		(trial->slow == trial->reads && trial->reads >= rules->hopeless))
	{
		trial->leave = trial->proven = false;
		trial->again_at = p->length.total + trial->pause;
		trial->pause = la_min(trial->pause * 2, TRIAL_PAUSE_LAST);
	}
	else if (trial->reads < rules->reads)
		return;
	else
	{
		trial->proven = true;
		p->kernel_is_slow = false;
	}
	trial->reads = trial->slow = 0;
	trial->us = 0.0;
}

static bool
leave_to_kernel(LaIoPolicy *p, LaKernelTrial *trial)
{
	if (!trial->leave && p->length.total >= trial->again_at)
		trial->leave = true;
	return trial->leave;
}

/* One more block: update the running average of a share; belongs: the block is part of it. */
static void
average(int *share, bool belongs)
{
	*share += ((belongs ? SHARE_UNIT : 0) - *share) / SHARE_WEIGHT;
}

/* A block to be foreseen is not cached; follows: its predecessor in the relation is. */
void
la_io_policy_on_uncached(LaIoPolicy *p, bool follows)
{
	average(&p->follow_share, follows);
}

/* STREAMS: is a block whose predecessor is cached left to the kernel now? */
bool
la_io_policy_leave_stream(LaIoPolicy *p)
{
	return p->follow_share >= SHARE_UNIT / 2 &&
		leave_to_kernel(p, &p->stream);
}

/* With kernel_reads_near: a block is foreseen; near: it is near the previous one. */
void
la_io_policy_on_foreseen(LaIoPolicy *p, bool near)
{
	average(&p->near_share, near);
}

/* NEAR: are runs of near blocks left to the kernel now? */
bool
la_io_policy_leave_near(LaIoPolicy *p)
{
	return leave_to_kernel(p, &p->near);
}

/* CONTROLS: reads are waits, as far as is known. */
static void
confirm_slow(LaIoPolicy *p)
{
	p->verdict = LA_READS_SLOW;
	p->assumed = false;
	p->ahead = la_max(p->ahead, first_ahead(p));
	p->fast_controls = 0;
	p->control_interval = la_min(p->control_interval * 2, CONTROL_LAST);
	p->until_control = p->control_interval;
	p->holdoff_length = HOLDOFF_FIRST;
}

/* RAMP */
static void
on_issued_visit(LaIoPolicy *p, bool slow)
{
	int			limit = FORESEE_FACTOR * p->config.max_distance;

	p->for_reads = true;
	p->hit_run = 0;
	if (slow && p->until_control <= p->control_interval / 2)
		confirm_slow(p);
	if (p->ahead < limit)
		p->ahead = la_min(p->ahead * 2, limit);
}

static void
on_control_visit(LaIoPolicy *p, bool slow)
{
	p->hit_run = 0;
	if (slow)
		confirm_slow(p);
	else if (++p->fast_controls >= (p->assumed ? ASSUMED_ENOUGH : CONTROLS_ENOUGH))
		hold_off_fast_reads(p);
	else
		p->until_control = 0;
}

static void
on_armed_visit(LaIoPolicy *p, LaVisitResult result, bool slow, double us)
{
	if (p->config.force)
		return;
	if (p->near_share >= SHARE_UNIT * 3 / 4)
	{
		/* NEAR */
		p->near_share = 0;
		hold_off_fast_reads(p);
		return;
	}

	switch (result)
	{
		case LA_VISIT_ISSUED:
			on_issued_visit(p, slow);
			break;
		case LA_VISIT_CONTROL:
			on_control_visit(p, slow);
			break;
		case LA_VISIT_MISS:
			if (p->assumed)
				on_control_visit(p, slow);
			p->hit_run = 0;
			break;
		case LA_VISIT_NEAR_MISS:
			on_kernel_read(p, &p->near, &near_rules, slow, us);
			break;
		case LA_VISIT_STREAM_MISS:
			on_kernel_read(p, &p->stream, &stream_rules, slow, us);
			break;
		case LA_VISIT_NEXT_MISS:
			on_kernel_read(p, &p->next, &next_rules, slow, us);
			break;
		case LA_VISIT_HIT:
			on_quiet_visit(p);
			break;
	}
}

/* In OBSERVE: FAST_ENOUGH, or BEGUN_ENOUGH.  DISTANT */
static void
on_fast_enough(LaIoPolicy *p)
{
	bool		distant = p->observed_us > p->observed * KERNEL_US &&
		!p->config.kernel_reads_near;

	if (!distant)
		hold_off_fast_reads(p);
	else if (p->begun)
	{
		p->kernel_is_slow = true;
		arm_for_reads(p, false);
	}
	else
	{
		p->begun = true;
		p->fast = FAST_ENOUGH - BEGUN_ENOUGH;
		p->observed = 0;
		p->observed_us = 0.0;
	}
}

static void
on_observed_visit(LaIoPolicy *p, LaVisitResult result, bool slow, double us)
{
	bool		near = result == LA_VISIT_NEAR_MISS ||
		result == LA_VISIT_NEXT_MISS;

	if (result == LA_VISIT_HIT)
	{
		p->hits++;
		if (p->config.costly_to_observe && p->hits >= HITS_ENOUGH_COSTLY)
			la_io_policy_hold_off(p);
		else if (p->hits >= HITS_ENOUGH)
			pass(p);
		return;
	}

	/* EVIDENCE, NEAR */
	p->hits = 0;
	p->observed++;
	p->observed_us += us;
	p->fast_run = slow ? 0 : p->fast_run + 1;
	if (!slow)
	{
		p->fast++;
		if (near && p->fast_run > 1)
			p->slow = la_max(p->slow - KERNEL_WEIGHT, 0);
	}
	else if (near && p->config.kernel_reads_near)
		p->near_waits++;
	else if (result != LA_VISIT_NEXT_MISS)
		p->slow += near ? NEAR_WEIGHT : FAR_WEIGHT;

	if (p->slow >= p->config.miss_threshold * FAR_WEIGHT)
	{
		p->verdict = LA_READS_SLOW;
		arm_for_reads(p, false);
	}
	else if (p->fast >= FAST_ENOUGH)
		on_fast_enough(p);
	else if (p->near_waits >= NEAR_ENOUGH)
		la_io_policy_hold_off(p);
}

/* A visit in state OBSERVE or ARMED; us is how long the read took, 0 for a hit. */
void
la_io_policy_on_visit(LaIoPolicy *p, LaVisitResult result, double us)
{
	bool		slow = us >= p->config.min_read_us;

	p->length.total++;
	if (result != LA_VISIT_HIT && p->first_read == 0)
		p->first_read = p->length.total;
	if (p->state == LA_ARMED)
		on_armed_visit(p, result, slow, us);
	else if (p->state == LA_OBSERVE)
		on_observed_visit(p, result, slow, us);
}

/* CONTROLS: is the next block that is not cached to be a control? */
bool
la_io_policy_control_due(const LaIoPolicy *p)
{
	return p->until_control == 0 && !p->config.force;
}

/* It has become one.  Hardly any other block does before it has been visited. */
void
la_io_policy_on_control(LaIoPolicy *p)
{
	p->until_control = CONTROL_LAST;
}

/* It will not be visited, or was found cached: the next block that is not cached is another. */
void
la_io_policy_on_lost_control(LaIoPolicy *p)
{
	p->until_control = 0;
}

void
la_io_policy_on_issue(LaIoPolicy *p)
{
	if (p->until_control > 0)
		p->until_control--;
}

/* How many visits to foresee now. */
int
la_io_policy_visits_ahead(const LaIoPolicy *p)
{
	int64_t		ahead = p->ahead;

	/* HISTORY */
	if (p->assumed && ahead > ASSUMED_AHEAD)
		ahead = ASSUMED_AHEAD;

	/* LENGTH */
	if (p->early_visits > 0 && !p->config.force)
	{
		/* the visit that is being made is not yet counted */
		int64_t		left = (p->early_visits + LA_SIXTEENTHS - 1) / LA_SIXTEENTHS -
			la_scan_length_visits(&p->length) - 1;

		/* a scan longer than usual ramps up again */
		if (left < 0)
			left = -left;
		if (ahead > left)
			ahead = left;
	}
	return (int) ahead;
}

/* BEGIN: would the first scan have gained from look-ahead from its first visit on? */
bool
la_io_policy_began_cold(const LaIoPolicy *p)
{
	return p->first_read > 0 && p->first_read <= BEGIN_VISITS && p->length.total >= EXPECTED_WORTH;
}

/* What has been learnt of reads.  HISTORY: that one was fast is little, but more than nothing. */
LaIoVerdict
la_io_policy_verdict(const LaIoPolicy *p)
{
	if (p->verdict == LA_READS_UNKNOWN && p->assumed && p->fast_controls > 0)
		return LA_READS_SEEM_FAST;
	return p->verdict;
}
