/*
 * arraykeys.c
 *	  Leaf pages that the next elements of an IN list will need (nbtree).
 *
 * Where the values of "column = ANY (array)" lie scattered, each of them costs a
 * descent that ends in a leaf page which no other page links to.  But the array
 * names the values to come.  So before the access method is run ahead to the
 * next leaf page, the inner pages are searched for elements further on, down to
 * the downlink, and the leaf page it names is advised.
 *
 *		elements   17  23  |42|  99  105  230  ...
 *				   done		^	 |<- ahead ->|
 *						 nbtree	   downlinks looked up, leaf pages issued
 *
 * Several arrays, and equality keys between them, count as one array of their
 * combinations in the order of the scan (the last array turns fastest), as long
 * as they are keys of the index's first columns.  A column without such a key,
 * or with a skip array of 18, ends that prefix.
 *
 * An inner page that is not cached is advised, too, and the element put off:
 * it is looked up again when it is half as far away.  So the only waits are for
 * pages that the access method would have waited for.
 *
 * All of it is a hint, given by btree/descent.c: splits that happen meanwhile make
 * it useless, nothing else.
 *
 * src/scan/arraykeys.c
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "btree/descent.h"
#include "scan/leafbatch.h"
#include "scan/arraykeys.h"

#define MAX_COMBINATIONS	((int64) 1 << 40)
#define PUT_OFF				64	/* elements, a power of 2 */

struct LaArrayKeys
{
	LaScan	   *ls;
	int			narrays;		/* arrays in the prefix, slowest first */
	int			array_of_key[INDEX_MAX_KEYS];	/* or -1: not an array */
	int64		total;			/* combinations */

	int64		next;			/* combination to look up next */
	int64		put_off[PUT_OFF];
	uint64		first_put_off;
	uint64		nput_off;		/* ever put off */
	BlockNumber last_leaf;		/* issued last: neighbours often share it */

	LaDescent  *descent;
};

static Size
elements_size(void)
{
	return sizeof(LaArrayKeys) + la_descent_size();
}

/*
 * Returns NULL if the scan has no array to look ahead in.
 */
LaArrayKeys *
la_arraykeys_create(LaScan *ls)
{
	BTScanOpaque so = la_bt_opaque(ls);
	MemoryContext old;
	LaArrayKeys *el;
	ScanKey		keys = la_bt_array_keys(ls->scan, so);
	int			nkeys = la_bt_narray_keys(ls->scan, so);
	int			column = 0;

	if (so->numArrayKeys <= 0 || ls->scan->parallel_scan != NULL ||
		!la_budget_has(&ls->budget, elements_size()))
		return NULL;

	old = MemoryContextSwitchTo(ls->context);
	la_budget_take(&ls->budget, elements_size());
	el = palloc0(sizeof(LaArrayKeys));
	el->ls = ls;
	el->descent = la_descent_create(ls->real, ls->scan->heapRelation,
									LA_DESCENT_ALL);
	el->total = 1;
	for (int i = 0; i < nkeys; i++)
	{
		ScanKey		key = &keys[i];
		int			array = -1;

		if (key->sk_attno <= column)
			continue;			/* one more key of a column that has one */
		for (int a = 0; a < so->numArrayKeys; a++)
		{
			if (so->arrayKeys[a].scan_key == i)
				array = a;
		}
		if (key->sk_attno != column + 1 ||
			key->sk_strategy != BTEqualStrategyNumber ||
			(key->sk_flags & (SK_ISNULL | SK_ROW_HEADER | SK_SEARCHNULL |
							  SK_SEARCHNOTNULL)) != 0 ||
			(array >= 0 && array != el->narrays) ||
			(array >= 0 && so->arrayKeys[array].num_elems <= 0) ||
			(array >= 0 &&
			 el->total > MAX_COMBINATIONS / so->arrayKeys[array].num_elems) ||
			(array < 0 && (key->sk_flags & SK_SEARCHARRAY) != 0) ||
			!la_descent_add_column(el->descent, key->sk_subtype,
								   key->sk_collation))
			break;
		if (array >= 0)
		{
			el->total *= so->arrayKeys[array].num_elems;
			el->narrays++;
		}
		else
			la_descent_set(el->descent, column, key->sk_argument);
		el->array_of_key[column++] = array;
	}
	MemoryContextSwitchTo(old);

	if (el->narrays == 0)
	{
		la_arraykeys_free(ls, el);
		return NULL;
	}
	el->last_leaf = InvalidBlockNumber;
	return el;
}

void
la_arraykeys_free(LaScan *ls, LaArrayKeys *el)
{
	la_budget_return(&ls->budget, elements_size());
	la_descent_free(el->descent);
	pfree(el);
}

/* Which combination do the arrays stand at, in the order of the scan? */
static int64
current_combination(LaArrayKeys *el, ScanDirection dir)
{
	BTScanOpaque so = la_bt_opaque(el->ls);
	int64		n = 0;

	for (int a = 0; a < el->narrays; a++)
		n = n * so->arrayKeys[a].num_elems + so->arrayKeys[a].cur_elem;
	return ScanDirectionIsForward(dir) ? n : el->total - 1 - n;
}

static void
set_combination(LaArrayKeys *el, int64 n, ScanDirection dir)
{
	BTScanOpaque so = la_bt_opaque(el->ls);

	if (!ScanDirectionIsForward(dir))
		n = el->total - 1 - n;
	for (int column = la_descent_columns(el->descent) - 1; column >= 0; column--)
	{
		int			a = el->array_of_key[column];

		if (a < 0)
			continue;
		la_descent_set(el->descent, column,
					   so->arrayKeys[a].elem_values[n % so->arrayKeys[a].num_elems]);
		n /= so->arrayKeys[a].num_elems;
	}
}

static void
issue_leaf(LaArrayKeys *el, BlockNumber leaf)
{
	if (leaf == el->last_leaf)
		return;
	el->last_leaf = leaf;
	(void) la_shim_issue_index_page(el->ls, leaf);
}

/*
 * Search the inner pages for the combination that was set, and issue its leaf page.
 * Returns false if that would mean to wait for an inner page, whose read was started
 * instead.
 */
static bool
look_up(LaArrayKeys *el, bool may_wait)
{
	BlockNumber leaf;

	switch (la_descent_find_leaf(el->descent, may_wait, &leaf))
	{
		case LA_DESCENT_FOUND:
			issue_leaf(el, leaf);
			return true;
		case LA_DESCENT_PENDING:
			return false;
		case LA_DESCENT_NOTHING:
			break;
	}
	return true;
}

/*
 * The access method is about to be run ahead: look up what comes after that.
 */
void
la_arraykeys_advance(LaArrayKeys *el, ScanDirection dir, int64 rows_wanted)
{
	LaIoPolicy *policy = &el->ls->policy;
	int64		here = current_combination(el, dir);
	int64		distance = Min(policy->ahead, policy->config.max_distance);
	int64		end;

	distance = Min(distance, rows_wanted);
	end = Min(here + 1 + distance, el->total);
	if (el->next <= here)
		el->next = here + 1;

	for (; el->first_put_off < el->nput_off; el->first_put_off++)
	{
		int64		n = el->put_off[el->first_put_off % PUT_OFF];

		if (n > here + 1 + distance / 2)
			break;
		if (n <= here)
			continue;
		CHECK_FOR_INTERRUPTS();
		set_combination(el, n, dir);
		(void) look_up(el, true);
	}

	for (; el->next < end; el->next++)
	{
		bool		room = el->nput_off - el->first_put_off < PUT_OFF;

		CHECK_FOR_INTERRUPTS();
		set_combination(el, el->next, dir);
		if (!look_up(el, !room))
			el->put_off[el->nput_off++ % PUT_OFF] = el->next;
	}
}
