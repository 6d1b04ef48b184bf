/*
 * share.c
 *	  The limit of a tablespace, shared by the sessions that look ahead in it.
 *
 * tablespace_max_in_flight limits the reads that all sessions that look ahead have in flight
 * together, with those that they wait for.  They divide it (share_policy.c).  Each knows of the
 * others by their slots:
 *
 *		slot of a backend	| tablespace, time of its last read | ... | ...		one cache line
 *							written by its owner, read by all
 *
 * SLOTS.  A backend's number in the server is that of its slot.  An entry is one atomic variable,
 * so nobody sees a half of it, and nobody takes a lock.  A slot is renewed ten times in a second
 * at most, and all of them are looked at a hundred times.  A backend clears its slot when it
 * exits; when one crashes, the server makes all shared memory anew.  A slot that is full of other
 * tablespaces loses the one that was used least recently.
 *
 * WHO COUNTS.  Every process with a number does that starts reads by issue.c or aio.c: also
 * parallel workers and apply workers.  The process that recovers does not.  Sessions that do not
 * look ahead are not limited; a scan that is in state PASS or OBSERVE is not counted.
 *
 * WHAT COUNTS.  Blocks of windows, and leaf pages of btree scans, from the start of their reads
 * to their visits; of lots, requests that have not been answered (lot.c).  A bitmap scan keeps the
 * share that it began with, as its distance for heap blocks and pages of GIN indexes.  Of other
 * reads that are started early, such as those of inner pages of an index, there are a few at a
 * time; they are not counted, but with a share of 0 they are not started either.
 *
 * MEMBERS.  What has reads in flight, a window or the leaf pages of a scan, is a member of the
 * session until it has none any more or ends, or its memory context does, for whatever reason.
 * Leaf pages of a scan that reads heap blocks, too, are few, and no member.
 *
 * A share is as old as the last look at the slots, so that for a moment there may be more in flight
 * than the limit when another session begins.  Nothing depends on it but time.
 *
 * NOT PRELOADED.  Then there are no slots, and no limit.
 *
 * src/window/share.c
 */
#include "postgres.h"

#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "utils/timestamp.h"

#include "base/base.h"
#include "base/compat.h"
#include "window/share_policy.h"
#include "window/window.h"

#define TABLESPACES		8		/* of a backend */
#define RENEW_MS		100
#define LOOK_MS			10

/* Each use is one variable, and nothing is concluded from the order in which two are seen. */
typedef union Slot
{
	pg_atomic_uint64 uses[TABLESPACES]; /* tablespace, and milliseconds; or 0 */
	char		padding[PG_CACHE_LINE_SIZE];
} Slot;

static Slot *slots = NULL;		/* MaxBackends */

/* What this backend knows of its tablespaces, in the order of its slot. */
typedef struct Known
{
	Oid			tablespace;		/* or InvalidOid */
	uint32		generation;		/* another one, another number */
	int			limit;			/* the setting, when the slots were looked at */
	uint32		looked_ms;		/* ... at that time */
	uint32		renewed_ms;		/* when the slot was */
	int			share;			/* of the session */
	int			members;		/* of these */
	uint32		joins;			/* members so far */
} Known;

typedef struct LaShareMember
{
	MemoryContextCallback callback;
	Known	   *known;			/* where it is a member, or NULL */
	uint32		generation;		/* ... which may be another tablespace's now */
	uint32		number;
} LaShareMember;

static Known known[TABLESPACES];
static bool registered = false;

static uint64
use_of(Oid tablespace, uint32 ms)
{
	return (uint64) tablespace << 32 | ms;
}

static bool
has_slot(void)
{
	return slots != NULL && la_backend_number() >= 0 && la_backend_number() < MaxBackends;
}

static void
clear_slot(int code, Datum arg)
{
	if (has_slot())
		la_shmem_reset_counters(&slots[la_backend_number()], sizeof(Slot));
}

/* The clock that all processes have. */
static uint32
now_ms(void)
{
	return (uint32) (GetCurrentTimestamp() / 1000);
}

static void
renew(Known *k, uint32 now)
{
	if (!registered)
		on_shmem_exit(clear_slot, (Datum) 0);
	registered = true;
	k->renewed_ms = now;
	pg_atomic_write_u64(&slots[la_backend_number()].uses[k - known],
						use_of(k->tablespace, now));
}

/* What is known of a tablespace, 0 being the database's. */
static Known *
known_of(Oid tablespace, uint32 now)
{
	static uint32 generations = 0;
	Oid			key = OidIsValid(tablespace) ? tablespace : MyDatabaseTableSpace;
	Known	   *oldest = &known[0];

	for (int t = 0; t < TABLESPACES; t++)
	{
		Known	   *k = &known[t];

		if (k->tablespace == key)
			return k;
		if (!OidIsValid(k->tablespace) ||
			(OidIsValid(oldest->tablespace) && now - k->looked_ms > now - oldest->looked_ms))
			oldest = k;
	}
	memset(oldest, 0, sizeof(*oldest));
	pg_atomic_write_u64(&slots[la_backend_number()].uses[oldest - known], 0);
	oldest->tablespace = key;
	oldest->generation = ++generations;
	return oldest;
}

/* Does this slot say that its backend is active there? */
static bool
is_active(Slot *slot, Oid tablespace, uint32 now)
{
	for (int t = 0; t < TABLESPACES; t++)
	{
		uint64		use = pg_atomic_read_u64(&slot->uses[t]);

		if ((Oid) (use >> 32) == tablespace && la_share_is_active((uint32) use, now))
			return true;
	}
	return false;
}

/* Look at the slots, if the last look is too old. */
static void
look(Known *k, uint32 now)
{
	int			active = 1;		/* this one is, or will be */
	int			place = 0;

	if (k->limit == la_tablespace_max_in_flight && now - k->looked_ms < LOOK_MS)
		return;
	for (int i = 0; i < MaxBackends; i++)
	{
		if (i == la_backend_number() || !is_active(&slots[i], k->tablespace, now))
			continue;
		active++;
		if (i < la_backend_number())
			place++;
	}
	k->limit = la_tablespace_max_in_flight;
	k->looked_ms = now;
	k->share = la_share_of_session(k->limit, active, place, now);
}

/* The backend's share. */
int
la_share_of_backend(Oid tablespace)
{
	uint32		now;
	Known	   *k;

	if (!la_share_is_limited() || !has_slot())
		return PG_INT32_MAX;
	now = now_ms();
	k = known_of(tablespace, now);
	look(k, now);
	return k->share;
}

/* ---- members ------------------------------------------------------------------ */

static void
leave(LaShareMember *m)
{
	if (m->known != NULL && m->known->generation == m->generation)
		m->known->members--;
	m->known = NULL;
}

static void
on_reset(void *arg)
{
	leave(arg);
}

static bool
is_member(const LaShare *share, const Known *k)
{
	return share->member != NULL && share->member->known == k &&
		share->member->generation == k->generation;
}

static void
join(LaShare *share, Known *k)
{
	LaShareMember *m = share->member;

	if (m == NULL)
	{
		m = MemoryContextAllocZero(share->context, sizeof(LaShareMember));
		m->callback.func = on_reset;
		m->callback.arg = m;
		MemoryContextRegisterResetCallback(share->context, &m->callback);
		share->member = m;
	}
	leave(m);
	m->known = k;
	m->generation = k->generation;
	m->number = k->joins++;
	k->members++;
}

/* No more reads are started. */
void
la_share_end(LaShare *share)
{
	if (share->member != NULL)
		leave(share->member);
}

/* Ask for a share anew. */
void
la_share_refresh(LaShare *share, Oid tablespace)
{
	uint32		now;
	Known	   *k;

	share->visits_left = LA_SHARE_VISITS;
	share->limit = PG_INT32_MAX;
	if (!has_slot())
		return;
	now = now_ms();
	k = known_of(tablespace, now);
	look(k, now);
	if (!share->uses)
		la_share_end(share);
	else if (!is_member(share, k))
		join(share, k);
	share->uses = false;
	share->limit = la_share_of_member(k->share, k->members,
									  is_member(share, k) ? share->member->number : 0,
									  is_member(share, k));
}

/* A read is started, or would be if the share were larger. */
void
la_share_note_read(Oid tablespace)
{
	uint32		now;
	Known	   *k;

	if (!la_share_is_limited() || !has_slot())
		return;
	now = now_ms();
	k = known_of(tablespace, now);
	if (k->renewed_ms == 0 || now - k->renewed_ms >= RENEW_MS)
		renew(k, now);
}

/* Of so many reads, how many may a session start early that has the tablespace for itself? */
int
la_share_most(int distance)
{
	return la_share_is_limited() && slots != NULL ?
		Min(distance, la_tablespace_max_in_flight - 1) : distance;
}

void
la_share_init(void)
{
	la_shmem_register_per_backend("pg_lookahead shares", sizeof(Slot), NULL, (void **) &slots);
}
