/*
 * buildstats.h
 *	  Which index builds were taken over, which were not, and where their time went.
 *
 * See buildstats.c.
 *
 * src/base/buildstats.h
 */
#ifndef LA_BUILDSTATS_H
#define LA_BUILDSTATS_H

/* What became of an index build: one row each of pg_stat_lookahead_index_build. */
typedef enum LaBuildOutcome
{
	LA_OUTCOME_BUILT,
	LA_LEFT_MANY_VALUES,		/* too many different values to rank them */
	LA_LEFT_PARALLEL,			/* values would be ranked; stock's workers are
								 * faster */
	LA_LEFT_LONG_KEYS,			/* the index compresses long values */
	LA_LEFT_COMPARISON,			/* values would be ranked by a function that
								 * is not trusted */
	LA_LEFT_EXPRESSIONS			/* it might be given up, and functions be
								 * called again */
} LaBuildOutcome;

#define LA_NUM_BUILD_OUTCOMES (LA_LEFT_EXPRESSIONS + 1)

/* Times are microseconds. */
typedef struct LaBuildFigures
{
	bool		parallel;		/* had workers */
	bool		spilled;		/* some rows went to temporary files */
	int64		rows;			/* index entries */
	int64		scan_time;
	int64		sort_time;
	int64		load_time;
} LaBuildFigures;

extern Size la_build_stats_shmem_size(void);
extern void la_build_stats_shmem_init(void);
extern void la_build_stats_add(LaBuildOutcome outcome,
							   const LaBuildFigures *figures);
extern void la_build_stats_reset(void);

#endif							/* LA_BUILDSTATS_H */
