/*
 * replay_stream.h
 *	  Simulated recovery: WAL, the server's look-ahead, and storage that both share.
 *
 * The WAL is a stream of block references, each a record of its own:
 *
 *		a hit		its block is in shared buffers
 *		a miss		its block has to be read
 *		an image	it brings the block whole, for which a page is written back
 *		a shadow	the block of an image not long before: a hit by its turn, but not for a
 *					look-ahead that comes by before the image has been replayed
 *		a repeat	the same, of a miss, whose read has been started: to advise it costs no request
 *
 * The look-ahead is the server's: so many reads in flight, and four times as many references
 * looked at.  Storage starts so many requests per second, of which each takes some time.  Writes
 * are not waited for until too many of them are queued, and none is made while there are free
 * buffers.  The policy is told of it as replay.c tells it.
 *
 * test/unit/replay_stream.h
 */
#ifndef REPLAY_STREAM_H
#define REPLAY_STREAM_H

#include <stdbool.h>

#include "replay/replay_depth.h"
#include "replay/replay_trial.h"

#define AHEAD		4096

typedef struct Disk
{
	double		read_us;
	double		iops;
	double		noise;			/* a read's time varies by up to this share */
	double		stall_us;		/* once in a second it does nothing for so long */
} Disk;

/* Of a thousand references. */
typedef struct Wal
{
	int			misses;
	int			images;
	int			shadows;
	int			repeats;
	bool		fills;			/* free buffers: nothing is written back */
} Wal;

typedef enum Kind
{
	HIT,
	MISS,
	IMAGE,
	SHADOW,
	REPEAT
} Kind;

typedef struct Reference
{
	Kind		kind;
	bool		looked_at;		/* by a server that reads ahead */
	bool		advised;
	double		there_us;		/* when the read that was advised is over */
	long		first;			/* the image of a shadow, or the miss of a repeat */
} Reference;

typedef struct Recovery
{
	Disk		disk;
	Wal			wal;
	int			fixed;			/* depth; 0: no look-ahead; -1: the policy's */
	LaReplayPolicy p;
	LaReplayWindow w;
	double		window_begin;
	double		now_us;
	double		slot_us;		/* when the next request can start */
	double		stalls;			/* so far */
	unsigned	wal_random;
	unsigned	disk_random;
	long		place;			/* references replayed */
	long		ahead;			/* ... looked at */
	long		made;			/* ... thought of */
	long		last_image;
	long		last_miss;
	int			depth;			/* as the server has it; 0: it does not look ahead */
	int			in_flight;
	Reference	ring[AHEAD * 2];

	int			deepest;
	long		advised;
	long		wasted;
	long		comparisons;
	double		without_us;
} Recovery;

extern void begin_recovery(Recovery *r, const Disk *disk, int fixed);
extern void replay_until(Recovery *r, const Wal *wal, double us);
extern void replay_references(Recovery *r, const Wal *wal, long references);

#endif							/* REPLAY_STREAM_H */
