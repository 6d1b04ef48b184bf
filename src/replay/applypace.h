/*
 * applypace.h
 *	  How many messages may be received ahead: pure functions, of plain C.
 *
 * See applypace.c.
 *
 * src/replay/applypace.h
 */
#ifndef LA_APPLYPACE_H
#define LA_APPLYPACE_H

#include <stdint.h>

typedef struct LaApplyPace
{
	double		us;				/* what the next message may take */
	uint64_t	limit;			/* messages */
	uint64_t	passed;			/* since it was raised or lowered */
} LaApplyPace;

extern void la_applypace_init(LaApplyPace *pace);
extern void la_applypace_note(LaApplyPace *pace, int64_t us);

#endif							/* LA_APPLYPACE_H */
