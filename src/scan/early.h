/*
 * early.h
 *	  May an index scan read pages of its index before their turn?
 *
 * src/scan/early.h
 */
#ifndef LA_EARLY_H
#define LA_EARLY_H

#include "attach/statement.h"
#include "scan/scan_int.h"

extern bool la_early_ask(LaScan *ls);
extern void la_early_rescan(LaScan *ls);

/* Asked for each page: the gate has answered, as a rule. */
static inline bool
la_early_refuses_pages(LaScan *ls)
{
	if (ls->pages == LA_PAGES_UNKNOWN ||
		(ls->pages == LA_PAGES_NOW && ls->pages_run != la_statements_run(ls->node->state)->number))
		return !la_early_ask(ls);
	return ls->pages == LA_PAGES_REFUSED;
}

#endif							/* LA_EARLY_H */
