/*
 * utility.h
 *	  What is done before and after utility statements.
 *
 * src/base/utility.h
 */
#ifndef LA_UTILITY_H
#define LA_UTILITY_H

#include "nodes/nodes.h"

/* Called before a statement.  Returns true if "after" is to be called after it. */
typedef bool (*la_utility_before) (const Node *statement);
typedef void (*la_utility_after) (void);

extern bool la_utility_resets_session(const Node *statement);
extern void la_utility_register(la_utility_before before, la_utility_after after);
extern void la_utility_init(void);

#endif							/* LA_UTILITY_H */
