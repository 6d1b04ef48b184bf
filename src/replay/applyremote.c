/*
 * applyremote.c
 *	  Tables as the publisher describes them.
 *
 * The publisher describes a table before the first change of it, and again when it has been
 * changed. Descriptions hold for the changes behind them.  They are kept from the beginning of
 * the stream on, also where nothing is looked ahead for, since they are not repeated.
 *
 * src/replay/applyremote.c
 */
#include "postgres.h"

#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "base/base.h"
#include "replay/replay_int.h"

#define MOST_MEMORY		(512 * 1024)	/* of a description */

static HTAB *remotes = NULL;

const LaApplyRemote *
la_applyremote_find(uint32 id)
{
	const LaApplyRemote *remote = remotes == NULL ? NULL :
		hash_search(remotes, &id, HASH_FIND, NULL);

	return remote != NULL && remote->context != NULL ? remote : NULL;
}

static bool
has_columns(const LaApplyRemote *remote, LaApplyRelation relation)
{
	bool		is_key;

	for (int i = 0; i < remote->ncolumns; i++)
	{
		const char *name = la_applymessage_next_name(&relation, &is_key);

		if (name == NULL || strcmp(name, remote->columns[i]) != 0)
			return false;
	}
	return true;
}

/* Is the table described as it has been before? */
bool
la_applyremote_is_known(const LaApplyRelation *relation)
{
	const LaApplyRemote *remote = la_applyremote_find(relation->id);

	return remote != NULL && remote->ncolumns == relation->ncolumns &&
		remote->identity == relation->identity &&
		strcmp(remote->schema, relation->schema) == 0 &&
		strcmp(remote->name, relation->name) == 0 && has_columns(remote, *relation);
}

static void
create_hash(void)
{
	HASHCTL		ctl = {.keysize = sizeof(uint32),.entrysize = sizeof(LaApplyRemote)};

	remotes = hash_create("pg_lookahead remote tables", 64, &ctl, HASH_ELEM | HASH_BLOBS);
}

/* Nothing is known of the table. */
static void
forget(uint32 id)
{
	LaApplyRemote *remote = remotes == NULL ? NULL : hash_search(remotes, &id, HASH_FIND, NULL);

	if (remote == NULL || remote->context == NULL)
		return;
	MemoryContextDelete(remote->context);
	remote->context = NULL;
}

/*
 * Keep the description, in place of what was known of the table.  This is done outside of turns as
 * well: where there may be too little memory, nothing is known of the table from now on.
 */
void
la_applyremote_note(const LaApplyRelation *relation)
{
	LaApplyRelation rest = *relation;
	LaApplyRemote *remote;
	MemoryContext context;
	MemoryContext old;
	bool		is_key;

	forget(relation->id);
	if (!la_attempt_has_memory(MOST_MEMORY))
		return;
	if (remotes == NULL)
		create_hash();
	remote = hash_search(remotes, &relation->id, HASH_ENTER, NULL);
	remote->context = NULL;
	remote->ncolumns = 0;
	context = AllocSetContextCreate(TopMemoryContext, "pg_lookahead remote table",
									ALLOCSET_SMALL_SIZES);
	remote->context = context;
	old = MemoryContextSwitchTo(context);
	remote->schema = pstrdup(relation->schema);
	remote->name = pstrdup(relation->name);
	remote->identity = relation->identity;
	remote->columns = palloc((relation->ncolumns + 1) * sizeof(char *));
	for (int i = 0; i < relation->ncolumns; i++)
		remote->columns[i] = pstrdup(la_applymessage_next_name(&rest, &is_key));
	remote->ncolumns = relation->ncolumns;
	MemoryContextSwitchTo(old);
}

/* The number of a column, from 0; -1: there is none of that name. */
int
la_applyremote_column(const LaApplyRemote *remote, const char *name)
{
	for (int i = 0; i < remote->ncolumns; i++)
	{
		if (strcmp(remote->columns[i], name) == 0)
			return i;
	}
	return -1;
}

/* Another stream begins. */
void
la_applyremote_forget_all(void)
{
	HASH_SEQ_STATUS status;
	LaApplyRemote *remote;

	if (remotes == NULL)
		return;
	hash_seq_init(&status, remotes);
	while ((remote = hash_seq_search(&status)) != NULL)
	{
		if (remote->context != NULL)
			MemoryContextDelete(remote->context);
	}
	hash_destroy(remotes);
	remotes = NULL;
}
