/*
 * replay_depth.h
 *	  How far recovery is to read ahead: pure functions.
 *
 * See replay_depth.c.
 *
 * src/replay/replay_depth.h
 */
#ifndef LA_REPLAY_DEPTH_H
#define LA_REPLAY_DEPTH_H

#include <stdbool.h>
#include <stdint.h>

#include "replay/replay_policy.h"

extern void la_replay_policy_init(LaReplayPolicy *p, int base);
extern bool la_replay_policy_suggest(LaReplayPolicy *p, int depth);
extern bool la_replay_policy_window_full(const LaReplayPolicy *p, const LaReplayWindow *w);
extern bool la_replay_policy_window(LaReplayPolicy *p, const LaReplayWindow *w);
extern void la_replay_policy_unsettle(LaReplayPolicy *p);
extern void la_replay_policy_restart(LaReplayPolicy *p, int depth);
extern void la_replay_window_add(LaReplayWindow *sum, const LaReplayWindow *w);
extern bool la_replay_window_reads_in_vain(const LaReplayWindow *w);

#endif							/* LA_REPLAY_DEPTH_H */
