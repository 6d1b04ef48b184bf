/*
 * utility.h
 *	  What is done before and after utility statements.
 *
 * src/base/utility.h
 */
#ifndef LA_UTILITY_H
#define LA_UTILITY_H

#include "nodes/parsenodes.h"
#include "utils/relcache.h"

/* Called before a statement.  Returns true if "after" is to be called after it. */
typedef bool (*la_utility_before) (const Node *statement);
typedef void (*la_utility_after) (void);

/*
 * The server has opened and locked the table of a COPY statement, and checked privileges.  Returns
 * true if "after" is to be called after the statement.  Errors are forgotten.
 */
typedef bool (*la_utility_copy) (const CopyStmt *copy, Relation table);

extern bool la_utility_resets_session(const Node *statement);
extern void la_utility_register(la_utility_before before, la_utility_after after);
extern void la_utility_register_copy(la_utility_copy copy, la_utility_after after);
extern void la_utility_init(void);

#endif							/* LA_UTILITY_H */
