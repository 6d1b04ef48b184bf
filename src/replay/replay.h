/*
 * replay.h
 *	  Recovery: how far the server reads ahead, and what it waits for.
 *
 * src/replay/replay.h
 */
#ifndef LA_REPLAY_H
#define LA_REPLAY_H

extern void la_replay_init(void);

#endif							/* LA_REPLAY_H */
