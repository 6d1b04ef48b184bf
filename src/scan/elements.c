/*
 * elements.c
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
 * All of it is a hint: inner pages are read under a share lock, as in any
 * descent, and take no predicate locks; splits that happen meanwhile make the
 * hint useless, nothing else.  The binary search is that of every btree, with
 * the server's own comparison of index tuples (_bt_compare).
 *
 * src/scan/elements.c
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "storage/bufmgr.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "scan/batch.h"
#include "scan/elements.h"
#include "window/issue.h"

#define MAX_COMBINATIONS	((int64) 1 << 40)
#define PUT_OFF				64	/* elements, a power of 2 */

struct LaElements
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
	BlockNumber last_inner;

	BTScanInsertData key;
};

/*
 * Fill the part of the insertion scan key that stays the same.  Returns false if
 * the column's comparison function cannot be found.
 */
static bool
init_column(LaElements *el, int column, ScanKey from)
{
	Relation	index = el->ls->real;
	ScanKey		to = &el->key.scankeys[column];
	Oid			type = index->rd_opcintype[column];
	int			flags = index->rd_indoption[column] << SK_BT_INDOPTION_SHIFT;

	if (from->sk_subtype == type || from->sk_subtype == InvalidOid)
		ScanKeyEntryInitializeWithInfo(to, flags, column + 1, InvalidStrategy,
									   InvalidOid, from->sk_collation,
									   index_getprocinfo(index, column + 1,
														 BTORDER_PROC),
									   from->sk_argument);
	else
	{
		Oid			proc = get_opfamily_proc(index->rd_opfamily[column], type,
											 from->sk_subtype, BTORDER_PROC);

		if (!OidIsValid(proc))
			return false;
		ScanKeyEntryInitialize(to, flags, column + 1, InvalidStrategy,
							   from->sk_subtype, from->sk_collation, proc,
							   from->sk_argument);
	}
	return true;
}

/*
 * Returns NULL if the scan has no array to look ahead in.
 */
LaElements *
la_elements_create(LaScan *ls)
{
	BTScanOpaque so = la_bt_opaque(ls);
	MemoryContext old;
	LaElements *el;
	ScanKey		keys = la_bt_array_keys(ls->scan, so);
	int			nkeys = la_bt_narray_keys(ls->scan, so);
	int			column = 0;

	if (so->numArrayKeys <= 0 || ls->scan->parallel_scan != NULL ||
		!la_budget_has(&ls->budget, sizeof(LaElements)))
		return NULL;

	old = MemoryContextSwitchTo(ls->context);
	la_budget_take(&ls->budget, sizeof(LaElements));
	el = palloc0(sizeof(LaElements));
	el->ls = ls;
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
			(array < 0 && (key->sk_flags & SK_SEARCHARRAY) != 0) ||
			!init_column(el, column, key))
			break;
		if (array >= 0)
		{
			if (el->total > MAX_COMBINATIONS / so->arrayKeys[array].num_elems)
				break;
			el->total *= so->arrayKeys[array].num_elems;
			el->narrays++;
		}
		el->array_of_key[column++] = array;
	}
	MemoryContextSwitchTo(old);

	if (el->narrays == 0)
	{
		la_elements_free(ls, el);
		return NULL;
	}
	_bt_metaversion(ls->real, &el->key.heapkeyspace, &el->key.allequalimage);
	el->key.keysz = column;
	el->last_leaf = el->last_inner = InvalidBlockNumber;
	return el;
}

void
la_elements_free(LaScan *ls, LaElements *el)
{
	la_budget_return(&ls->budget, sizeof(LaElements));
	pfree(el);
}

/* Which combination do the arrays stand at, in the order of the scan? */
static int64
current_combination(LaElements *el, ScanDirection dir)
{
	BTScanOpaque so = la_bt_opaque(el->ls);
	int64		n = 0;

	for (int a = 0; a < el->narrays; a++)
		n = n * so->arrayKeys[a].num_elems + so->arrayKeys[a].cur_elem;
	return ScanDirectionIsForward(dir) ? n : el->total - 1 - n;
}

static void
set_combination(LaElements *el, int64 n, ScanDirection dir)
{
	BTScanOpaque so = la_bt_opaque(el->ls);

	if (!ScanDirectionIsForward(dir))
		n = el->total - 1 - n;
	for (int column = el->key.keysz - 1; column >= 0; column--)
	{
		int			a = el->array_of_key[column];

		if (a < 0)
			continue;
		el->key.scankeys[column].sk_argument =
			so->arrayKeys[a].elem_values[n % so->arrayKeys[a].num_elems];
		n /= so->arrayKeys[a].num_elems;
	}
}

/*
 * The downlink to follow: that of the last tuple which is smaller than the key.
 */
static BlockNumber
find_downlink(Relation index, BTScanInsert key, Page page)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);
	OffsetNumber low = P_FIRSTDATAKEY(opaque);
	OffsetNumber high = PageGetMaxOffsetNumber(page);

	if (high < low)
		return InvalidBlockNumber;
	/* the first one counts as minus infinity */
	while (low < high)
	{
		OffsetNumber mid = low + (high - low + 1) / 2;

		if (_bt_compare(index, key, page, mid) > 0)
			low = mid;
		else
			high = mid - 1;
	}
	return BTreeTupleGetDownLink((IndexTuple)
								 PageGetItem(page, PageGetItemId(page, low)));
}

static void
issue_leaf(LaElements *el, BlockNumber leaf)
{
	if (leaf == el->last_leaf)
		return;
	el->last_leaf = leaf;
	(void) la_shim_issue_index_page(el->ls, leaf);
}

/*
 * Search the inner pages for the combination in el->key, and issue its leaf
 * page.  Returns false if that would mean to wait for an inner page, whose read
 * was started instead.
 */
static bool
look_up(LaElements *el, bool may_wait)
{
	Relation	index = el->ls->real;
	Buffer		buf = la_bt_getroot(index, el->ls->scan->heapRelation);
	BlockNumber child = InvalidBlockNumber;
	Buffer		recent;

	while (BufferIsValid(buf))
	{
		Page		page = BufferGetPage(buf);
		BTPageOpaque opaque = BTPageGetOpaque(page);
		BlockNumber next;

		if (P_ISLEAF(opaque))
			break;				/* the root is a leaf */
		if (!P_RIGHTMOST(opaque) &&
			(P_IGNORE(opaque) ||
			 _bt_compare(index, &el->key, page, P_HIKEY) > 0))
			next = opaque->btpo_next;	/* split, or deleted */
		else
		{
			next = find_downlink(index, &el->key, page);
			if (opaque->btpo_level == 1)
			{
				child = next;
				break;
			}
		}
		if (next == InvalidBlockNumber)
			break;
		if (!may_wait && !la_issue_is_cached(index, next, &recent) &&
			!RelationUsesLocalBuffers(index))
		{
			_bt_relbuf(index, buf);
			if (next != el->last_inner)
				(void) la_issue_block(index, next, &recent);
			el->last_inner = next;
			return false;
		}
		buf = _bt_relandgetbuf(index, buf, next, BT_READ);
	}
	if (BufferIsValid(buf))
		_bt_relbuf(index, buf);
	if (child != InvalidBlockNumber)
		issue_leaf(el, child);
	return true;
}

/*
 * The access method is about to be run ahead: look up what comes after that.
 */
void
la_elements_advance(LaElements *el, ScanDirection dir, int64 rows_wanted)
{
	LaPolicy   *policy = &el->ls->policy;
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
		set_combination(el, n, dir);
		(void) look_up(el, true);
	}

	for (; el->next < end; el->next++)
	{
		bool		room = el->nput_off - el->first_put_off < PUT_OFF;

		set_combination(el, el->next, dir);
		if (!look_up(el, !room))
			el->put_off[el->nput_off++ % PUT_OFF] = el->next;
	}
}
