/*
 * share.h
 *	  The limit of a tablespace, shared by the sessions that look ahead in it.
 *
 * src/window/share.h
 */
#ifndef LA_SHARE_H
#define LA_SHARE_H

#include "base/guc.h"

#define LA_SHARE_VISITS	16		/* after which a share is asked for again */

/* Of one who starts reads: a window, or the leaf pages of a scan. */
typedef struct LaShare
{
	MemoryContext context;		/* in which it is */
	struct LaShareMember *member;	/* NULL: not yet */
	int			limit;			/* reads that may be in flight */
	int			visits_left;	/* until that is asked for again */
	bool		uses;			/* reads were started since, or would have
								 * been */
} LaShare;

extern void la_share_init(void);
extern void la_share_end(LaShare *share);
extern void la_share_refresh(LaShare *share, Oid tablespace);
extern void la_share_note_read(Oid tablespace);
extern int	la_share_of_backend(Oid tablespace);
extern int	la_share_most(int distance);

/* uses: it is about to start reads.  context: where it is allocated. */
static inline void
la_share_begin(LaShare *share, bool uses, MemoryContext context)
{
	memset(share, 0, sizeof(*share));
	share->limit = PG_INT32_MAX;
	share->context = context;
	share->uses = uses;
}

/* Is there a limit for anyone? */
static inline bool
la_share_is_limited(void)
{
	return la_tablespace_max_in_flight > 0;
}

/* At each visit: how many reads may be in flight, of so many? */
static inline int
la_share_limit(LaShare *share, Oid tablespace, int most)
{
	if (!la_share_is_limited())
	{
		share->limit = PG_INT32_MAX;
		share->visits_left = 0;
		return most;
	}
	if (share->visits_left-- <= 0)
		la_share_refresh(share, tablespace);
	return Min(share->limit, most);
}

/* A read was started, or would have been. */
static inline void
la_share_on_use(LaShare *share)
{
	share->uses = true;
}

/* A read was waited for: meanwhile others may have come, or gone. */
static inline void
la_share_on_wait(LaShare *share)
{
	share->visits_left = 0;
}

#endif							/* LA_SHARE_H */
