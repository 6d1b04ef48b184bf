/*
 * stats.h
 *	  Counters of look-ahead: per node, per session and for the server.
 *
 * A room counts into an LaCounters of its own, which it opens for the statement that the node
 * belongs to, and passes it to la_stats_publish() when its node ends.  Where look-ahead would not
 * be safe, the room says why by la_stats_refuse(), once per node and execution.  See stats.c.
 *
 * src/base/stats.h
 */
#ifndef LA_STATS_H
#define LA_STATS_H

#include "nodes/execnodes.h"
#include "utils/timestamp.h"

#include "base/counters.h"

extern void la_stats_init(void);
extern void la_stats_open(LaCounters *counters, const EState *estate);
extern void la_stats_flush_at_exit(void);
extern int	la_stats_last_count(void);
extern const LaCounters *la_stats_last_node(int n, char **name);
extern TimestampTz la_stats_reset_time(void);
extern void la_stats_publish(LaKind kind, Oid heaprelid, Oid indexrelid,
							 const LaCounters *counters);
extern void la_stats_refuse(EState *estate, LaKind kind, Oid heaprelid,
							Oid indexrelid, const char *reason);

#endif							/* LA_STATS_H */
