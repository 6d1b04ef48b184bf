/*
 * applytable.c
 *	  A table that changes are applied to: its indexes, and what is read early of a change.
 *
 * The columns of a change have the publisher's order, and are text, or binary.  The server makes
 * values of them in the change's turn, by the input functions of the table's own types.  Here
 * this is done for those columns alone that a search needs:
 *
 *		the index that finds the row	updates and deletes: the replica identity of this table, its
 *										primary key, or with all columns sent the index that the
 *										server takes (16 and later)
 *		all indexes						inserts and updates: where entries of the new row will be
 *		the partition key				of a partitioned table
 *
 * A value is read only by an input function of a type that is listed here.  Those compute, or
 * look up an enum's label; they have no effects, and what they read of settings changes a hint
 * only.  One that fails is the server's to raise (base/attempt.c).  Other types' columns are
 * unknown, and so is an index that depends on them.
 *
 * Heap-only updates need no index page beyond that which finds the row.  Whether an update is
 * one, the row in the table tells, once its block is there: each row that has had its turn is
 * looked at, and where the last ones were heap-only, index pages are left out.
 *
 * Relations are locked and open only while something is looked at ahead, between two messages of
 * the stream: nothing is held when the server applies a change, which might lock or truncate the
 * table (applylock.c).  No lock is waited for.  A relation that has been built anew in the relation
 * cache meanwhile is not opened: all that is known refers to the old one.
 *
 * src/replay/applytable.c
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/nbtree.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_subscription_rel.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "lib/stringinfo.h"
#include "partitioning/partdesc.h"
#include "replication/worker_internal.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/partcache.h"
#include "utils/rel.h"

#include "attach/attach.h"
#include "base/base.h"
#include "base/compat.h"
#include "replay/replay_int.h"
#include "rows/rows.h"
#include "window/window.h"

#define HEAP_ONLY_UPDATES	8	/* in a row */

/* How a column of the publisher's is read. */
typedef struct Column
{
	AttrNumber	attno;			/* 0: it is not needed */
	int32		typmod;
	Oid			input_param;
	FmgrInfo	input;
	FmgrInfo	receive;
} Column;

typedef struct LaApplyColumns
{
	int			n;
	int			last;			/* the last one that is needed, plus 1 */
	Bitmapset  *needed;			/* by number minus
								 * FirstLowInvalidHeapAttributeNumber */
	MemoryContext values;		/* of one row */
	Column		c[FLEXIBLE_ARRAY_MEMBER];
} LaApplyColumns;

/* ---- locks, and the relation cache --------------------------------------------------- */

/* Lock and open a relation, if that needs no wait; or NULL.  The lock is the turn's. */
Relation
la_applytable_open_relation(Oid relid)
{
	Relation	rel;

	if (!OidIsValid(relid) || !la_applylock_take(relid))
		return NULL;
	rel = RelationIdGetRelation(relid);
	return RelationIsValid(rel) ? rel : NULL;
}

/* The same as la_applytable_open_relation(), if it is still this one. */
static bool
open_again(Relation rel, Oid relid)
{
	Relation	now = la_applytable_open_relation(relid);

	if (now == rel)
		return true;
	if (now != NULL)
		RelationClose(now);
	return false;
}

/* Open the table and its indexes.  Returns false if that is not possible at once. */
bool
la_applytable_open(LaApplyTable *t)
{
	int			n = 0;

	if (t->is_open)
		return true;
	if (!open_again(t->heap, t->relid))
		return false;
	while (n < t->nindexes && open_again(t->indexes[n], t->index_oids[n]))
		n++;
	t->is_open = n == t->nindexes;
	if (!t->is_open)
	{
		while (n > 0)
			RelationClose(t->indexes[--n]);
		RelationClose(t->heap);
	}
	return t->is_open;
}

void
la_applytable_close(LaApplyTable *t)
{
	if (!t->is_open)
		return;
	for (int n = 0; n < t->nindexes; n++)
		RelationClose(t->indexes[n]);
	RelationClose(t->heap);
	t->is_open = false;
}

/* The table that has the name of the publisher's; or InvalidOid. */
Oid
la_applytable_oid(const LaApplyRemote *remote)
{
	Oid			schema = get_namespace_oid(remote->schema, true);

	return OidIsValid(schema) ? get_relname_relid(remote->name, schema) : InvalidOid;
}

/* ---- columns ----------------------------------------------------------------------- */

static bool
is_known_type(Oid type)
{
	switch (type)
	{
		case BOOLOID:
		case BPCHAROID:
		case BITOID:
		case BYTEAOID:
		case CHAROID:
		case CIDROID:
		case DATEOID:
		case FLOAT4OID:
		case FLOAT8OID:
		case INETOID:
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case INTERVALOID:
		case MACADDROID:
		case MACADDR8OID:
		case NAMEOID:
		case NUMERICOID:
		case OIDOID:
		case PG_LSNOID:
		case TEXTOID:
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
		case TIMETZOID:
		case UUIDOID:
		case VARBITOID:
		case VARCHAROID:
		case XID8OID:
			return true;
		default:
			return get_typtype(type) == TYPTYPE_ENUM;
	}
}

/* The type by which a column's values are read, or InvalidOid; *typmod is that of the column. */
static Oid
type_of(Form_pg_attribute att, int32 *typmod)
{
	Oid			type;

	*typmod = att->atttypmod;
	/* constraints of a domain are the server's to check */
	type = getBaseTypeAndTypmod(att->atttypid, typmod);
	return is_known_type(type) ? type : InvalidOid;
}

/* The columns that the publisher does not send, or that are not read here. */
static Bitmapset *
unknown_columns(Relation heap, const LaApplyRemote *remote)
{
	TupleDesc	desc = RelationGetDescr(heap);
	Bitmapset  *unknown = NULL;
	int32		typmod;

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped)
			continue;
		if (att->attgenerated != '\0' || !OidIsValid(type_of(att, &typmod)) ||
			la_applyremote_column(remote, NameStr(att->attname)) < 0)
			unknown = bms_add_member(unknown, att->attnum - FirstLowInvalidHeapAttributeNumber);
	}
	return unknown;
}

static void
add_column(LaApplyTable *t, const LaApplyRemote *remote, AttrNumber attno)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(t->heap), attno - 1);
	int			n = la_applyremote_column(remote, NameStr(att->attname));
	Column	   *c = &t->columns->c[n];
	Oid			type = type_of(att, &c->typmod);
	Oid			function;

	Assert(n >= 0 && OidIsValid(type));
	getTypeInputInfo(type, &function, &c->input_param);
	fmgr_info(function, &c->input);
	getTypeBinaryInputInfo(type, &function, &c->input_param);
	fmgr_info(function, &c->receive);
	c->attno = attno;
	t->columns->last = Max(t->columns->last, n + 1);
}

/* Prepare to read these columns. */
static void
prepare_columns(LaApplyTable *t, const LaApplyRemote *remote, Bitmapset *needed)
{
	int			n = -1;

	needed = bms_del_members(needed, t->unknown);
	t->columns = palloc0(offsetof(LaApplyColumns, c) + remote->ncolumns * sizeof(Column));
	t->columns->n = remote->ncolumns;
	t->columns->values = AllocSetContextCreate(CurrentMemoryContext,
											   "pg_lookahead values of a change",
											   ALLOCSET_SMALL_SIZES);
	while ((n = bms_next_member(needed, n)) >= 0)
	{
		AttrNumber	attno = n + FirstLowInvalidHeapAttributeNumber;

		if (attno > 0 && !TupleDescAttr(RelationGetDescr(t->heap), attno - 1)->attisdropped)
			add_column(t, remote, attno);
	}
	t->slot = MakeSingleTupleTableSlot(CreateTupleDescCopy(RelationGetDescr(t->heap)),
									   &TTSOpsVirtual);
	t->row_slot = MakeSingleTupleTableSlot(t->slot->tts_tupleDescriptor, &TTSOpsMinimalTuple);
}

static Datum
read_value(Column *c, const LaApplyColumn *column)
{
	StringInfoData buffer;
	Datum		value;

	/* what is behind the value is not ours to end */
	buffer.data = palloc(column->length + 1);
	memcpy(buffer.data, column->data, column->length);
	buffer.data[column->length] = '\0';
	buffer.len = (int) column->length;
	buffer.maxlen = buffer.len + 1;
	buffer.cursor = 0;
	if (column->kind == 't')
		return InputFunctionCall(&c->input, buffer.data, c->input_param, c->typmod);
	value = ReceiveFunctionCall(&c->receive, &buffer, c->input_param, c->typmod);
	if (buffer.cursor != buffer.len)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg_internal("a value is too long")));
	return value;
}

typedef struct Reading
{
	LaApplyTable *table;
	LaApplyTuple row;
	bool		has_unchanged;
} Reading;

/* For la_attempt_compute(). */
static void
read_columns(void *arg)
{
	Reading    *r = arg;
	LaApplyColumns *columns = r->table->columns;
	TupleTableSlot *slot = r->table->slot;
	LaApplyColumn column;

	for (int i = 0; i < columns->last && la_applymessage_next_column(&r->row, &column); i++)
	{
		Column	   *c = &columns->c[i];

		if (c->attno == 0)
			continue;
		if (column.kind == 'u')
			r->has_unchanged = true;
		else if (column.kind != 'n')
		{
			slot->tts_values[c->attno - 1] = read_value(c, &column);
			slot->tts_isnull[c->attno - 1] = false;
		}
	}
}

/*
 * Read the needed columns of a row into t->slot, where they are until the next one is read.
 * *has_unchanged: of a needed column, the publisher has only said that it is unchanged.
 */
bool
la_applytable_read(LaApplyTable *t, LaApplyTuple row, bool *has_unchanged)
{
	Reading		r = {t, row, false};
	MemoryContext old;
	bool		known;

	ExecClearTuple(t->slot);
	MemoryContextReset(t->columns->values);
	if (row.ncolumns < t->columns->last)
		return false;
	memset(t->slot->tts_isnull, true, t->slot->tts_tupleDescriptor->natts * sizeof(bool));
	memset(t->slot->tts_values, 0, t->slot->tts_tupleDescriptor->natts * sizeof(Datum));
	old = MemoryContextSwitchTo(t->columns->values);
	known = la_attempt_compute(read_columns, &r);
	MemoryContextSwitchTo(old);
	if (known)
		ExecStoreVirtualTuple(t->slot);
	*has_unchanged = r.has_unchanged;
	return known;
}

/* ---- the index that finds a row --------------------------------------------------------- */

/* Does the server search this index, where the publisher has sent all columns? */
static bool
finds_by_all_columns(const LaApplyTable *t, Relation index)
{
	AttrNumber	first = index->rd_index->indkey.values[0];

	return LA_APPLY_SEARCHES_ANY_INDEX && index->rd_index->indisvalid &&
		heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL) && first > 0;
}

/* The open index that finds a row; NULL if there is none. */
static Relation
identity_index(const LaApplyTable *t, const LaApplyRemote *remote)
{
	Oid			oid = OidIsValid(t->heap->rd_replidindex) ? t->heap->rd_replidindex :
		t->heap->rd_pkindex;

	for (int i = 0; i < t->nindexes; i++)
	{
		if (OidIsValid(oid) ? t->index_oids[i] == oid :
			remote->identity == REPLICA_IDENTITY_FULL &&
			finds_by_all_columns(t, t->indexes[i]))
			return t->indexes[i];
	}
	return NULL;
}

/* Prepare to search this index by the columns of its key. */
static bool
add_identity(LaApplyTable *t, LaAhead *ahead, Relation index)
{
	LaEffects	effects = {0};

	if (index->rd_rel->relam != BTREE_AM_OID || !la_budget_has(la_ahead_budget(ahead),
															   la_descent_size()))
		return false;
	la_effects_of_index(&effects, index);
	if (effects.flags != 0)
		return false;
	t->identity = la_descent_create(index, t->heap);
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		AttrNumber	attno = index->rd_index->indkey.values[i];

		if (attno <= 0 ||
			bms_is_member(attno - FirstLowInvalidHeapAttributeNumber, t->unknown) ||
			!la_descent_add_column(t->identity, InvalidOid, index->rd_indcollation[i]))
			break;
		t->keys[t->nkeys++] = attno;
	}
	if (t->nkeys < IndexRelationGetNumberOfKeyAttributes(index))
		return false;
	t->identity_rel = la_ahead_add_relation(ahead, index, t->identity);
	t->heap_rel = la_ahead_add_relation(ahead, t->heap, NULL);
	la_budget_take(la_ahead_budget(ahead), la_descent_size());
	return t->identity_rel >= 0 && t->heap_rel >= 0;
}

/* Set the key of the row that is looked for.  False if it has none that can be searched for. */
bool
la_applytable_set_identity(LaApplyTable *t, TupleTableSlot *row)
{
	for (int i = 0; i < t->nkeys; i++)
	{
		bool		isnull;
		Datum		value = slot_getattr(row, t->keys[i], &isnull);

		if (isnull ||
			!la_descent_set_stored(t->identity, i, value,
								   TupleDescAttr(row->tts_tupleDescriptor,
												 t->keys[i] - 1)->attlen == -1))
			return false;
	}
	la_descent_search_behind(t->identity, false);
	return true;
}

/* ---- partitions ----------------------------------------------------------------------- */

static bool
can_route(const LaApplyTable *t)
{
	PartitionKey key = RelationGetPartitionKey(t->heap);

	if (key->partexprs != NIL || !la_partition_key_is_pure(key))
		return false;
	for (int i = 0; i < key->partnatts; i++)
	{
		if (bms_is_member(key->partattrs[i] - FirstLowInvalidHeapAttributeNumber, t->unknown))
			return false;
	}
	return true;
}

/* The partition of the row in t->slot, which may be partitioned itself; or InvalidOid. */
Oid
la_applytable_partition(LaApplyTable *t)
{
	PartitionKey key = RelationGetPartitionKey(t->heap);
	PartitionDesc desc = RelationGetPartitionDesc(t->heap, true);
	Datum		values[PARTITION_MAX_KEYS];
	bool		isnull[PARTITION_MAX_KEYS];
	MemoryContext old;
	int			n;

	if (desc->nparts == 0)
		return InvalidOid;
	for (int i = 0; i < key->partnatts; i++)
		values[i] = slot_getattr(t->slot, key->partattrs[i], &isnull[i]);
	old = MemoryContextSwitchTo(t->columns->values);
	n = la_partition_number(t->heap, desc, values, isnull);
	MemoryContextSwitchTo(old);
	return n < 0 ? InvalidOid : desc->oids[n];
}

/* ---- heap-only updates ------------------------------------------------------------------ */

static bool
has_column_changed(HeapTuple old, TupleTableSlot *row, AttrNumber attno)
{
	Form_pg_attribute att = TupleDescAttr(row->tts_tupleDescriptor, attno - 1);
	bool		old_null;
	bool		new_null;
	Datum		old_value = heap_getattr(old, attno, row->tts_tupleDescriptor, &old_null);
	Datum		new_value = slot_getattr(row, attno, &new_null);

	if (old_null || new_null)
		return old_null != new_null;
	return !datumIsEqual(old_value, new_value, att->attbyval, att->attlen);
}

/* Will this update of a row need index pages?  page: that of the row, locked. */
static bool
needs_indexes(LaApplyTable *t, Page page, HeapTuple old, MinimalTuple row)
{
	Bitmapset  *columns = bms_del_members(la_target_columns(t->target), t->unknown);
	bool		result = PageGetHeapFreeSpace(page) < MAXALIGN(old->t_len);
	int			n = -1;

	ExecStoreMinimalTuple(row, t->row_slot, false);
	while (!result && (n = bms_next_member(columns, n)) >= 0)
	{
		AttrNumber	attno = n + FirstLowInvalidHeapAttributeNumber;

		result = attno > 0 && has_column_changed(old, t->row_slot, attno);
	}
	bms_free(columns);
	return result;
}

/* The row at tid, whose block is in shared buffers, is updated to this one. */
void
la_applytable_learn(LaApplyTable *t, ItemPointer tid, MinimalTuple row)
{
	OffsetNumber offset = ItemPointerGetOffsetNumber(tid);
	BlockNumber size = InvalidBlockNumber;
	HeapTupleData old = {0};
	Buffer		buffer;
	Page		page;

	if (!la_issue_exists(t->heap, ItemPointerGetBlockNumber(tid), &size))
		return;
	buffer = ReadBuffer(t->heap, ItemPointerGetBlockNumber(tid));
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);
	if (offset <= PageGetMaxOffsetNumber(page) &&
		ItemIdIsRedirected(PageGetItemId(page, offset)))
		offset = ItemIdGetRedirect(PageGetItemId(page, offset));
	if (la_heappage_row(page, offset, &old) &&
		la_fits_row(&old, RelationGetDescr(t->heap)))
	{
		t->heap_only = needs_indexes(t, page, &old, row) ? 0 :
			Min(t->heap_only + 1, HEAP_ONLY_UPDATES);
	}
	UnlockReleaseBuffer(buffer);
}

/* Were the last updates heap-only? */
bool
la_applytable_is_heap_only(const LaApplyTable *t)
{
	return t->heap_only == HEAP_ONLY_UPDATES;
}

/* ---- creation ------------------------------------------------------------------------- */

static bool
open_indexes(LaApplyTable *t)
{
	List	   *list = RelationGetIndexList(t->heap);
	ListCell   *lc;

	foreach(lc, list)
	{
		Relation	index;

		if (t->nindexes == LA_TARGET_INDEXES)
			break;
		index = la_applytable_open_relation(lfirst_oid(lc));
		if (index == NULL)
			return false;
		t->index_oids[t->nindexes] = lfirst_oid(lc);
		t->indexes[t->nindexes++] = index;
	}
	list_free(list);
	return true;
}

static Bitmapset *
needed_columns(const LaApplyTable *t)
{
	Bitmapset  *needed = NULL;

	if (t->is_partitioned)
	{
		PartitionKey key = RelationGetPartitionKey(t->heap);

		for (int i = 0; i < key->partnatts; i++)
			needed = bms_add_member(needed, key->partattrs[i] -
									FirstLowInvalidHeapAttributeNumber);
		return needed;
	}
	if (t->target != NULL)
		needed = la_target_columns(t->target);
	for (int i = 0; i < t->nkeys; i++)
		needed = bms_add_member(needed, t->keys[i] - FirstLowInvalidHeapAttributeNumber);
	return needed;
}

static LaApplyReason
prepare(LaApplyTable *t, LaAhead *ahead, const LaApplyRemote *remote)
{
	Relation	index;

	if (t->is_partitioned)
		return can_route(t) ? LA_APPLY_KNOWN : LA_APPLY_NO_PARTITION;
	if (!la_target_is_possible(t->heap))
		return la_target_is_heap(t->heap) ? LA_APPLY_NO_INDEX : LA_APPLY_NOT_HEAP;
	if (!open_indexes(t))
		return LA_APPLY_TABLE_LOCKED;
	t->target = la_target_create(ahead, t->heap, t->nindexes, t->indexes, NULL, false);
	index = identity_index(t, remote);
	if (index != NULL && !add_identity(t, ahead, index))
		t->identity = NULL;
	return t->target == NULL && t->identity == NULL ? LA_APPLY_NO_INDEX : LA_APPLY_KNOWN;
}

/*
 * Created in the current memory context.  heap: opened by la_applytable_open_relation(); it stays
 * open until la_applytable_close().
 */
LaApplyTable *
la_applytable_create(LaAhead *ahead, const LaApplyRemote *remote, Relation heap)
{
	LaApplyTable *t = palloc0(sizeof(LaApplyTable));

	t->relid = RelationGetRelid(heap);
	t->heap = heap;
	t->is_open = true;
	t->is_partitioned = heap->rd_rel->relkind == RELKIND_PARTITIONED_TABLE;
	t->unknown = unknown_columns(heap, remote);
	t->refused = prepare(t, ahead, remote);
	if (t->refused == LA_APPLY_KNOWN)
		prepare_columns(t, remote, needed_columns(t));
	return t;
}
