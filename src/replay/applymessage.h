/*
 * applymessage.h
 *	  Messages of logical replication, taken apart: pure functions, of plain C.
 *
 * See applymessage.c.
 *
 * src/replay/applymessage.h
 */
#ifndef LA_APPLYMESSAGE_H
#define LA_APPLYMESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LA_APPLY_KEEPALIVE		18	/* bytes of a keepalive */
#define LA_APPLY_MAX_COLUMNS	1664	/* of a table, as the server has it */

/* What a message is about: the letters of the protocol. */
#define LA_APPLY_INSERT			'I'
#define LA_APPLY_UPDATE			'U'
#define LA_APPLY_DELETE			'D'
#define LA_APPLY_TRUNCATE		'T'
#define LA_APPLY_RELATION		'R'
#define LA_APPLY_STREAM_START	'S'
#define LA_APPLY_STREAM_STOP	'E'

/* Bytes that are read one after the other; failed: there were too few. */
typedef struct LaApplyReader
{
	const char *data;
	const char *end;
	bool		failed;
} LaApplyReader;

typedef struct LaApplyColumn
{
	char		kind;			/* n: null, u: unchanged, t: text, b: binary */
	const char *data;			/* of t and b; not terminated */
	uint32_t	length;
} LaApplyColumn;

/* The columns of a row, which la_applymessage_next_column() reads; valid as a whole. */
typedef struct LaApplyTuple
{
	int			ncolumns;
	const char *data;
	const char *end;
} LaApplyTuple;

typedef struct LaApplyChange
{
	char		action;			/* I, U or D */
	uint32_t	relation;
	char		old_kind;		/* K: only the key, O: all columns; 0: no old
								 * row */
	LaApplyTuple old_row;
	LaApplyTuple new_row;		/* of I and U */
} LaApplyChange;

/* A table, as the publisher describes it. */
typedef struct LaApplyRelation
{
	uint32_t	id;
	const char *schema;
	const char *name;
	char		identity;		/* of pg_class.relreplident */
	int			ncolumns;
	const char *columns;		/* la_applymessage_next_name() reads them */
	const char *end;
} LaApplyRelation;

extern bool la_applymessage_asks(const char *data, size_t length);
extern bool la_applymessage_request(const char *data, size_t length, char *request);
extern char la_applymessage_action(const char *data, size_t length, LaApplyReader *body);
extern bool la_applymessage_change(char action, LaApplyReader body, LaApplyChange *change);
extern bool la_applymessage_relation(LaApplyReader body, bool streamed,
									 LaApplyRelation *relation);
extern bool la_applymessage_next_column(LaApplyTuple *tuple, LaApplyColumn *column);
extern const char *la_applymessage_next_name(LaApplyRelation *relation, bool *is_key);

#endif							/* LA_APPLYMESSAGE_H */
