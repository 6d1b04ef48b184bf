/*
 * keytables.c
 *	  The tables that a foreign key's queries look in: one, or partitions.
 *
 *		other table			a check looks in		an action looks in
 *		not partitioned		it						it
 *		partitioned			the key's partition		the key's partition, if the columns tell;
 *													else each one
 *
 * A partition is looked in only if the server has locked it for an earlier row, as it does when it
 * plans a query for it.  So partitions are added when a row comes for them.
 *
 * Left alone
 *	- partitions that are partitioned themselves, where the key tells the partition;
 *	- more than MAX_EACH partitions, where it does not, and those after the first MAX_PARTS;
 *	- partition keys of other types than the foreign key's columns, and functions of theirs that
 *	  could be noticed to be called early (rows/partition.c);
 *	- temporary tables, those that are not of heap, and those without a btree index on the columns;
 *	- checks that the server makes in batches.
 *
 * Invariant: tables and indexes are open from la_keytables_create(), or _open(), to _close() only.
 *
 * src/write/keytables.c
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "partitioning/partdesc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/partcache.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "base/compat.h"
#include "rows/rows.h"
#include "write/write_int.h"

#define MAX_HEAP_VISITS	16		/* of rows of one key */
#define MAX_EACH		8		/* partitions that are all looked in */
#define MAX_PARTS		32
#define MAX_REBUILT		16		/* times that the descriptor of partitions is
								 * another one: while a partition is being
								 * detached, it is built for each call, and
								 * never freed */

/* A table that is looked in. */
typedef struct Part
{
	Oid			table;
	Oid			index;
	Relation	heap;			/* as they were when they were opened first */
	Relation	index_rel;
	Oid			heap_file;		/* their numbers, likewise */
	Oid			index_file;
	LaDescent  *descent;
	int			heap_number;	/* in ahead */
	int			index_number;
	int			ncolumns;
	AttrNumber	columns[INDEX_MAX_KEYS];	/* of the row, in the index's
											 * order */
} Part;

struct LaKeyTables
{
	MemoryContext context;
	LaKeyColumns key;
	bool		is_check;
	Relation	table;			/* that is written */
	LaAhead    *ahead;			/* NULL at first */
	Oid			root;			/* the other table */
	Relation	root_rel;		/* ... if it is partitioned, else NULL */
	bool		is_routed;		/* the key tells the partition */
	AttrNumber	partition_key[PARTITION_MAX_KEYS];	/* the row's columns */
	PartitionDesc desc;			/* as it was last, to be compared only */
	int			nrebuilt;
	int			nparts;
	Part		parts[MAX_PARTS];
	List	   *refused;		/* OIDs of partitions that are left alone */
	const Part *searched;		/* for the last key */
};

/* ---- one table ------------------------------------------------------------------------ */

/* The constraint's columns, as this partition numbers them. */
static bool
map_columns(const LaKeyTables *t, Oid table, LaKeyColumns *key)
{
	*key = t->key;
	for (int i = 0; i < key->n && t->root_rel != NULL; i++)
	{
		key->there[i] = get_attnum(table, get_attname(t->root, key->there[i], false));
		if (!AttributeNumberIsValid(key->there[i]))
			return false;
	}
	return true;
}

static bool
open_part(LaKeyTables *t, Part *p)
{
	LaKeyColumns key;

	if (!la_target_is_heap(p->heap) || RelationUsesLocalBuffers(p->heap) ||
		!map_columns(t, p->table, &key))
		return false;
	p->index_rel = la_keycolumns_open_index(&key, p->heap, t->is_check && t->root_rel == NULL,
											p->columns, &p->ncolumns);
	if (p->index_rel == NULL)
		return false;
	p->index = RelationGetRelid(p->index_rel);
	p->heap_file = la_rel_file_number(p->heap);
	p->index_file = la_rel_file_number(p->index_rel);
	p->descent = la_keycolumns_descent(t->table, p->heap, p->index_rel, p->columns, p->ncolumns);
	return p->descent != NULL;
}

static bool
add_to_ahead(const LaKeyTables *t, Part *p)
{
	p->index_number = la_ahead_add_relation(t->ahead, p->index_rel, p->descent);
	p->heap_number = la_ahead_add_relation(t->ahead, p->heap, NULL);
	return p->index_number >= 0 && p->heap_number >= 0;
}

/* A table that this transaction has locked; NULL if it is left alone. */
static Part *
add_part(LaKeyTables *t, Oid table)
{
	Part	   *p = &t->parts[t->nparts];
	MemoryContext old;
	bool		added;

	if (t->nparts == MAX_PARTS || list_member_oid(t->refused, table))
		return NULL;
	old = MemoryContextSwitchTo(t->context);
	memset(p, 0, sizeof(Part));
	p->table = table;
	p->heap = table_open(table, NoLock);
	added = open_part(t, p) && (t->ahead == NULL || add_to_ahead(t, p));
	if (added)
		t->nparts++;
	else
	{
		t->refused = lappend_oid(t->refused, table);
		if (p->index_rel != NULL)
			RelationClose(p->index_rel);
		table_close(p->heap, NoLock);
	}
	MemoryContextSwitchTo(old);
	return added ? p : NULL;
}

/* ---- partitions ----------------------------------------------------------------------- */

static Part *
part_of(LaKeyTables *t, Oid table)
{
	for (int i = 0; i < t->nparts; i++)
	{
		if (t->parts[i].table == table)
			return &t->parts[i];
	}
	return !la_is_locked_by_me(table) ? NULL : add_part(t, table);
}

/* Are the columns of the partition key among those of the foreign key, and of the same types? */
static bool
match_partition_key(LaKeyTables *t)
{
	PartitionKey key = RelationGetPartitionKey(t->root_rel);
	TupleDesc	desc = RelationGetDescr(t->table);

	if (key->partexprs != NIL || !la_partition_key_is_pure(key))
		return false;
	for (int p = 0; p < key->partnatts; p++)
	{
		int			i = 0;

		while (i < t->key.n && t->key.there[i] != key->partattrs[p])
			i++;
		if (i == t->key.n ||
			getBaseType(TupleDescAttr(desc, t->key.here[i] - 1)->atttypid) !=
			getBaseType(key->parttypid[p]))
			return false;
		t->partition_key[p] = t->key.here[i];
	}
	return true;
}

/* The partition of the row's key, if it is known. */
static Part *
routed_part(LaKeyTables *t, HeapTuple row)
{
	Datum		values[PARTITION_MAX_KEYS];
	bool		isnull[PARTITION_MAX_KEYS];
	PartitionDesc desc;
	int			n;

	if (t->nrebuilt > MAX_REBUILT)
		return NULL;
	desc = RelationGetPartitionDesc(t->root_rel, true);
	if (desc != t->desc)
		t->nrebuilt++;
	t->desc = desc;
	if (desc->nparts == 0)
		return NULL;
	for (int i = 0; i < RelationGetPartitionKey(t->root_rel)->partnatts; i++)
	{
		TupleDesc	here = RelationGetDescr(t->table);

		values[i] = heap_getattr(row, t->partition_key[i], here, &isnull[i]);
		if (!isnull[i] && TupleDescAttr(here, t->partition_key[i] - 1)->attlen == -1 &&
			VARATT_IS_EXTERNAL(DatumGetPointer(values[i])))
			return NULL;
	}
	n = la_partition_number(t->root_rel, desc, values, isnull);
	return n < 0 || !desc->is_leaf[n] ? NULL : part_of(t, desc->oids[n]);
}

/* Add the partitions that the server has locked.  Returns false if there are none, or too many. */
static bool
add_locked(LaKeyTables *t)
{
	List	   *tables = find_all_inheritors(t->root, NoLock, NULL);
	ListCell   *lc;
	int			n = 0;

	foreach(lc, tables)
	{
		if (get_rel_relkind(lfirst_oid(lc)) != RELKIND_RELATION)
			continue;
		n++;
		if (t->is_routed || n <= MAX_EACH)
			(void) part_of(t, lfirst_oid(lc));
	}
	list_free(tables);
	return t->nparts > 0 && (t->is_routed || n <= MAX_EACH);
}

/* ---- all of them ------------------------------------------------------------------------ */

/*
 * Created in the current memory context, and open.  table: that is written.  The other table has
 * been locked.  NULL if nothing can be known; then nothing is open.
 */
LaKeyTables *
la_keytables_create(Relation table, const LaKeyColumns *key, bool is_check)
{
	LaKeyTables *t;
	Relation	other;
	bool		usable;

	t = palloc0(sizeof(LaKeyTables));
	t->context = CurrentMemoryContext;
	t->key = *key;
	t->is_check = is_check;
	t->table = table;
	t->root = key->other;
	other = table_open(key->other, NoLock);
	if (other->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
	{
		t->root_rel = other;
		t->is_routed = match_partition_key(t);
		usable = (t->is_routed || !is_check) && add_locked(t);
	}
	else
		usable = add_part(t, key->other) != NULL;
	if (usable)
	{
		if (t->root_rel == NULL)
			table_close(other, NoLock);
		return t;
	}
	t->root_rel = other;
	la_keytables_close(t);
	return NULL;
}

/* Open them again.  Returns false if one is not what it was; they are to be closed nevertheless. */
bool
la_keytables_open(LaKeyTables *t, Relation table)
{
	bool		same = true;

	t->table = table;
	if (t->root_rel != NULL)
	{
		Relation	root = RelationIdGetRelation(t->root);

		same = root == t->root_rel;
		t->root_rel = root;
	}
	for (int i = 0; i < t->nparts; i++)
	{
		Part	   *p = &t->parts[i];
		Relation	heap = RelationIdGetRelation(p->table);
		Relation	index = RelationIdGetRelation(p->index);

		/* a new file, as of TRUNCATE or REINDEX, leaves the entry where it is */
		same &= heap == p->heap && index == p->index_rel && heap != NULL && index != NULL &&
			la_rel_file_number(heap) == p->heap_file &&
			la_rel_file_number(index) == p->index_file;
		p->heap = heap;
		p->index_rel = index;
	}
	return same;
}

void
la_keytables_close(LaKeyTables *t)
{
	for (int i = 0; i < t->nparts; i++)
	{
		if (RelationIsValid(t->parts[i].index_rel))
			RelationClose(t->parts[i].index_rel);
		if (RelationIsValid(t->parts[i].heap))
			RelationClose(t->parts[i].heap);
	}
	if (t->root_rel != NULL)
		RelationClose(t->root_rel);
}

/* One of them, and its index. */
Relation
la_keytables_heap(const LaKeyTables *t)
{
	return t->parts[0].heap;
}

Oid
la_keytables_index(const LaKeyTables *t)
{
	return t->parts[0].index;
}

bool
la_keytables_set_ahead(LaKeyTables *t, LaAhead *ahead)
{
	bool		result = true;

	t->ahead = ahead;
	for (int i = 0; i < t->nparts; i++)
		result &= add_to_ahead(t, &t->parts[i]);
	return result;
}

/* ---- LaRowSource -------------------------------------------------------------------------- */

void
la_keytables_plan(LaKeyTables *t, HeapTuple row, LaAheadRow *visits)
{
	if (t->is_routed)
	{
		const Part *p = routed_part(t, row);

		if (p != NULL)
			(void) la_ahead_add_visit(visits, p->index_number);
		return;
	}
	for (int i = 0; i < t->nparts; i++)
		(void) la_ahead_add_visit(visits, t->parts[i].index_number);
}

bool
la_keytables_set_key(LaKeyTables *t, HeapTuple row, int rel)
{
	TupleDesc	desc = RelationGetDescr(t->table);
	const Part *p = t->parts;

	while (p->index_number != rel)
		p++;
	t->searched = p;
	for (int i = 0; i < p->ncolumns; i++)
	{
		bool		isnull;
		Datum		value = heap_getattr(row, p->columns[i], desc, &isnull);

		if (isnull || !la_descent_set_stored(p->descent, i, value,
											 TupleDescAttr(desc, p->columns[i] - 1)->attlen == -1))
			return false;
	}
	return true;
}

/* The matches are of the last key that was set. */
void
la_keytables_locate(LaKeyTables *t, LaAheadRow *row, const LaMatches *matches)
{
	LaMatchVisits which = {.most = MAX_HEAP_VISITS - (row->nvisits - row->nfirst)};

	la_ahead_add_matches(t->ahead, row, t->searched->heap_number, matches, &which);
}
