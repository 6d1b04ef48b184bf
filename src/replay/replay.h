/*
 * replay.h
 *	  What the room replay/ offers to others.
 *
 * src/replay/replay.h
 */
#ifndef LA_REPLAY_H
#define LA_REPLAY_H

/* ---- apply: logical replication: changes looked at before they are applied ---- */

extern void la_apply_init(void);

/* ---- replay: recovery: how far the server reads ahead, and what it waits for ---- */

extern void la_replay_init(void);

#endif							/* LA_REPLAY_H */
