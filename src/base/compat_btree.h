/*
 * compat_btree.h
 *	  As compat.h, for nbtree.
 *
 * src/base/compat_btree.h
 */
#ifndef LA_COMPAT_BTREE_H
#define LA_COMPAT_BTREE_H

#include "access/nbtree.h"

#include "base/compat.h"

/*
 * 17 evaluates "= ANY" in one scan (commit 5bf748b86bc6): the position on a page includes
 * the direction in which the page was read, and array keys are restored by starting them
 * again.  Before 17, each array element is a scan of its own, whose keys have that element
 * only, and the state to restore is the indexes of the elements.
 */
#if PG_VERSION_NUM >= 170000
#define LA_BT_ARRAYS_IN_SCAN 1
#define la_bt_array_keys(scan, so)	((so)->keyData)
#define la_bt_narray_keys(scan, so) ((so)->numberOfKeys)
#define la_bt_key_is_array(key)		(((key)->sk_flags & SK_SEARCHARRAY) != 0)
#define la_bt_descent_is_next(so)	((so)->needPrimScan)
#define la_bt_was_read_in(so, dir)	((so)->currPos.dir == (dir))
#define la_bt_arrays_are_scans(so)	false
#else
#define la_bt_array_keys(scan, so)	((so)->arrayKeyData)
#define la_bt_narray_keys(scan, so) ((scan)->numberOfKeys)
#define la_bt_key_is_array(key)		false
#define la_bt_descent_is_next(so)	false
#define la_bt_was_read_in(so, dir)	true
#define la_bt_arrays_are_scans(so)	((so)->numArrayKeys != 0)
#endif

/*
 * Within its loop a scan may have to descend again, for later values of an array.  In 19 the
 * function that asks for it is private to nbtree; it resets two flags and returns a third.
 */
#if PG_VERSION_NUM >= 190000
#define la_bt_begin_next_scan(scan, so) \
	((so)->numArrayKeys != 0 && \
	 ((so)->scanBehind = (so)->oppositeDirCheck = false, (so)->needPrimScan))
#elif PG_VERSION_NUM >= 170000
#define la_bt_begin_next_scan(scan, so) \
	((so)->numArrayKeys != 0 && _bt_start_prim_scan(scan, ForwardScanDirection))
#else
#define la_bt_begin_next_scan(scan, so)	false
#endif

/* 18 skips over columns without "=" (commit 92fe23d93aa3): their values up to a bound. */
#if PG_VERSION_NUM >= 180000
#define la_bt_skip_array_end(array, forward) \
	((forward) ? (array)->high_compare : (array)->low_compare)
#else
#define la_bt_skip_array_end(array, forward)	NULL
#endif

/* 16 passes the heap relation down nbtree (commit 61b313e47eb9). */
#if PG_VERSION_NUM >= 160000
#define la_bt_getroot(index, heap)	_bt_getroot(index, heap, BT_READ)
#else
#define la_bt_getroot(index, heap)	_bt_getroot(index, BT_READ)
#endif

/* 18 keeps the left link as of the time the page was read (commit 1bd4bc85cac2). */
#if PG_VERSION_NUM >= 180000
#define la_bt_prev_page(pos)	((pos)->prevPage)
#else
#define la_bt_prev_page(pos)	InvalidBlockNumber
#endif

/* 18 made BTMaxItemSize a constant; before 18, it takes a page (commit 426ea611171d). */
#if PG_VERSION_NUM >= 180000
#define la_bt_max_item_size()	BTMaxItemSize
#else
#define la_bt_max_item_size() \
	BTMaxItemSize((Page) &(PageHeaderData) \
				  {.pd_pagesize_version = BLCKSZ | PG_PAGE_LAYOUT_VERSION})
#endif

#endif							/* LA_COMPAT_BTREE_H */
