/*
 * transaction.c
 *	  What is to be forgotten when a transaction or a subtransaction ends.
 *
 * Functions are called in the order in which they were registered.  None may fail: a transaction
 * that has committed cannot be aborted any more.
 *
 * src/base/transaction.c
 */
#include "postgres.h"

#include "base/base.h"

#define MAX_REGISTERED 8

static la_transaction_function registered[MAX_REGISTERED];
static int	nregistered = 0;

static void
on_transaction(XactEvent event, void *arg)
{
	for (int i = 0; i < nregistered; i++)
		registered[i] (event, InvalidSubTransactionId);
}

static void
on_subtransaction(SubXactEvent event, SubTransactionId subid, SubTransactionId parent, void *arg)
{
	for (int i = 0; event == SUBXACT_EVENT_ABORT_SUB && i < nregistered; i++)
		registered[i] (XACT_EVENT_ABORT, subid);
}

void
la_transaction_register(la_transaction_function function)
{
	if (nregistered >= MAX_REGISTERED)
		elog(ERROR, "too many functions registered for the end of transactions");
	if (nregistered == 0)
	{
		RegisterXactCallback(on_transaction, NULL);
		RegisterSubXactCallback(on_subtransaction, NULL);
	}
	registered[nregistered++] = function;
}
