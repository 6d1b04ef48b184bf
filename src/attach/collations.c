/*
 * collations.c
 *	  What a session may be told when it uses a collation for the first time.
 *
 * The server opens a collation's locale when a session first compares by it.  That is an error if
 * the operating system or ICU has no such locale, and a warning if its version is not the one that
 * the catalog has recorded.  So the first comparison must not be early there.  The answer is kept
 * until a collation changes, since asking ICU for a version opens the locale.
 *
 * src/attach/collations.c
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/syscache.h"

#include "attach/attach.h"
#include "base/base.h"

typedef struct Answer
{
	Oid			collation;		/* the key */
	bool		silent;
} Answer;

typedef struct Question
{
	Oid			collation;
	const char *recorded;
	bool		same;
} Question;

static HTAB *answers = NULL;

static void
forget(Datum arg, int cacheid, uint32 hashvalue)
{
	hash_destroy(answers);
	answers = NULL;
}

static void
make_answers(void)
{
	static bool registered = false;
	HASHCTL		control = {.keysize = sizeof(Oid),.entrysize = sizeof(Answer)};

	answers = hash_create("pg_lookahead collations", 16, &control, HASH_ELEM | HASH_BLOBS);
	if (!registered)
		CacheRegisterSyscacheCallback(COLLOID, forget, 0);
	registered = true;
}

/* For la_attempt_read(). */
static void
compare_version(void *arg)
{
	Question   *question = arg;
	Datum		actual = OidFunctionCall1(F_PG_COLLATION_ACTUAL_VERSION,
										  ObjectIdGetDatum(question->collation));

	question->same = strcmp(TextDatumGetCString(actual), question->recorded) == 0;
}

/* Collations without a version are those of which there is one only, such as C. */
static bool
examine(Oid collation)
{
	HeapTuple	tuple = SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
	Question	question = {collation, NULL, false};
	bool		isnull;
	Datum		recorded;

	if (!HeapTupleIsValid(tuple))
		return false;
	recorded = SysCacheGetAttr(COLLOID, tuple, Anum_pg_collation_collversion, &isnull);
	if (!isnull)
	{
		question.recorded = TextDatumGetCString(recorded);
		(void) la_attempt_read(compare_version, &question);
	}
	ReleaseSysCache(tuple);
	return isnull || question.same;
}

/* Can the first comparison by a collation raise neither a warning nor an error about it? */
bool
la_collation_is_silent(Oid collation)
{
	Answer	   *answer;
	bool		silent;

	if (!OidIsValid(collation) || collation == DEFAULT_COLLATION_OID ||
		collation == C_COLLATION_OID)
		return true;
	if (answers == NULL)
		make_answers();
	answer = hash_search(answers, &collation, HASH_FIND, NULL);
	if (answer != NULL)
		return answer->silent;
	silent = examine(collation);
	/* what has been asked may have forgotten the answers */
	if (answers == NULL)
		make_answers();
	answer = hash_search(answers, &collation, HASH_ENTER, NULL);
	answer->silent = silent;
	return silent;
}
