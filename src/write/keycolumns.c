/*
 * keycolumns.c
 *	  The columns of a foreign key, and the index of the other table that has them.
 *
 * A check looks for the referenced row by the constraint's index; an action for the referring rows
 * by the index that has most of their columns in front.
 *
 * Invariant: no lock is taken.  The index that is used has been locked by an earlier query of the
 * foreign key.  (Others that match may be locked by nobody, as by a plan that was made before this
 * transaction: a lock of ours could make a REINDEX wait, or wait for it.)
 *
 * src/write/keycolumns.c
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_am.h"
#include "catalog/pg_constraint.h"
#include "parser/parse_coerce.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/syscache.h"

#include "attach/attach.h"
#include "base/compat.h"
#include "write/write_int.h"

/* Returns false if the constraint is not what the caller expects. */
bool
la_keycolumns_load(LaKeyColumns *k, Oid constraint, bool is_check, Oid table)
{
	HeapTuple	tuple = SearchSysCache1(CONSTROID, ObjectIdGetDatum(constraint));
	AttrNumber	referring[INDEX_MAX_KEYS];
	AttrNumber	referenced[INDEX_MAX_KEYS];
	Form_pg_constraint con;

	if (!HeapTupleIsValid(tuple))
		return false;
	con = (Form_pg_constraint) GETSTRUCT(tuple);
	if (con->contype != CONSTRAINT_FOREIGN)
	{
		ReleaseSysCache(tuple);
		return false;
	}
	DeconstructFkConstraintRow(tuple, &k->n, referring, referenced, NULL, NULL, NULL, NULL, NULL);
	k->conindid = con->conindid;
	k->other = is_check ? con->confrelid : con->conrelid;
	memcpy(k->here, is_check ? referring : referenced, sizeof(referring));
	memcpy(k->there, is_check ? referenced : referring, sizeof(referring));
	/* an inherited constraint is of the same columns by name only */
	if (table != (is_check ? con->conrelid : con->confrelid))
		k->n = 0;
	ReleaseSysCache(tuple);
	return k->n > 0;
}

/* How many of the index's first columns are compared; fills in the row's columns for them. */
static int
match_columns(const LaKeyColumns *k, Relation index, AttrNumber *columns)
{
	int			n;

	for (n = 0; n < IndexRelationGetNumberOfKeyAttributes(index); n++)
	{
		int			i = 0;

		while (i < k->n && k->there[i] != index->rd_index->indkey.values[n])
			i++;
		if (i == k->n)
			break;
		columns[n] = k->here[i];
	}
	return n;
}

static bool
is_usable(Relation index)
{
	return index->rd_rel->relam == BTREE_AM_OID && index->rd_rel->relkind == RELKIND_INDEX &&
		index->rd_index->indisvalid && RelationGetIndexPredicate(index) == NIL;
}

/*
 * An open index of the other table that the queries are likely to use, or NULL; and the row's
 * columns for the index's first ones.
 */
Relation
la_keycolumns_open_index(const LaKeyColumns *k, Relation other, bool is_check,
						 AttrNumber *columns, int *ncolumns)
{
	List	   *list = is_check ? list_make1_oid(k->conindid) : RelationGetIndexList(other);
	Relation	best = NULL;
	ListCell   *lc;

	*ncolumns = 0;
	foreach(lc, list)
	{
		AttrNumber	found[INDEX_MAX_KEYS];
		Relation	index = la_is_locked_by_me(lfirst_oid(lc)) ?
			RelationIdGetRelation(lfirst_oid(lc)) : NULL;
		int			n;

		if (!RelationIsValid(index))
			continue;
		n = is_usable(index) ? match_columns(k, index, found) : 0;
		if (n <= *ncolumns)
		{
			RelationClose(index);
			continue;
		}
		if (best != NULL)
			RelationClose(best);
		best = index;
		*ncolumns = n;
		memcpy(columns, found, sizeof(found));
	}
	list_free(list);
	return best;
}

/* The type of the row's column, as the index's operator class knows it. */
static Oid
subtype_of(Relation table, AttrNumber column, Relation index, int i)
{
	Oid			type = getBaseType(TupleDescAttr(RelationGetDescr(table), column - 1)->atttypid);
	Oid			input = index->rd_opcintype[i];

	return type == input || IsBinaryCoercible(type, input) ? InvalidOid : type;
}

/*
 * A descent of the index for rows of the table, in the current memory context; NULL if a
 * comparison function could be noticed to be called early.
 */
LaDescent *
la_keycolumns_descent(Relation table, Relation other, Relation index, const AttrNumber *columns,
					  int ncolumns)
{
	LaDescent  *descent = la_descent_create(index, other);

	for (int i = 0; i < ncolumns; i++)
	{
		LaEffects	effects = {0};
		Oid			type;
		Oid			function;

		if (!la_descent_add_column(descent, subtype_of(table, columns[i], index, i),
								   index->rd_indcollation[i]))
			return NULL;
		function = la_descent_comparison(descent, i, &type);
		la_effects_of_support(&effects, function, 1, &type);
		la_effects_of_collation(&effects, index->rd_indcollation[i]);
		if (effects.flags != 0)
			return NULL;
	}
	return descent;
}
