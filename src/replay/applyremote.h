/*
 * applyremote.h
 *	  Tables as the publisher describes them.
 *
 * src/replay/applyremote.h
 */
#ifndef LA_APPLYREMOTE_H
#define LA_APPLYREMOTE_H

#include "replay/applymessage.h"

typedef struct LaApplyRemote
{
	uint32		id;				/* hash key */
	MemoryContext context;		/* of what follows */
	const char *schema;
	const char *name;
	char		identity;		/* of pg_class.relreplident */
	int			ncolumns;
	const char **columns;		/* names */
} LaApplyRemote;

extern const LaApplyRemote *la_applyremote_find(uint32 id);
extern bool la_applyremote_is_known(const LaApplyRelation *relation);
extern void la_applyremote_note(const LaApplyRelation *relation);
extern int	la_applyremote_column(const LaApplyRemote *remote, const char *name);
extern void la_applyremote_forget_all(void);

#endif							/* LA_APPLYREMOTE_H */
