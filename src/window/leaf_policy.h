/*
 * leaf_policy.h
 *	  How many index leaf pages a scan reads ahead.
 *
 * Pure functions, as those of io_policy.h, of which there is one for leaf pages here.  See
 * leaf_policy.c.
 *
 * src/window/leaf_policy.h
 */
#ifndef LA_LEAF_POLICY_H
#define LA_LEAF_POLICY_H

#include "window/io_policy.h"

typedef struct LaLeafPolicy
{
	LaIoPolicy	io;				/* a visit is a step to another leaf page */
	int			most;			/* pages foreseen, at most */
	int			misled;			/* leaps since an issued page was visited */
} LaLeafPolicy;

extern void la_leaf_policy_init(LaLeafPolicy *p, const LaIoPolicyConfig *config);
extern bool la_leaf_policy_on_first_row(LaLeafPolicy *p, int64_t reads);
extern void la_leaf_policy_on_step(LaLeafPolicy *p, LaVisitResult result, double us);
extern void la_leaf_policy_on_leap(LaLeafPolicy *p, int wasted);
extern void la_leaf_policy_be_careful(LaLeafPolicy *p);
extern int	la_leaf_policy_pages_ahead(const LaLeafPolicy *p, int64_t rows, int rows_per_page);

static inline bool
la_leaf_policy_is_armed(const LaLeafPolicy *p)
{
	return p->io.state == LA_ARMED;
}

/* Can it ever look ahead? */
static inline bool
la_leaf_policy_is_enabled(const LaLeafPolicy *p)
{
	return p->io.config.advice_works;
}

#endif							/* LA_LEAF_POLICY_H */
