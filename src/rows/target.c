/*
 * target.c
 *	  A table that rows are written to, and the leaf pages of its btree indexes that a row needs.
 *
 * A new row gets an entry in each index whose predicate it satisfies.  The entry's key is formed
 * of the row's columns, as FormIndexDatum() does it later for the server, and the leaf page is
 * found by a descent.  In a unique index it is the first page that can have an equal entry, where
 * the server looks for conflicts; in others the place behind all equal entries, since heap TIDs
 * are part of the order, and new rows are mostly behind the others in the table.
 * In a hash index it is the first page of the value's bucket (bucket.c).
 *
 * An index is left alone
 *	- if it is neither a btree nor a hash index (an entry of GiST has no place of its own, and GIN
 *	  collects entries in its pending list), is not ready for inserts, or is a btree of a version in
 *	  which heap TIDs are not part of the order;
 *	- if a comparison or hash function, an expression or the predicate could be noticed to be
 *	  evaluated early (attach/effects.c);
 *	- if it depends on a generated column whose value is not known yet.
 *
 * An expression or a predicate that fails, as lower() does for damaged text, is the server's to
 * raise, if it writes the row: the row is left alone in this index (base/attempt.c).
 *
 * ON CONFLICT: the arbiter indexes are looked up first.  If one of them has an equal entry, its
 * rows are what the server reads next; otherwise it needs the leaf pages of the other indexes.
 * Only a unique btree is known as an arbiter.  Where none is, as without unique indexes or with an
 * exclusion constraint alone, there is no first stage: the leaf pages of all indexes are what the
 * row needs.
 *
 * Invariants
 *	- Only functions are called that have no effects and read no state.
 *	- Visits of a first stage are those of arbiters, and an arbiter has a descent.
 *
 * src/rows/target.c
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/sysattr.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "executor/executor.h"
#include "optimizer/optimizer.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "attach/attach.h"
#include "base/base.h"
#include "base/compat.h"
#include "rows/rows.h"
#include "rows/rows_int.h"

#define MAX_HEAP_VISITS	4		/* of rows that conflict */

struct LaTargetIndex
{
	Relation	index;
	LaDescent  *descent;		/* NULL: a hash index */
	int			rel;			/* in LaAhead */
	IndexInfo  *info;
	const IndexInfo *server_info;	/* that of the server, or NULL */
	void	   *insert;			/* of la_target_expect()'s caller; or NULL */
	Bitmapset  *columns;		/* that the key and the predicate depend on */
	ExprState  *predicate;
	List	   *expressions;	/* ExprStates */
	bool		may_fail;		/* they, or the predicate */
	bool		unique;
	bool		arbiter;
};

/* Is this a table of whose indexes something can be known ahead? */
bool
la_target_is_possible(Relation heap)
{
	return la_target_is_heap(heap) && heap->rd_rel->relhasindex && !RelationUsesLocalBuffers(heap);
}

/* ---- eligibility of an index ------------------------------------------------- */

static bool
comparisons_are_pure(Relation index)
{
	LaEffects	effects = {0};

	la_effects_of_index(&effects, index);
	return effects.flags == 0;
}

static bool
expressions_are_pure(const IndexInfo *info, bool *may_fail)
{
	LaEffects	effects = {0};

	la_effects_of_expression(&effects, (Node *) info->ii_Expressions);
	la_effects_of_expression(&effects, (Node *) info->ii_Predicate);
	*may_fail = (effects.flags & LA_MAY_FAIL) != 0;
	return (effects.flags & ~LA_MAY_FAIL) == 0;
}

/* The columns that an entry depends on, by number minus FirstLowInvalidHeapAttributeNumber. */
static Bitmapset *
columns_of(const IndexInfo *info)
{
	Bitmapset  *used = NULL;

	pull_varattnos((Node *) info->ii_Expressions, 1, &used);
	pull_varattnos((Node *) info->ii_Predicate, 1, &used);
	for (int k = 0; k < info->ii_NumIndexAttrs; k++)
	{
		if (info->ii_IndexAttrNumbers[k] != 0)
			used = bms_add_member(used, info->ii_IndexAttrNumbers[k] -
								  FirstLowInvalidHeapAttributeNumber);
	}
	return used;
}

static bool
has_whole_row(const Bitmapset *columns)
{
	return bms_is_member(-FirstLowInvalidHeapAttributeNumber, columns);
}

static bool
uses_generated(const Bitmapset *columns, TupleDesc desc)
{
	if (desc->constr == NULL)
		return false;
	for (int i = 0; i < desc->natts; i++)
	{
		if (TupleDescAttr(desc, i)->attgenerated != '\0' &&
			(has_whole_row(columns) ||
			 bms_is_member(i + 1 - FirstLowInvalidHeapAttributeNumber, columns)))
			return true;
	}
	return false;
}

static LaDescent *
create_descent(Relation index, Relation heap)
{
	LaDescent  *descent = la_descent_create(index, heap);

	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		if (!la_descent_add_column(descent, InvalidOid, index->rd_indcollation[i]))
		{
			la_descent_free(descent);
			return NULL;
		}
	}
	return descent;
}

/* Returns false if the user may not call one of their functions. */
static bool
prepare_expressions(LaTarget *target, LaTargetIndex *ix)
{
	MemoryContext old;

	if (ix->info->ii_Expressions == NIL && ix->info->ii_Predicate == NIL)
		return true;
	if (target->estate == NULL)
		target->estate = CreateExecutorState();
	if (!la_compile_list(ix->info->ii_Expressions, target->estate, &ix->expressions))
		return false;
	if (ix->info->ii_Predicate == NIL)
		return true;
	old = MemoryContextSwitchTo(target->estate->es_query_cxt);
	ix->predicate = la_compile_qual(ix->info->ii_Predicate);
	MemoryContextSwitchTo(old);
	return ix->predicate != NULL;
}

/* Are indexes of this kind looked at? */
static bool
is_known_method(Oid am)
{
	return (am == BTREE_AM_OID || am == HASH_AM_OID) && !la_am_is_excluded(am);
}

static bool
add_index(LaTarget *target, Relation index, bool generated_known)
{
	LaTargetIndex *ix = &target->indexes[target->nindexes];
	bool		is_btree = index->rd_rel->relam == BTREE_AM_OID;
	Size		size = is_btree ? la_descent_size() : 0;

	if (!is_known_method(index->rd_rel->relam) || !index->rd_index->indisready ||
		!la_budget_has(la_ahead_budget(target->ahead), size) || !comparisons_are_pure(index))
		return false;
	memset(ix, 0, sizeof(LaTargetIndex));
	ix->index = index;
	ix->info = BuildIndexInfo(index);
	ix->columns = columns_of(ix->info);
	if (!expressions_are_pure(ix->info, &ix->may_fail) ||
		(!generated_known && uses_generated(ix->columns, RelationGetDescr(target->heap))) ||
		!prepare_expressions(target, ix))
		return false;
	ix->descent = is_btree ? create_descent(index, target->heap) : NULL;
	if (is_btree && ix->descent == NULL)
		return false;
	ix->rel = la_ahead_add_relation(target->ahead, index, ix->descent);
	if (ix->rel < 0)
		return false;
	la_budget_take(la_ahead_budget(target->ahead), size);
	ix->unique = index->rd_index->indisunique && !index->rd_index->indisexclusion;
	target->nindexes++;
	return true;
}

/*
 * Created in the current memory context.  indexes: those that the server has opened, some may be
 * NULL; infos: what it has made for them, or NULL.  NULL if nothing can be known ahead.
 */
LaTarget *
la_target_create(LaAhead *ahead, Relation heap, int nindexes, Relation *indexes,
				 IndexInfo **infos, bool generated_known)
{
	LaTarget   *target;

	if (!la_target_is_possible(heap))
		return NULL;
	target = palloc0(sizeof(LaTarget));
	target->ahead = ahead;
	target->heap = heap;
	target->heap_rel = -1;
	target->indexes = palloc0(LA_TARGET_INDEXES * sizeof(LaTargetIndex));
	for (int i = 0; i < nindexes && target->nindexes < LA_TARGET_INDEXES; i++)
	{
		if (indexes[i] != NULL && add_index(target, indexes[i], generated_known) && infos != NULL)
			target->indexes[target->nindexes - 1].server_info = infos[i];
	}
	return target->nindexes > 0 ? target : NULL;
}

/* The columns that its indexes depend on, by number minus FirstLowInvalidHeapAttributeNumber. */
Bitmapset *
la_target_columns(const LaTarget *target)
{
	Bitmapset  *columns = NULL;

	for (int i = 0; i < target->nindexes; i++)
		columns = bms_add_members(columns, target->indexes[i].columns);
	if (has_whole_row(columns))
		columns = bms_add_range(columns, 1 - FirstLowInvalidHeapAttributeNumber,
								RelationGetNumberOfAttributes(target->heap) -
								FirstLowInvalidHeapAttributeNumber);
	return columns;
}

/* ON CONFLICT.  arbiters: the indexes that decide; NIL: all unique ones do. */
void
la_target_set_arbiters(LaTarget *target, List *arbiters)
{
	for (int i = 0; i < target->nindexes; i++)
	{
		LaTargetIndex *ix = &target->indexes[i];

		ix->arbiter = ix->unique && ix->descent != NULL &&
			(arbiters == NIL ||
			 list_member_oid(arbiters, RelationGetRelid(ix->index)));
		target->has_arbiters |= ix->arbiter;
	}
	if (target->has_arbiters)
		target->heap_rel = la_ahead_add_relation(target->ahead, target->heap, NULL);
}

/* ---- a row ------------------------------------------------------------------ */

static bool
depends_on(const LaTargetIndex *ix, const Bitmapset *columns)
{
	return columns != NULL && (has_whole_row(ix->columns) || bms_overlap(ix->columns, columns));
}

static void
add_visits(const LaTarget *target, LaAheadRow *row, bool arbiters, const Bitmapset *unknown,
		   Relation without)
{
	for (int i = 0; i < target->nindexes; i++)
	{
		const LaTargetIndex *ix = &target->indexes[i];

		if (ix->arbiter == arbiters && !depends_on(ix, unknown) && ix->index != without)
			(void) la_ahead_add_visit(row, ix->rel);
	}
}

/*
 * For LaRowSource.plan.  unknown: columns of which the row has no value yet.  Without arbiters the
 * visits are those of the second stage.
 */
void
la_target_plan(const LaTarget *target, LaAheadRow *row, const Bitmapset *unknown)
{
	if (!target->has_arbiters)
		row->located = true;
	add_visits(target, row, target->has_arbiters, unknown, NULL);
}

/* The same, but for an index whose leaf page for the row is known already. */
void
la_target_plan_without(const LaTarget *target, LaAheadRow *row, const Bitmapset *unknown,
					   Relation index)
{
	add_visits(target, row, target->has_arbiters, unknown, index);
}

/* The server's IndexInfo of an index, which lives as long as the target. */
void
la_target_set_info(LaTarget *target, Relation index, IndexInfo *info)
{
	for (int i = 0; i < target->nindexes; i++)
	{
		if (target->indexes[i].index == index)
			target->indexes[i].server_info = info;
	}
}

/* It is the row's turn: pass on the leaf pages that were found for it. */
void
la_target_expect(LaTarget *target, const LaAheadRow *row, LaExpectLeaf expect)
{
	for (int v = 0; v < row->nvisits; v++)
	{
		const LaRowVisit *visit = &row->visits[v];

		for (int i = 0; visit->state == ROW_VISIT_KNOWN && i < target->nindexes; i++)
		{
			LaTargetIndex *ix = &target->indexes[i];

			if (ix->rel == visit->rel && ix->descent != NULL && ix->server_info != NULL)
				expect(&ix->insert, ix->index, ix->server_info, visit->block);
		}
	}
}

/* For LaRowSource.locate. */
bool
la_target_locate(const LaTarget *target, LaAheadRow *row, const LaMatches *matches, bool last)
{
	if (matches->count > 0 && target->heap_rel >= 0)
	{
		LaMatchVisits which = {.most = MAX_HEAP_VISITS};

		la_ahead_add_matches(target->ahead, row, target->heap_rel, matches, &which);
		return true;
	}
	if (last)
		add_visits(target, row, false, NULL, NULL);
	return last;
}

/* A value of the key, which is used before the context is reset.  False if it is not at hand. */
static bool
set_value(LaTargetIndex *ix, int column, Datum value, bool isnull, bool *has_null)
{
	if (isnull)
	{
		la_descent_set_null(ix->descent, column);
		*has_null = true;
		return true;
	}
	return la_descent_set_stored(ix->descent, column, value,
								 TupleDescAttr(RelationGetDescr(ix->index), column)->attlen == -1);
}

/* The same for a hash index, which has no entries for nulls. */
static bool
set_bucket(LaTarget *target, LaTargetIndex *ix, Datum value, bool isnull)
{
	bool		is_varlena = ix->info->ii_IndexAttrNumbers[0] > 0 &&
		TupleDescAttr(RelationGetDescr(target->heap),
					  ix->info->ii_IndexAttrNumbers[0] - 1)->attlen == -1;

	if (isnull || (is_varlena && VARATT_IS_EXTERNAL(DatumGetPointer(value))))
		return false;
	la_ahead_set_block(target->ahead, la_bucket_of(ix->index, value));
	return true;
}

static bool
set_columns(LaTarget *target, LaTargetIndex *ix, TupleTableSlot *slot, ExprContext *econtext)
{
	ListCell   *expression = list_head(ix->expressions);
	bool		has_null = false;

	for (int i = 0; i < ix->info->ii_NumIndexKeyAttrs; i++)
	{
		AttrNumber	attno = ix->info->ii_IndexAttrNumbers[i];
		Datum		value;
		bool		isnull;

		if (attno > 0)
			value = slot_getattr(slot, attno, &isnull);
		else if (attno == 0 && expression != NULL)
		{
			value = ExecEvalExpr((ExprState *) lfirst(expression), econtext, &isnull);
			expression = lnext(ix->expressions, expression);
		}
		else
			return false;
		if (ix->descent == NULL)
			return set_bucket(target, ix, value, isnull);
		if (!set_value(ix, i, value, isnull, &has_null))
			return false;
	}
	if (ix->index->rd_index->indnullsnotdistinct)
		has_null = false;
	la_descent_search_behind(ix->descent, !ix->unique || has_null);
	return true;
}

static bool
set_index_key(LaTarget *target, LaTargetIndex *ix, TupleTableSlot *slot)
{
	ExprContext *econtext = NULL;

	if (ix->expressions != NIL || ix->predicate != NULL)
	{
		econtext = GetPerTupleExprContext(target->estate);
		ResetExprContext(econtext);
		econtext->ecxt_scantuple = slot;
		if (ix->predicate != NULL && !ExecQual(ix->predicate, econtext))
			return false;
	}
	return set_columns(target, ix, slot, econtext);
}

typedef struct Attempt
{
	LaTarget   *target;
	LaTargetIndex *ix;
	TupleTableSlot *slot;
	bool		has_key;
} Attempt;

static void
attempt_key(void *arg)
{
	Attempt    *a = arg;

	a->has_key = set_index_key(a->target, a->ix, a->slot);
}

/*
 * For LaRowSource.set_key: set the key of the row, which is in this slot.  What it
 * allocates is in the current memory context, and needed until the search is over.
 */
bool
la_target_set_key(LaTarget *target, int rel, TupleTableSlot *slot)
{
	LaTargetIndex *ix = target->indexes;
	Attempt		attempt = {target, NULL, slot, false};

	while (ix->rel != rel)
	{
		if (++ix == target->indexes + target->nindexes)
			return false;
	}
	if (!ix->may_fail)
		return set_index_key(target, ix, slot);
	attempt.ix = ix;
	return la_attempt_compute(attempt_key, &attempt) && attempt.has_key;
}
