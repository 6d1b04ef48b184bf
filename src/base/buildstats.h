/*
 * buildstats.h
 *	  Cumulative statistics of index builds.
 *
 * src/base/buildstats.h
 */
#ifndef LA_BUILDSTATS_H
#define LA_BUILDSTATS_H

/* Rows of pg_stat_lookahead_index_build: who built the index, and why the server did. */
typedef enum LaBuildOutcome
{
	LA_OUTCOME_BUILT,
	LA_LEFT_MANY_VALUES,		/* too many different values to rank them */
	LA_LEFT_PARALLEL,			/* values would have to be ranked by one
								 * process; the server's workers are faster */
	LA_LEFT_LONG_KEYS,			/* the index compresses long values */
	LA_LEFT_COMPARISON,			/* values would have to be ranked by a
								 * comparison function that is not built in */
	LA_LEFT_EXPRESSIONS			/* restarting the build would call functions
								 * of expressions again */
} LaBuildOutcome;

#define LA_NUM_BUILD_OUTCOMES (LA_LEFT_EXPRESSIONS + 1)

/* Times are in microseconds. */
typedef struct LaBuildFigures
{
	bool		parallel;		/* workers took part */
	bool		spilled;		/* some rows went to temporary files */
	int64		rows;			/* index entries */
	int64		scan_time;
	int64		sort_time;
	int64		load_time;
} LaBuildFigures;

extern void la_build_stats_init(void);
extern void la_build_stats_add(LaBuildOutcome outcome,
							   const LaBuildFigures *figures);
extern void la_build_stats_reset(void);

#endif							/* LA_BUILDSTATS_H */
