/*
 * gate.c
 *	  May this be done early?  The one place where rooms ask.
 *
 * A room names the node, or the relation, and what it wants to do early.
 *
 *	SEARCHES	Search btree indexes for rows to come, by descents of our own.  Not where an early
 *		read could find its snapshot too old, nor where the user excludes the access method.
 *	ROWS	Take the rows to come of a scan from its own descriptor, and read their pages.  A
 *		descriptor is its access method's own: the table's has to be heap.
 *	CHILD	Execute the child of a node before the node asks for the row.  The rows of joins and
 *		writes are judged by runahead.c as well.  What is asked here is who else may look at the
 *		child's position:
 *
 *		WHERE CURRENT OF takes the row's address from the slot of a scan.  To find it the server
 *		goes from the topmost node of the cursor's plan through Append, Result, Limit and
 *		SubqueryScan.  Where it could come to a scan through the child, that scan must stay on the
 *		row that the cursor has returned.  Below Sort, Agg and joins it finds none.  With FOR UPDATE
 *		it takes the row that LockRows has locked, and a plan that locks rows is never early.
 *
 *		Nobody can ask while the statement runs to its end, if nothing in it has effects and no
 *		code of others gets the rows: then the cursor is behind its last row.
 *	INDEX PAGES	Have an access method read index pages before their turn.  It calls the operators of
 *		the scan's keys and the support functions of the index for the entries of every page: btree
 *		too, for which reading a page is comparing its entries.  So what they do is early.  They are
 *		judged as all that is early is (runahead.c): for effects, state, failures and notices.  What
 *		remains in its turn includes the scan's own filter and target list.
 *
 *		The families of the server's common types are known to do nothing of it.  Their members may
 *		be of others, as a family can be extended, and may be of two types, such as timestamp and
 *		timestamptz, whose comparison reads a setting.  Hash indexes call nothing after the first
 *		page.  Of functions that are not the server's it is assumed that they read settings, as
 *		those of pg_trgm do, which are declared immutable; but for those of the libraries of access
 *		methods that have been reviewed, or of an access method that is vouched for
 *		(base/accessmethod.c).
 *	COMPARISON	Call a comparison function of an index for entries that the server might not
 *		compare, for a hint.  It may find another state, but do nothing else that could be noticed.
 *	PINS	Keep a buffer pinned while the executor goes on, where stock would not.  On a standby
 *		VACUUM's records wait for it, and then the session is ended.  A session may outlive the
 *		recovery that it has begun in.
 *
 * Invariant: a room that wants one of these does not decide about it by itself.
 *
 * src/attach/gate.c
 */
#include "postgres.h"

#include "access/gist.h"
#include "access/nbtree.h"
#include "access/spgist.h"
#include "access/relscan.h"
#include "access/transam.h"
#include "access/xlog.h"
#include "catalog/pg_am.h"
#include "catalog/pg_type.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "attach/attach.h"
#include "attach/attach_int.h"
#include "base/base.h"
#include "base/compat.h"

/* ---- SEARCHES ------------------------------------------------------------------------- */

/* May btree indexes be searched for rows to come? */
bool
la_gate_allows_searches(void)
{
	return !la_early_reads_may_fail() && !la_am_is_excluded(BTREE_AM_OID);
}

/* ---- ROWS ---------------------------------------------------------------------- */

const char *
la_gate_refuses_rows(const PlanState *scan)
{
	return la_gate_is_heap(((const ScanState *) scan)->ss_currentRelation) ? NULL :
		"a table access method is not heap";
}

/* ---- CHILD --------------------------------------------------------------------- */

/* Does a search for a cursor's row come from "ps" to the node, or to any scan if that is NULL? */
static bool
search_reaches(PlanState *ps, const PlanState *node)
{
	PlanState  *child;

	if (node == NULL ? la_node_is(ps, LA_NODE_SCANS_TABLE) : ps == node)
		return true;
	if (!la_node_is(ps, LA_NODE_HAS_CURSOR))
		return false;
	for (int i = 0; (child = la_node_child(ps, i)) != NULL; i++)
	{
		if (search_reaches(child, node))
			return true;
	}
	return false;
}

/* May the child of the node be executed before its turn? */
const char *
la_gate_refuses_child(PlanState *node, PlanState *child)
{
	const LaStatement *s = la_statement_of(node->state);
	const LaRun *run = la_statements_run(node->state);

	if (!la_node_is(node, LA_NODE_HAS_CURSOR) || !search_reaches(child, NULL) ||
		(run->to_end && la_statement_runs_no_code(run) &&
		 la_runahead_is_without_effects(node->state)) ||
		(s != NULL && !search_reaches(s->top, node)))
		return NULL;
	return "a cursor may be asked which row of a scan it is on";
}

/* ---- PINS ------------------------------------------------------------------------------- */

/* May a buffer stay pinned that stock would not have pinned? */
bool
la_gate_allows_pin(bool local)
{
	return (local || !RecoveryInProgress()) && la_budget_has_pin(local);
}

/* ---- INDEX PAGES, COMPARISON -------------------------------------------------------- */

/*
 * Operator families of btree whose own functions compute, and no more.  What they have for two
 * types reads no setting, either, in those of the second list.
 */
static bool
is_harmless_family(Oid family, bool two_types)
{
	switch (family)
	{
		case 1970:				/* float_ops */
		case 1976:				/* integer_ops */
		case 1994:				/* text_ops */
			return true;
		case 423:				/* bit_ops */
		case 424:				/* bool_ops */
		case 426:				/* bpchar_ops */
		case 428:				/* bytea_ops */
		case 429:				/* char_ops */
		case 434:				/* datetime_ops */
		case 1974:				/* network_ops */
		case 1982:				/* interval_ops */
		case 1984:				/* macaddr_ops */
		case 1988:				/* numeric_ops */
		case 1989:				/* oid_ops */
		case 1996:				/* time_ops */
		case 2000:				/* timetz_ops */
		case 2002:				/* varbit_ops */
		case 2095:				/* text_pattern_ops */
		case 2097:				/* bpchar_pattern_ops */
		case 2099:				/* money_ops */
		case 2789:				/* tid_ops */
		case 2968:				/* uuid_ops */
		case 3253:				/* pg_lsn_ops */
		case 3371:				/* macaddr8_ops */
		case 3522:				/* enum_ops */
		case 5067:				/* xid8_ops */
			return !two_types;
		default:
			return false;
	}
}

/* The functions of a column's operator class, and the operator of a key. */
static bool
is_harmless_column(const RelationData *index, int column)
{
	return is_harmless_family(index->rd_opfamily[column], false) &&
		index->rd_support[column * index->rd_indam->amsupport + BTORDER_PROC - 1] <
		FirstGenbkiObjectId;
}

static bool
is_harmless_key(const RelationData *index, const ScanKeyData *key)
{
	int			column = key->sk_attno - 1;
	Oid			input = index->rd_opcintype[column];
	bool		two_types = OidIsValid(key->sk_subtype) && key->sk_subtype != input;

	return key->sk_func.fn_oid < FirstGenbkiObjectId &&
		is_harmless_family(index->rd_opfamily[column], two_types);
}

/* The members of a row comparison. */
static const ScanKeyData *
members_of(const ScanKeyData *key)
{
	return (const ScanKeyData *) DatumGetPointer(key->sk_argument);
}

static bool
is_last_member(const ScanKeyData *member)
{
	return (member->sk_flags & SK_ROW_END) != 0;
}

/*
 * btree: does it call nothing but functions of harmless families?  Sets *ncolumns to the number of
 * the last key's column, up to which it compares.
 */
static bool
is_harmless_scan(IndexScanDesc scan, const RelationData *index, int *ncolumns)
{
	bool		result = true;

	*ncolumns = 0;
	for (int i = 0; i < scan->numberOfKeys; i++)
	{
		const ScanKeyData *key = &scan->keyData[i];

		if ((key->sk_flags & SK_ROW_HEADER) != 0)
		{
			for (key = members_of(key);; key++)
			{
				*ncolumns = Max(*ncolumns, key->sk_attno);
				result = result && is_harmless_key(index, key);
				if (is_last_member(key))
					break;
			}
		}
		else
		{
			*ncolumns = Max(*ncolumns, key->sk_attno);
			result = result && is_harmless_key(index, key);
		}
	}
	for (int i = 0; i < *ncolumns && result; i++)
		result = is_harmless_column(index, i);
	return result;
}

/* Do values of this type, in an array or a range, compare without any doubt? */
static bool
is_harmless_type(Oid type)
{
	Oid			base;
	Oid			element;
	const TypeCacheEntry *entry;

	if (!la_type_exists(type))
		return false;
	base = getBaseType(type);
	element = get_element_type(base);
	if (OidIsValid(element))
		return is_harmless_type(element);
	switch (get_typtype(base))
	{
		case TYPTYPE_BASE:
		case TYPTYPE_ENUM:
			entry = lookup_type_cache(base, TYPECACHE_BTREE_OPFAMILY);
			return is_harmless_family(entry->btree_opf, false);
		case TYPTYPE_RANGE:
			/* operators may make ranges, too, and call the canonical function */
			entry = lookup_type_cache(base, TYPECACHE_RANGE_INFO);
			return entry->rngelemtype != NULL &&
				entry->rng_cmp_proc_finfo.fn_oid < FirstGenbkiObjectId &&
				entry->rng_canonical_finfo.fn_oid < FirstGenbkiObjectId &&
				is_harmless_type(entry->rngelemtype->type_id);
		case TYPTYPE_MULTIRANGE:
			return is_harmless_type(get_multirange_range(base));
		default:
			return false;		/* a row may be compared with one of others */
	}
}

/* A function that an index calls for a column, with its own type, and with a key's or none. */
static void
note_function(LaEffects *e, Oid function, Oid input, Oid type, Oid subtype)
{
	bool		polymorphic = get_typtype(input) == TYPTYPE_PSEUDO && input != ANYENUMOID;
	Oid			types[2];
	int			n = 0;

	if (!OidIsValid(function))
		return;
	if (polymorphic && function < FirstGenbkiObjectId && is_harmless_type(type))
		return;
	types[n++] = polymorphic ? type : input;
	if (OidIsValid(subtype) && subtype != input)
		types[n++] = subtype;
	la_effects_of_support(e, function, n, types);
	/* what it calls for them is not known */
	if (polymorphic)
		la_effects_add(e, LA_MAY_FAIL | LA_FAILS_FREELY, NULL);
}

/*
 * A function that an index calls for one of its columns.  What has been reviewed with an access
 * method (base/accessmethod.c) is its library, and that functions of the server do not fail in it.
 */
static void
note_function_of_index(LaEffects *e, const RelationData *index, int column, Oid function,
					   Oid subtype)
{
	Oid			am = index->rd_rel->relam;
	Oid			input = index->rd_opcintype[column];
	Oid			type = TupleDescAttr(index->rd_att, column)->atttypid;
	LaEffects	own = {0};

	if (am >= FirstNormalObjectId && la_am_has_function(am, function) &&
		(get_typtype(input) != TYPTYPE_PSEUDO || is_harmless_type(type)))
		return;
	note_function(&own, function, input, type, subtype);
	if (am >= FirstNormalObjectId && function < FirstGenbkiObjectId)
		own.flags &= ~(LA_MAY_FAIL | LA_FAILS_FREELY | LA_MAY_HOLD);
	la_effects_add(e, own.flags, own.reason);
}

static void
note_key(LaEffects *e, const RelationData *index, const ScanKeyData *key)
{
	int			column = key->sk_attno - 1;
	Oid			input = index->rd_opcintype[column];

	note_function_of_index(e, index, column, key->sk_func.fn_oid, key->sk_subtype);
	/* the values of an array are compared by this one */
	if (index->rd_rel->relam == BTREE_AM_OID && OidIsValid(key->sk_subtype) &&
		key->sk_subtype != input)
		note_function_of_index(e, index, column,
							   get_opfamily_proc(index->rd_opfamily[column], input,
												 key->sk_subtype, BTORDER_PROC),
							   key->sk_subtype);
}

static void
note_keys(LaEffects *e, const RelationData *index, const ScanKeyData *keys, int n)
{
	for (int i = 0; i < n; i++)
	{
		if ((keys[i].sk_flags & SK_ROW_HEADER) == 0)
		{
			note_key(e, index, &keys[i]);
			continue;
		}
		for (const ScanKeyData *member = members_of(&keys[i]);; member++)
		{
			note_key(e, index, member);
			if (is_last_member(member))
				break;
		}
	}
}

/* Is that support function called in scans?  Others are for builds and inserts. */
static bool
is_called_in_scans(Oid am, int number, bool ordered)
{
	switch (am)
	{
		case BTREE_AM_OID:
			return number == BTORDER_PROC;
		case GIST_AM_OID:
			return number == GIST_CONSISTENT_PROC || number == GIST_DECOMPRESS_PROC ||
				number == GIST_FETCH_PROC || (ordered && number == GIST_DISTANCE_PROC);
		case SPGIST_AM_OID:
			return number == SPGIST_CONFIG_PROC || number == SPGIST_INNER_CONSISTENT_PROC ||
				number == SPGIST_LEAF_CONSISTENT_PROC;
		default:
			return true;
	}
}

static void
note_columns(LaEffects *e, const RelationData *index, int ncolumns, bool ordered)
{
	int			nsupport = index->rd_indam->amsupport;

	for (int i = 0; i < ncolumns; i++)
	{
		la_effects_of_collation(e, index->rd_indcollation[i]);
		for (int j = 0; j < nsupport; j++)
		{
			if (is_called_in_scans(index->rd_rel->relam, j + 1, ordered))
				note_function_of_index(e, index, i, index->rd_support[i * nsupport + j],
									   InvalidOid);
		}
	}
}

/*
 * May the access method of the node's scan, whose keys are set, read pages before their turn?
 * *always: whatever else the statement does, and however it is run.  *keeps_errors: an error is to
 * be kept until its turn; those methods hold nothing between calls, and what their functions do is
 * known but for that.
 */
const char *
la_gate_refuses_index_pages(PlanState *ps, IndexScanDesc scan, bool *always, bool *keeps_errors)
{
	const RelationData *index = scan->indexRelation;
	Oid			am = index->rd_rel->relam;
	int			ncolumns = IndexRelationGetNumberOfKeyAttributes(scan->indexRelation);
	bool		may_keep = am == GIST_AM_OID || am == SPGIST_AM_OID;
	bool		vouched = la_am_is_vouched_for(am);
	LaEffects	effects = {0};

	*always = true;
	*keeps_errors = false;
	if (am == HASH_AM_OID || (vouched && !may_keep))
		return NULL;
	if (am == BTREE_AM_OID && is_harmless_scan(scan, index, &ncolumns))
		return NULL;

	/*
	 * GiST and SP-GiST ask support functions only, which know the operator by
	 * its number
	 */
	if (!may_keep)
	{
		note_keys(&effects, index, scan->keyData, scan->numberOfKeys);
		note_keys(&effects, index, scan->orderByData, scan->numberOfOrderBys);
	}
	note_columns(&effects, index, ncolumns, scan->numberOfOrderBys > 0);
	/* what others call may leave more behind than what is released here */
	*keeps_errors = may_keep && (effects.flags & ~LA_MAY_FAIL) == 0 && la_attempt_is_allowed();
	*always = vouched || effects.flags == 0 || *keeps_errors;
	return *always ? NULL : la_runahead_refuses_pages(ps, &effects);
}

/* May this comparison function be called for entries of an index with values of this type? */
const char *
la_gate_refuses_comparison(Oid function, Oid type)
{
	LaEffects	effects = {0};

	note_function(&effects, function, type, type, InvalidOid);
	if ((effects.flags & LA_HAS_EFFECTS) != 0)
		return effects.reason;
	return (effects.flags & ~LA_READS_STATE) == 0 ? NULL :
		"an expression may fail that the server might not evaluate";
}
