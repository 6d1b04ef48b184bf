/*
 * policy.c
 *	  When to look ahead, how far, and when to stop.
 *
 * The unit of everything here is the visit: the scan turns from one heap block
 * to another.  Visits to the block it is already on do not count.
 *
 *			  miss seen               miss_threshold slow reads
 *	  PASS ---------------> OBSERVE ---------------------------> ARMED (io)
 *	   ^ |                     |                                   |   |
 *	   | |  FAST_ENOUGH fast reads, or HITS_ENOUGH hits            |   |
 *	   | +<--------------------+     (then holdoff, doubling)      |   |
 *	   |                                                           |   |
 *	   |  memory_threshold visits, all hits                        |   |
 *	   +------------------------------------> ARMED (memory)       |   |
 *	   +<-------------------------------------+ was not faster     |   |
 *	   +<----------------------------------------------------------+   |
 *	   |					 IO_QUIET visits without a block to issue  |
 *	   +<--------------------------------------------------------------+
 *		  CONTROLS_ENOUGH controls in a row were fast: the operating system
 *		  has the blocks in its cache, and advice is wasted work
 *
 * Behaviours, which the comments below and test/unit cite:
 *	A. PASS costs a scan two comparisons per row: short and cached queries pay
 *	   nothing that can be measured.
 *	B. A miss alone is no evidence: with a small shared_buffers it is most often
 *	   served by the operating system in a few microseconds.  So misses are
 *	   timed, and only waits count (short scans: Knizhnik's LIMIT table of 2025,
 *	   where look-ahead by default lost 4x on LIMIT 1).
 *	   In a nested loop the inner search is made twice to be observed, so hits in a
 *	   row end it sooner, and are followed by a hold-off as well: TPC-H's query 22,
 *	   whose inner pages come one after the other, had lost a sixth by being
 *	   observed all the time.
 *	C. Armed, the number of visits foreseen doubles with each issued block that
 *	   is consumed, up to max_distance; beyond that, to FORESEE_FACTOR times
 *	   max_distance, while so many visits are hits that fewer blocks than
 *	   max_distance are in flight.  The ramp protects queries that stop early
 *	   from reads they never use; where the plan tells that the scan is read to
 *	   its end (read_to_end), it begins at max_distance.  (A distance that decays
 *	   with every hit stays near 1 on mixed data, as core's patch found.)
 *	D. When no block had to be issued for IO_QUIET visits, the scan goes back to
 *	   PASS.  Not sooner: a wait is worth hundreds of cached visits, so rare
 *	   misses pay for a look at many hits.
 *	E. Once blocks are issued, their reads are fast whether or not they would
 *	   have been waits.  So now and then one block, a control, is left alone
 *	   and timed.  Controls get rarer while they confirm that reads are slow.
 *	   An issued block that is waited for confirms it as well, for free: a
 *	   control costs the latency of a full queue.
 *	F. A rescan keeps what was learnt, and learns how long scans are.  Scans that
 *	   visit one block each, such as the inner side of a nested loop over a
 *	   primary key, cannot look ahead within themselves and stay in PASS.  Where
 *	   rescans are ended early (LIMIT, semi joins), no more visits are foreseen
 *	   than scans have used on average.
 *	G. Reads close to each other may be served by the kernel's own read-ahead,
 *	   with requests larger than ours.  Whether it sees the pattern, and how far
 *	   it reads, differs from system to system (128 kB to many MB).  So in
 *	   OBSERVE a wait close to the previous block is only a quarter of the
 *	   evidence: read-ahead gets the time to set in.  Armed, runs of near blocks
 *	   are left to the kernel as long as at most a quarter of their reads are
 *	   waits, else issued like others, and tried again later.  (With half of them,
 *	   the kernel's read-ahead of 128 kB would keep every third read a wait.)  A
 *	   trial has its answer when the blocks are visited, so until then no more
 *	   than MAX_UNDECIDED of them are foreseen (window.c).  Reads from block to
 *	   next block are the kernel's always: waits there mean that the disk is busy
 *	   with large requests, and small ones of ours would only disturb it.
 *	   In nested loops waits close to the previous block are no evidence, but end
 *	   OBSERVE: where outer rows come in the order of the inner table (TPC-H's query
 *	   4), issued blocks spoil the read-ahead that stock has.  If it is armed all the
 *	   same, it goes back to PASS when three quarters of the blocks are near the
 *	   one before.
 *	H. force ignores all that: armed from the first row, at full distance.
 *	I. Memory look-ahead takes 1.7 times as little time where pages come from
 *	   memory, and a tenth or two more where they are in the CPU's caches
 *	   (figures in bench/).  Which is the case cannot be seen from the blocks, so
 *	   it is timed: memory_trial visits without, as many with it, and it is kept
 *	   only if it was faster.  Both answers are checked again now and then.  A
 *	   visit of many rows, or of rows that much is done with, has little of its
 *	   time to gain: beyond memory_visit_us no visits are spent on a trial.  Nor are
 *	   they at the beginning of a scan of which an earlier one of this session has
 *	   found that it was not faster (known_unhelpful).
 *	J. What one scan has learnt of an index, the next one of this session begins
 *	   with: known_slow arms at the first miss, untimed.  Whether that still
 *	   holds is checked by controls, soon (ASSUMED_FIRST issued blocks) and
 *	   strictly (ASSUMED_ENOUGH fast ones end it); no more than ASSUMED_AHEAD
 *	   visits are foreseen until a wait has confirmed it.
 *	K. Short scans may together read a table from end to end: each visits the
 *	   blocks next to those of the one before (TPC-H's query 2: suppliers in
 *	   order, 80 rows each).  The kernel sees 80 streams, and once it has started
 *	   them reads each in large pieces, where advice makes it read every block for
 *	   itself.  So where the predecessor of most blocks is cached, these blocks
 *	   are left alone for STREAM_TRIAL reads, of which half may be waits: it takes
 *	   a wait or two for each stream to start.
 *
 * src/window/policy.c
 */
#include <string.h>

#include "window/policy.h"

#define FAST_ENOUGH			8	/* fast reads that end OBSERVE */
#define HITS_ENOUGH			256 /* hits in a row that end OBSERVE */
#define HITS_ENOUGH_INNER	128 /* ... in a nested loop */
#define NEAR_ENOUGH			8	/* near waits that end it there */
#define IO_QUIET			1024
#define HOLDOFF_FIRST		64
#define HOLDOFF_LAST		4096
#define START_AHEAD			2
#define FORESEE_FACTOR		4
#define CONTROL_FIRST		16
#define CONTROL_LAST		1024
#define CONTROLS_ENOUGH		8
#define ASSUMED_FIRST		4
#define ASSUMED_ENOUGH		2
#define ASSUMED_AHEAD		16
#define FAR_WEIGHT			4	/* a wait far from the previous block */
#define NEAR_TRIAL			16	/* near reads that make a trial */
#define NEAR_SLOW			4	/* so many of them may be waits */
#define STREAM_TRIAL		512
#define STREAM_SLOW			256
#define TRIAL_PAUSE_FIRST	1024
#define TRIAL_PAUSE_LAST	65536
#define SHARE_UNIT			1024
#define SHARE_WEIGHT		16	/* blocks over which the share is averaged */
#define WARM_UP_VISITS		16
#define SETTLE_VISITS		512 /* more than a leaf page has items, mostly */
#define MEMORY_KEPT			16384	/* visits, until it is checked again */
#define MEMORY_PAUSE_FIRST	8192
#define MEMORY_PAUSE_LAST	(1 << 20)
#define SIXTEENTHS			16

static int
min_int(int a, int b)
{
	return a < b ? a : b;
}

static int
max_int(int a, int b)
{
	return a > b ? a : b;
}

/* Visits of the current scan. */
static int64_t
visits(const LaPolicy *p)
{
	return p->total - p->scan_start;
}

static bool
memory_wanted(const LaPolicy *p)
{
	return p->config.memory_threshold >= 0;
}

static void
set_phase(LaPolicy *p, LaMemoryPhase phase, int64_t visits_to_clock)
{
	p->phase = phase;
	if (phase == LA_MEMORY_PASSIVE)
		p->phase_start_us = 0;	/* not that of a trial which a miss ended */
	p->clock_at = phase == LA_MEMORY_IDLE ? INT64_MAX :
		p->total + visits_to_clock;
}

static void
pass(LaPolicy *p)
{
	p->state = LA_PASS;
	p->slow = p->fast = p->near_waits = p->hits = 0;
	p->io = false;
	set_phase(p, LA_MEMORY_IDLE, 0);
}

/* Look again later, and later each time. */
static void
look_away(LaPolicy *p)
{
	pass(p);
	p->holdoff_until = p->total + p->holdoff_length;
	p->holdoff_length = min_int(p->holdoff_length * 2, HOLDOFF_LAST);
}

/* Reads turned out to be fast. */
static void
hold_off(LaPolicy *p)
{
	look_away(p);
	p->verdict = LA_READS_FAST;
	p->config.known_slow = false;
}

static void
arm(LaPolicy *p, bool io, bool assumed)
{
	p->state = LA_ARMED;
	p->io = io;
	p->assumed = assumed;
	p->hit_run = 0;
	p->fast_controls = 0;
	p->control_interval = CONTROL_FIRST;
	p->until_control = assumed ? ASSUMED_FIRST : CONTROL_FIRST;
	if (p->config.force)
		p->ahead = FORESEE_FACTOR * p->config.max_distance;
	else if (!io)
		p->ahead = p->config.memory_distance;
	else
		p->ahead = p->config.read_to_end ? p->config.max_distance : START_AHEAD;
}

/*
 * Behaviour F: is there more than one visit to expect of this scan?
 */
static bool
long_enough(const LaPolicy *p, int wanted)
{
	return p->scans == 0 || visits(p) >= wanted ||
		p->mean_visits >= wanted * SIXTEENTHS;
}

void
la_policy_init(LaPolicy *p, const LaPolicyConfig *config)
{
	memset(p, 0, sizeof(*p));
	p->config = *config;
	p->holdoff_length = HOLDOFF_FIRST;
	p->quiet_hits = memory_wanted(p) ? config->memory_threshold : INT32_MAX;
	p->memory_pause = MEMORY_PAUSE_FIRST;
	if (config->known_unhelpful)
		p->memory_again_at = MEMORY_PAUSE_FIRST;
	p->near.leave = p->stream.leave = true;
	p->near.pause = p->stream.pause = TRIAL_PAUSE_FIRST;
	pass(p);
	if (config->force)
		arm(p, true, false);
}

/*
 * The scan ended, or starts again with other keys; ended_early tells whether it
 * was left before its end.
 */
void
la_policy_rescan(LaPolicy *p, bool ended_early)
{
	int64_t		n = visits(p);
	int32_t		sixteenths = (int32_t) (n < 100000 ? n : 100000) * SIXTEENTHS;

	if (p->scans == 0)
		p->mean_visits = sixteenths;
	else
		p->mean_visits += (sixteenths - p->mean_visits) / 4;

	if (ended_early)
		p->early_visits = p->early_visits == 0 ? sixteenths :
			p->early_visits + (sixteenths - p->early_visits) / 4;
	else if (p->early_visits > 0)
		p->early_visits = max_int(p->early_visits, sixteenths);

	p->scans++;
	p->scan_start = p->total;

	/* F: nothing to gain from scans of one visit */
	if (p->state == LA_ARMED && !p->config.force && !long_enough(p, 2))
		pass(p);
}

/*
 * A visit in state PASS; missed tells whether any buffer was read since the
 * previous one.
 */
void
la_policy_on_pass(LaPolicy *p, bool missed)
{
	p->total++;

	if (!missed)
	{
		if (++p->hits <= p->quiet_hits || p->phase != LA_MEMORY_IDLE)
			return;
		p->hits = 0;
		if (p->total >= p->holdoff_until && p->total >= p->memory_again_at &&
			long_enough(p, p->config.memory_threshold / 4))
			set_phase(p, LA_MEMORY_PASSIVE, 0);
		return;
	}

	p->hits = 0;
	set_phase(p, LA_MEMORY_IDLE, 0);
	if (p->total < p->holdoff_until ||
		!p->config.advice_works || !long_enough(p, 2))
		return;
	p->state = LA_OBSERVE;
	if (p->config.miss_threshold == 0)
		arm(p, true, false);
	else if (p->config.known_slow)
		arm(p, true, true);
}

/*
 * Whoever has two policies and has decided by the other one: no more reads are to
 * be timed for this one.
 */
void
la_policy_rest(LaPolicy *p)
{
	if (p->state == LA_OBSERVE)
		pass(p);
}

/*
 * For a policy of memory look-ahead only: something had to be read, so that it cannot
 * help, nor be timed.
 */
void
la_policy_on_read(LaPolicy *p)
{
	p->total++;
	pass(p);
}

/*
 * Behaviours G and K: a block left to the kernel had to be read.  After `length`
 * reads, or as soon as more than `most_slow` were waits, there is an answer.
 */
static void
on_trial_read(LaPolicy *p, LaTrial *trial, int length, int most_slow,
			  bool slow)
{
	trial->reads++;
	if (slow)
		trial->slow++;
	if (trial->slow > most_slow)
	{
		trial->leave = trial->proven = false;
		trial->again_at = p->total + trial->pause;
		trial->pause = min_int(trial->pause * 2, TRIAL_PAUSE_LAST);
	}
	else if (trial->reads < length)
		return;
	else
		trial->proven = true;
	trial->reads = trial->slow = 0;
}

static bool
leave_to_kernel(LaPolicy *p, LaTrial *trial)
{
	if (!trial->leave && p->total >= trial->again_at)
		trial->leave = true;
	return trial->leave;
}

/* A running average of the share of those that are. */
static void
average(int *share, bool is)
{
	*share += ((is ? SHARE_UNIT : 0) - *share) / SHARE_WEIGHT;
}

/*
 * A block to be foreseen is not cached; follows: the one before it is.
 */
void
la_policy_on_uncached(LaPolicy *p, bool follows)
{
	average(&p->follow_share, follows);
}

/*
 * Is a block that follows a cached one left to the kernel now?
 */
bool
la_policy_leave_stream(LaPolicy *p)
{
	return p->follow_share >= SHARE_UNIT / 2 &&
		leave_to_kernel(p, &p->stream);
}

/*
 * In nested loops: a block is foreseen; near: to the one before.
 */
void
la_policy_on_foreseen(LaPolicy *p, bool near)
{
	average(&p->near_share, near);
}

/*
 * Are runs of near blocks left to the kernel now?
 */
bool
la_policy_leave_near(LaPolicy *p)
{
	return leave_to_kernel(p, &p->near);
}

/* Behaviour E: reads are slow, as it seems.  Controls get rarer. */
static void
confirm_slow(LaPolicy *p)
{
	p->verdict = LA_READS_SLOW;
	p->assumed = false;
	if (p->config.read_to_end)
		p->ahead = max_int(p->ahead, p->config.max_distance);
	p->fast_controls = 0;
	p->control_interval = min_int(p->control_interval * 2, CONTROL_LAST);
	p->until_control = p->control_interval;
	p->holdoff_length = HOLDOFF_FIRST;
}

static void
on_hit(LaPolicy *p)
{
	/* D */
	if (p->io && ++p->hit_run > IO_QUIET)
		pass(p);
}

static void
on_armed_visit(LaPolicy *p, LaVisitResult result, double us)
{
	bool		slow = us >= p->config.min_read_us;

	if (p->config.force)
		return;
	if (p->near_share >= SHARE_UNIT * 3 / 4)
	{
		p->near_share = 0;
		hold_off(p);
		return;
	}

	switch (result)
	{
		case LA_VISIT_ISSUED:
			/* C */
			if (!p->io)
			{
				p->io = true;
				set_phase(p, LA_MEMORY_IDLE, 0);
			}
			p->hit_run = 0;
			if (slow && p->until_control <= p->control_interval / 2)
				confirm_slow(p);
			if (p->ahead < FORESEE_FACTOR * p->config.max_distance)
				p->ahead = min_int(p->ahead * 2,
								   FORESEE_FACTOR * p->config.max_distance);
			break;

		case LA_VISIT_CONTROL:
			/* E */
			p->hit_run = 0;
			if (!slow)
			{
				if (++p->fast_controls >=
					(p->assumed ? ASSUMED_ENOUGH : CONTROLS_ENOUGH))
					hold_off(p);
				else
					p->until_control = 0;
			}
			else
				confirm_slow(p);
			break;

		case LA_VISIT_MISS:
			p->hit_run = 0;
			break;

		case LA_VISIT_NEAR_MISS:
		case LA_VISIT_STREAM_MISS:
			if (result == LA_VISIT_NEAR_MISS)
				on_trial_read(p, &p->near, NEAR_TRIAL, NEAR_SLOW, slow);
			else
				on_trial_read(p, &p->stream, STREAM_TRIAL, STREAM_SLOW,
							  slow);
			if (slow)
				p->hit_run = 0;
			else
				on_hit(p);
			break;

		case LA_VISIT_NEXT_MISS:
		case LA_VISIT_HIT:
			on_hit(p);
			break;
	}
}

/*
 * A visit in state OBSERVE or ARMED; us is how long the read took, 0 for a hit.
 */
void
la_policy_on_visit(LaPolicy *p, LaVisitResult result, double us)
{
	bool		near;

	p->total++;

	if (p->state == LA_ARMED)
	{
		on_armed_visit(p, result, us);
		return;
	}
	if (p->state != LA_OBSERVE)
		return;

	/* B */
	if (result == LA_VISIT_HIT)
	{
		p->hits++;
		if (p->config.nested_loop && p->hits >= HITS_ENOUGH_INNER)
			look_away(p);
		else if (p->hits >= HITS_ENOUGH)
			pass(p);
		return;
	}
	p->hits = 0;
	near = result == LA_VISIT_NEAR_MISS || result == LA_VISIT_NEXT_MISS;
	if (us < p->config.min_read_us)
		p->fast++;
	else if (near && p->config.nested_loop)
		p->near_waits++;
	else if (result != LA_VISIT_NEXT_MISS)
		p->slow += near ? 1 : FAR_WEIGHT;
	if (p->slow >= p->config.miss_threshold * FAR_WEIGHT)
	{
		p->verdict = LA_READS_SLOW;
		arm(p, true, false);
	}
	else if (p->fast >= FAST_ENOUGH)
		hold_off(p);
	else if (p->near_waits >= NEAR_ENOUGH)
		look_away(p);
}

/* Memory look-ahead is not worth it: ask again later, and later each time. */
static void
give_up_memory(LaPolicy *p)
{
	pass(p);
	p->memory_verdict = LA_MEMORY_NOT_FASTER;
	p->memory_again_at = p->total + p->memory_pause;
	p->memory_pause = min_int(p->memory_pause * 2, MEMORY_PAUSE_LAST);
}

/*
 * Behaviour I.  clock_at has been reached: the time is now_us.
 *
 *	IDLE -> PASSIVE (twice: start and end) -> WARM_UP -> TRIAL -> KEPT
 *	 ^        ^  | visits are long                          |     |
 *	 +--------|--+------ was not faster: pause -------------+     |
 *	          +----------- SETTLE <-------- check again ----------+
 */
void
la_policy_on_clock(LaPolicy *p, double now_us)
{
	switch (p->phase)
	{
		case LA_MEMORY_IDLE:
			break;

		case LA_MEMORY_SETTLE:
			set_phase(p, LA_MEMORY_PASSIVE, 0);
			la_policy_on_clock(p, now_us);
			break;

		case LA_MEMORY_PASSIVE:
			if (p->phase_start_us == 0)
			{
				p->phase_start_us = now_us;
				p->clock_at = p->total + p->config.memory_trial;
				break;
			}
			p->passive_us = now_us - p->phase_start_us;
			p->phase_start_us = 0;
			if (p->passive_us > p->config.memory_trial * p->config.memory_visit_us)
			{
				give_up_memory(p);
				break;
			}
			arm(p, false, false);
			set_phase(p, LA_MEMORY_WARM_UP, WARM_UP_VISITS);
			break;

		case LA_MEMORY_WARM_UP:
			p->phase_start_us = now_us;
			set_phase(p, LA_MEMORY_TRIAL, p->config.memory_trial);
			break;

		case LA_MEMORY_TRIAL:
			if (now_us - p->phase_start_us < p->passive_us * p->config.memory_faster)
			{
				set_phase(p, LA_MEMORY_KEPT, MEMORY_KEPT);
				p->memory_verdict = LA_MEMORY_FASTER;
				p->memory_pause = MEMORY_PAUSE_FIRST;
			}
			else
				give_up_memory(p);
			p->phase_start_us = 0;
			break;

		case LA_MEMORY_KEPT:
			pass(p);
			set_phase(p, LA_MEMORY_SETTLE, SETTLE_VISITS);
			break;
	}
}

/*
 * Is the next block that is not cached to be left alone, as a control?
 */
bool
la_policy_control_due(const LaPolicy *p)
{
	return p->until_control == 0 && !p->config.force;
}

/*
 * It was.  None more before it was visited.
 */
void
la_policy_on_control(LaPolicy *p)
{
	p->until_control = CONTROL_LAST;
}

/*
 * A block was issued.
 */
void
la_policy_on_issue(LaPolicy *p)
{
	if (p->until_control > 0)
		p->until_control--;
}

/*
 * How many visits to foresee now.
 */
int
la_policy_visits_ahead(const LaPolicy *p)
{
	int64_t		ahead = p->ahead;

	/* J */
	if (p->assumed && ahead > ASSUMED_AHEAD)
		ahead = ASSUMED_AHEAD;

	/* F */
	if (p->early_visits > 0 && !p->config.force)
	{
		/* after the visit that is being made, which is not yet counted */
		int64_t		left = (p->early_visits + SIXTEENTHS - 1) / SIXTEENTHS -
			visits(p) - 1;

		/* longer than usual: feel forward */
		if (left < 0)
			left = -left;
		if (ahead > left)
			ahead = left;
	}
	return (int) ahead;
}
