/*
 * arraykeys.c
 *	  Leaf pages that the next elements of an IN list will need (nbtree).
 *
 * Where the values of "column = ANY (array)" lie scattered, each of them costs a descent to a leaf
 * page that no other page links to.  But the array names the values to come.  So before the access
 * method is asked for the next leaf page, the inner pages are searched for elements further on,
 * and the reads of their leaf pages are started.
 *
 *		elements   17  23  |42|  99  105  230  ...
 *				   done		^	 |<- ahead ->|
 *						 nbtree	   downlinks searched, leaf pages issued
 *
 * Several arrays, and equality keys between them, count as one array of their combinations in the
 * order of the scan (the last array turns fastest), as long as they are keys of the index's first
 * columns.  A column without such a key, or with a skip array of 18, ends that prefix.
 *
 * Where an inner page is not cached, its read is started instead, and the search is deferred until
 * the element is half as far away.  So the only waits are for pages that the access method would
 * have waited for.
 *
 * All of it is a hint (btree/descent.c): concurrent splits can make it useless, but nothing else.
 *
 * src/scan/arraykeys.c
 */
#include "postgres.h"

#include "miscadmin.h"

#include "base/compat.h"
#include "base/compat_btree.h"
#include "btree/btree.h"
#include "scan/scan_int.h"

#define MAX_COMBINATIONS	((int64) 1 << 40)
#define MAX_DEFERRED		64	/* searches, a power of 2 */

typedef struct LaArrayKeys
{
	LaScan	   *ls;
	int			narrays;		/* arrays in the prefix, slowest first */
	int			array_of_column[INDEX_MAX_KEYS];	/* or -1: not an array */
	int64		total;			/* combinations */

	int64		next;			/* combination to search for next */
	int64		deferred[MAX_DEFERRED]; /* combinations, in their order */
	uint64		first_deferred;
	uint64		end_deferred;
	BlockNumber last_leaf;		/* issued last: neighbours often share it */

	LaDescent  *descent;
} LaArrayKeys;

static Size
own_bytes(void)
{
	return sizeof(LaArrayKeys) + la_descent_size();
}

/* Add the key of the next column to the prefix.  Returns false if it does not fit. */
static bool
add_column(LaArrayKeys *ak, BTScanOpaque so, ScanKey keys, int which)
{
	ScanKey		key = &keys[which];
	int			column = la_descent_columns(ak->descent);
	int			array = -1;
	int64		nelems = 1;

	for (int a = 0; a < so->numArrayKeys; a++)
	{
		if (so->arrayKeys[a].scan_key == which)
			array = a;
	}
	if (array >= 0)
		nelems = so->arrayKeys[array].num_elems;
	if (key->sk_attno != column + 1 ||
		key->sk_strategy != BTEqualStrategyNumber ||
		(key->sk_flags & (SK_ISNULL | SK_ROW_HEADER | SK_SEARCHNULL |
						  SK_SEARCHNOTNULL)) != 0 ||
		(array >= 0 && array != ak->narrays) ||
		nelems <= 0 || ak->total > MAX_COMBINATIONS / nelems ||
		(array < 0 && (key->sk_flags & SK_SEARCHARRAY) != 0) ||
		!la_descent_add_column(ak->descent, key->sk_subtype, key->sk_collation))
		return false;
	ak->total *= nelems;
	if (array >= 0)
		ak->narrays++;
	else
		la_descent_set(ak->descent, column, key->sk_argument);
	ak->array_of_column[column] = array;
	return true;
}

static void
free_keys(LaScan *ls, LaArrayKeys *ak)
{
	la_budget_return(&ls->budget, own_bytes());
	la_descent_free(ak->descent);
	pfree(ak);
}

/* Returns NULL if the scan has no array to look ahead in. */
static LaArrayKeys *
create(LaScan *ls)
{
	BTScanOpaque so = la_bt_opaque(ls);
	MemoryContext old;
	LaArrayKeys *ak;
	ScanKey		keys = la_bt_array_keys(ls->scan, so);
	int			nkeys = la_bt_narray_keys(ls->scan, so);

	if (so->numArrayKeys <= 0 || ls->scan->parallel_scan != NULL ||
		!la_budget_has(&ls->budget, own_bytes()))
		return NULL;

	old = MemoryContextSwitchTo(ls->context);
	la_budget_take(&ls->budget, own_bytes());
	ak = palloc0(sizeof(LaArrayKeys));
	ak->ls = ls;
	ak->descent = la_descent_create(ls->real, ls->scan->heapRelation);
	ak->total = 1;
	for (int i = 0; i < nkeys; i++)
	{
		/* of several keys of a column, the first one counts */
		if (keys[i].sk_attno > la_descent_columns(ak->descent) && !add_column(ak, so, keys, i))
			break;
	}
	MemoryContextSwitchTo(old);

	if (ak->narrays == 0 || !la_descent_may_be_early(ak->descent))
	{
		free_keys(ls, ak);
		return NULL;
	}
	ak->last_leaf = InvalidBlockNumber;
	return ak;
}

/* The next scan may have other arrays. */
void
la_arraykeys_forget(LaScan *ls)
{
	if (ls->arraykeys)
		free_keys(ls, ls->arraykeys);
	ls->arraykeys = NULL;
	ls->arraykeys_tried = false;
}

/* The number, in the order of the scan, of the combination that the arrays are at. */
static int64
current_combination(LaArrayKeys *ak, ScanDirection dir)
{
	BTScanOpaque so = la_bt_opaque(ak->ls);
	int64		n = 0;

	for (int a = 0; a < ak->narrays; a++)
		n = n * so->arrayKeys[a].num_elems + so->arrayKeys[a].cur_elem;
	return ScanDirectionIsForward(dir) ? n : ak->total - 1 - n;
}

static void
set_combination(LaArrayKeys *ak, int64 n, ScanDirection dir)
{
	BTScanOpaque so = la_bt_opaque(ak->ls);

	if (!ScanDirectionIsForward(dir))
		n = ak->total - 1 - n;
	for (int column = la_descent_columns(ak->descent) - 1; column >= 0; column--)
	{
		int			a = ak->array_of_column[column];

		if (a < 0)
			continue;
		la_descent_set(ak->descent, column,
					   so->arrayKeys[a].elem_values[n % so->arrayKeys[a].num_elems]);
		n /= so->arrayKeys[a].num_elems;
	}
}

/*
 * Search the inner pages for the combination that was set, and issue its leaf page.  Returns
 * false, unless may_wait, if an inner page is not cached: its read was started instead.
 */
static bool
search(LaArrayKeys *ak, bool may_wait)
{
	BlockNumber leaf;
	LaDescentResult result = la_descent_find_leaf(ak->descent, may_wait, &leaf);

	if (result == LA_DESCENT_FOUND && leaf != ak->last_leaf)
	{
		ak->last_leaf = leaf;
		(void) la_leafahead_issue_page(&ak->ls->leaf, leaf);
	}
	return result != LA_DESCENT_PENDING;
}

/* Search for up to so many combinations after the current one. */
static void
search_ahead(LaArrayKeys *ak, ScanDirection dir, int64 distance)
{
	int64		here = current_combination(ak, dir);
	int64		end;

	end = Min(here + 1 + distance, ak->total);
	if (ak->next <= here)
		ak->next = here + 1;

	for (; ak->first_deferred < ak->end_deferred; ak->first_deferred++)
	{
		int64		n = ak->deferred[ak->first_deferred % MAX_DEFERRED];

		if (n > here + 1 + distance / 2)
			break;
		if (n <= here)
			continue;
		CHECK_FOR_INTERRUPTS();
		set_combination(ak, n, dir);
		(void) search(ak, true);
	}

	for (; ak->next < end; ak->next++)
	{
		bool		room = ak->end_deferred - ak->first_deferred < MAX_DEFERRED;

		CHECK_FOR_INTERRUPTS();
		set_combination(ak, ak->next, dir);
		if (!search(ak, !room))
			ak->deferred[ak->end_deferred++ % MAX_DEFERRED] = ak->next;
	}
}

/*
 * The access method is about to be asked for another page: start the reads of those that the next
 * elements will need, if one of the scan's policies is armed.
 */
void
la_arraykeys_advance(LaScan *ls, ScanDirection dir, int64 rows_wanted)
{
	LaLeafPolicy *policy = &ls->leaf.policy;
	int64		distance = 0;

	if (la_bt_opaque(ls)->numArrayKeys <= 0)
		return;
	if (ls->owner != NULL && ls->policy.state == LA_ARMED && ls->policy.for_reads)
		distance = Min(ls->policy.ahead, ls->policy.config.max_distance);
	if (la_leaf_policy_is_armed(policy))
		distance = Max(distance, la_leaf_policy_pages_ahead(policy, rows_wanted, 1));
	if (distance <= 0 || rows_wanted <= 0)
		return;
	distance = Min(distance, la_leafahead_limit(&ls->leaf));
	if (distance == 0)
		return;
	if (!ls->arraykeys_tried)
		ls->arraykeys = create(ls);
	ls->arraykeys_tried = true;
	if (ls->arraykeys)
		search_ahead(ls->arraykeys, dir, Min(distance, rows_wanted));
}
