/*
 * replay_trial.h
 *	  Whether recovery is to read ahead at all: pure functions.
 *
 * See replay_trial.c.
 *
 * src/replay/replay_trial.h
 */
#ifndef LA_REPLAY_TRIAL_H
#define LA_REPLAY_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "replay/replay_policy.h"

extern bool la_replay_policy_trial(LaReplayPolicy *p, const LaReplayWindow *w);
extern bool la_replay_policy_without(LaReplayPolicy *p, uint64_t reads, double wait_us);
extern bool la_replay_policy_compares(const LaReplayPolicy *p);
extern bool la_replay_policy_compare_full(const LaReplayPolicy *p, const LaReplayWindow *w);
extern bool la_replay_policy_compare(LaReplayPolicy *p, const LaReplayWindow *w);
extern void la_replay_policy_no_trials(LaReplayPolicy *p);

#endif							/* LA_REPLAY_TRIAL_H */
