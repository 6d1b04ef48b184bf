/*
 * reads.c
 *	  Reads of blocks that are made for the server, a moment before its own.
 *
 * An index scan visits its heap blocks itself, since the server's own visit is the same one.
 * Where the server's read is in the middle of other work, such as an insertion or the inner side
 * of a join, the room makes the read before it hands over the row, so that the server finds the
 * block in shared buffers.  So the policy learns what each read took, and the window what became
 * of a block that was issued.
 *
 * src/window/reads.c
 */
#include "postgres.h"

#include "window/window.h"

/*
 * Visit a block in any state of the policy.  foreseen: the window's producer names this visit.
 * If it does not, nothing may be fetched for later visits meanwhile, even if the policy arms.
 * buffer: NULL if the block is read for the server only, whose error it then is if that fails.
 */
void
la_reads_visit(LaReads *reads, int rel, BlockNumber block, bool foreseen, Buffer *buffer)
{
	LaIoPolicy *policy = &reads->policy;
	LaVisitResult result;
	LaReadResult r;
	double		us;

	if (foreseen && policy->state == LA_ARMED)
	{
		la_window_visit(reads->window, rel, block, buffer);
		return;
	}
	la_window_clear(reads->window);
	if (policy->state == LA_OBSERVE)
	{
		result = la_window_read_observed(reads->rels[rel], block,
										 reads->visited && rel == reads->last_rel ?
										 reads->last_block : InvalidBlockNumber,
										 buffer, &reads->counters, &us);
		la_io_policy_on_visit(policy, result, us);
	}
	else
	{
		r = la_issue_read(reads->rels[rel], block, InvalidBuffer, false, false, buffer);
		if (policy->state == LA_PASS)
			la_io_policy_on_pass(policy, r.missed);
	}
	reads->visited = true;
	reads->last_block = block;
	reads->last_rel = rel;
}

/* There was nothing to visit for a row. */
void
la_reads_no_visit(LaReads *reads)
{
	if (reads->policy.state == LA_OBSERVE)
		la_io_policy_on_visit(&reads->policy, LA_VISIT_HIT, 0.0);
}
