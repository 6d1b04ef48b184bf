/*
 * saving.h
 *	  How much time look-ahead saves.  See saving.c.
 *
 * src/window/saving.h
 */
#ifndef LA_SAVING_H
#define LA_SAVING_H

#include "base/counters.h"

/* The kernel's copy of a page, which direct reads do without. */
#define LA_SAVING_COPY_US	4.0

/* What is known of reads in a tablespace, for the reads of one scan. */
typedef struct LaSaving
{
	double		read_us;		/* of a single one, or 0 if not known */
	double		error_us;		/* half of the interval in which it probably
								 * is */
} LaSaving;

extern void la_saving_init(LaSaving *s, Oid tablespace);
extern double la_saving_before_issue(const LaSaving *s);
extern void la_saving_after_issue(LaCounters *counters, double before);
extern void la_saving_on_range(const LaSaving *s, LaCounters *counters, double before);

/* A read has taken so long, whether or not it was started early. */
static inline void
la_saving_on_read(LaCounters *counters, double us)
{
	counters->c[LA_WAIT_NS] += (int64) (us * 1000.0);
}

/*
 * The read of a block that was issued has taken so long.  served: the kernel would have read it
 * ahead (readahead.c).
 */
static inline void
la_saving_on_issued_read(const LaSaving *s, LaCounters *counters, double us, bool served)
{
	la_saving_on_read(counters, us);
	if (s->read_us == 0.0)
		return;
	if (served)
	{
		counters->c[LA_SAVED_NS] += (int64) ((LA_SAVING_COPY_US - us) * 1000.0);
		return;
	}
	counters->c[LA_SAVED_NS] += (int64) ((s->read_us - us) * 1000.0);
	counters->c[LA_SAVED_ERROR_NS] += (int64) (s->error_us * 1000.0);
}

#endif							/* LA_SAVING_H */
