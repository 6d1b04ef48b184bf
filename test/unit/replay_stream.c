/*
 * replay_stream.c
 *	  Simulated recovery: WAL, the server's look-ahead, and storage that both share.
 *
 * test/unit/replay_stream.c
 */
#include <math.h>
#include <string.h>

#include "replay_stream.h"

/* the processor's times: a record, an image, a request for advice that starts a read */
#define RECORD_US		8.0
#define IMAGE_US		10.0
#define ADVICE_US		3.0
#define BASE			16

/* a read that takes so long has been waited for */
#define WAIT_US			25.0

/* writes that may be queued, in microseconds of the disk's time */
#define QUEUED_US		5000.0

/* a shadow is within so many references of its image, more or less */
#define NEAR			48

static unsigned
draw(unsigned *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

void
begin_recovery(Recovery *r, const Disk *disk, int fixed)
{
	memset(r, 0, sizeof(*r));
	r->disk = *disk;
	r->fixed = fixed;
	r->wal_random = 12345;
	r->disk_random = 54321;
	r->last_image = r->last_miss = -1;
	la_replay_policy_init(&r->p, BASE);
	r->depth = fixed < 0 ? r->p.depth : fixed;
	r->deepest = r->depth;
}

static Reference *
reference(Recovery *r, long i)
{
	return &r->ring[i % (AHEAD * 2)];
}

/* The reference after the last one: what it is does not depend on how it is replayed. */
static void
make_reference(Recovery *r)
{
	Reference  *ref = reference(r, r->made);
	int			n = (int) (draw(&r->wal_random) % 1000);
	int			back = (int) (draw(&r->wal_random) % NEAR);

	memset(ref, 0, sizeof(*ref));
	ref->kind = HIT;
	if (n < r->wal.misses)
		ref->kind = MISS;
	else if (n < r->wal.misses + r->wal.images)
		ref->kind = IMAGE;
	else if (n < r->wal.misses + r->wal.images + r->wal.shadows && r->last_image >= 0 &&
			 r->made - r->last_image <= back)
		ref->kind = SHADOW;
	else if (n >= 1000 - r->wal.repeats && r->last_miss >= 0 && r->made - r->last_miss <= back)
		ref->kind = REPEAT;
	if (ref->kind == IMAGE)
		r->last_image = r->made;
	if (ref->kind == MISS)
		r->last_miss = r->made;
	ref->first = ref->kind == REPEAT ? r->last_miss : r->last_image;
	r->made++;
}

/* The disk starts a request that is made now, when it can. */
static void
start_request(Recovery *r)
{
	if (r->disk.stall_us > 0 && r->now_us > (r->stalls + 1) * 1e6)
	{
		r->stalls++;
		r->slot_us = fmax(r->slot_us, r->now_us) + r->disk.stall_us;
	}
	r->slot_us = fmax(r->slot_us, r->now_us) + 1e6 / r->disk.iops;
}

/* When a read is over that is made now. */
static double
request(Recovery *r)
{
	double		noise = r->disk.noise * ((double) (draw(&r->disk_random) % 2001) / 1000.0 - 1.0);

	start_request(r);
	return r->slot_us + r->disk.read_us * (1.0 + noise);
}

/* The server looks at the next reference. */
static void
look_at(Recovery *r)
{
	Reference  *ref;

	if (r->ahead == r->made)
		make_reference(r);
	ref = reference(r, r->ahead);
	r->ahead++;
	ref->looked_at = r->depth > 0;
	ref->advised = r->depth > 0 && (ref->kind == MISS || (ref->kind >= SHADOW && ref->first >= r->place));
	if (!ref->advised)
		return;
	r->now_us += ADVICE_US;
	if (ref->kind != REPEAT)
		ref->there_us = request(r);
	r->in_flight++;
	r->advised++;
}

static void
look_ahead(Recovery *r)
{
	if (r->ahead == r->place)
		look_at(r);
	while (r->depth > 0 && r->in_flight < r->depth && r->ahead - r->place < 4 * r->depth)
		look_at(r);
}

/* What the policy says counts from the next look ahead on. */
static void
follow(Recovery *r)
{
	if (r->fixed < 0)
		r->depth = r->p.advise ? r->p.depth : 0;
	if (r->depth > r->deepest)
		r->deepest = r->depth;
}

static void
begin_window(Recovery *r)
{
	memset(&r->w, 0, sizeof(r->w));
	r->window_begin = r->now_us;
}

static void
end_window(Recovery *r)
{
	if (la_replay_policy_compares(&r->p))
		la_replay_policy_compare(&r->p, &r->w);
	else
	{
		la_replay_policy_trial(&r->p, &r->w);
		if (r->p.mode == LA_REPLAY_AHEAD)
			la_replay_policy_window(&r->p, &r->w);
		r->comparisons += r->p.mode == LA_REPLAY_COMPARE;
	}
	follow(r);
	begin_window(r);
}

static void
learn(Recovery *r, const Reference *ref, double wait_us)
{
	bool		read = ref->kind == MISS;

	if (ref->looked_at != r->p.advise)
	{
		begin_window(r);
		return;
	}
	r->w.reads += read;
	r->w.wait_us += wait_us;
	r->w.advised += ref->advised;
	r->w.wasted += ref->advised && !read;
	r->w.elapsed_us = r->now_us - r->window_begin;
	if (r->p.mode == LA_REPLAY_FROM_MEMORY)
	{
		if (read && la_replay_policy_without(&r->p, 1, wait_us))
		{
			begin_window(r);
			follow(r);
		}
	}
	else if (la_replay_policy_compares(&r->p) ?
			 la_replay_policy_compare_full(&r->p, &r->w) :
			 la_replay_policy_window_full(&r->p, &r->w))
		end_window(r);
}

/* A page is written back.  It is waited for only if many are. */
static void
write_back(Recovery *r)
{
	start_request(r);
	r->now_us = fmax(r->now_us, r->slot_us - QUEUED_US);
}

static void
replay_one(Recovery *r)
{
	Reference  *ref;
	double		begin;
	double		wait_us;
	double		write_us = 0;

	look_ahead(r);
	ref = reference(r, r->place);
	begin = r->now_us;
	if (ref->kind == IMAGE)
	{
		r->now_us += IMAGE_US;
		if (!r->wal.fills)
			write_back(r);
		write_us = r->now_us - begin;
	}
	if (ref->kind == MISS)
		r->now_us = fmax(r->now_us, ref->advised ? ref->there_us : request(r));
	wait_us = ref->kind == MISS ? r->now_us - begin : 0;
	if (wait_us < WAIT_US)
		wait_us = 0;
	if (wait_us > 0)
		la_replay_policy_waited(&r->p, 1, wait_us);
	r->now_us += RECORD_US;
	if (r->depth == 0)
		r->without_us += r->now_us - begin;
	r->place++;
	if (ref->advised)
	{
		r->in_flight--;
		r->wasted += ref->kind >= SHADOW;
	}
	r->w.references++;
	r->w.images += ref->kind == IMAGE;
	r->w.write_us += write_us < WAIT_US ? 0 : write_us;
	r->w.wal_bytes += ref->kind == IMAGE ? 8000 : 100;
	if (r->fixed < 0)
		learn(r, ref, wait_us);
}

void
replay_references(Recovery *r, const Wal *wal, long references)
{
	r->wal = *wal;
	for (long i = 0; i < references; i++)
		replay_one(r);
}

void
replay_until(Recovery *r, const Wal *wal, double us)
{
	r->wal = *wal;
	while (r->now_us < us)
		replay_one(r);
}
