/*
 * transaction.h
 *	  What is to be forgotten when a transaction or a subtransaction ends.
 *
 * src/base/transaction.h
 */
#ifndef LA_TRANSACTION_H
#define LA_TRANSACTION_H

#include "access/xact.h"

/*
 * Called at each step of the end of a transaction, with an invalid identifier; and with
 * XACT_EVENT_ABORT and its identifier when a subtransaction fails.
 */
typedef void (*la_transaction_function) (XactEvent event, SubTransactionId failed);

extern void la_transaction_register(la_transaction_function function);

#endif							/* LA_TRANSACTION_H */
