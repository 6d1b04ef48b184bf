/*
 * ginsupport.c
 *	  Functions of ours in place of those of an operator class, in a GinState.
 *
 * The access method calls an operator class's functions through the FmgrInfos of its GinState.
 * Ours calls the operator class's function, and knows then what it has returned.  It is put only
 * where what fmgr_info() gives stands, and taken out only where it still stands.
 *
 * A function that has copied its FmgrInfo, and calls the copy, comes to ours with an FmgrInfo that
 * belongs to no GinState that is known: la_ginsupport_call_original() is for that.
 *
 * src/gin/ginsupport.c
 */
#include "postgres.h"

#include "gin/gin.h"

/* What fmgr_info() gives for the function, or NULL if there is none. */
PGFunction
la_ginsupport_original(const FmgrInfo *flinfo)
{
	FmgrInfo	original;

	if (!OidIsValid(flinfo->fn_oid))
		return NULL;
	fmgr_info(flinfo->fn_oid, &original);
	return original.fn_addr;
}

void
la_ginsupport_exchange(FmgrInfo *flinfo, PGFunction from, PGFunction to)
{
	if (OidIsValid(flinfo->fn_oid) && flinfo->fn_addr == from)
		flinfo->fn_addr = to;
}

/* The operator class's function, for a copy of an FmgrInfo with ours. */
Datum
la_ginsupport_call_original(FunctionCallInfo fcinfo)
{
	return la_ginsupport_original(fcinfo->flinfo) (fcinfo);
}
