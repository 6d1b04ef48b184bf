/*
 * indexbuild_int.h
 *	  What the files of this room share.
 *
 * src/indexbuild/indexbuild_int.h
 */
#ifndef LA_INDEXBUILD_INT_H
#define LA_INDEXBUILD_INT_H

#include "access/genam.h"
#include "access/itup.h"
#include "access/nbtree.h"
#include "nodes/execnodes.h"
#include "port/pg_bswap.h"
#include "storage/block.h"
#include "storage/buffile.h"
#include "storage/bufpage.h"
#include "storage/sharedfileset.h"
#include "utils/rel.h"

#include "base/compat.h"
#include "base/compat_btree.h"

/* ---- build: building a stock btree index ---- */

extern IndexBuildResult *la_btbuild(Relation heap, Relation index, IndexInfo *info);

/* ---- dictionary: an order-preserving dictionary of a column's values ---- */

typedef struct LaDictionary LaDictionary;

/* A value's code: a number in fixed point. */
typedef struct LaDictionaryCode
{
	uint32		whole;
	uint64		fraction;
} LaDictionaryCode;

extern LaDictionary *la_dictionary_create(Relation index, int column, Size memory,
										  double rows);
extern bool la_dictionary_find(LaDictionary *d, Datum value, LaDictionaryCode *code);
extern bool la_dictionary_is_worthwhile(const LaDictionary *d);

/* ---- encode: one column of a normalized key ---- */

/*
 * See encode.c.  The encodings that are short and frequent are here, to be inlined into
 * normalizedkey.c's loop over the columns.
 */

typedef enum LaEncoding
{
	/* of a fixed length, passed by value where its type is */
	LA_ENCODE_BOOL,
	LA_ENCODE_CHAR,
	LA_ENCODE_INT16,
	LA_ENCODE_INT32,
	LA_ENCODE_INT64,
	LA_ENCODE_UINT32,
	LA_ENCODE_UINT64,
	LA_ENCODE_DICTIONARY,		/* any type, by the codes of a dictionary */
	LA_ENCODE_ENUM,
	LA_ENCODE_FLOAT4,
	LA_ENCODE_FLOAT8,
	/* of a fixed length, passed by reference */
	LA_ENCODE_UUID,
	LA_ENCODE_MACADDR,
	LA_ENCODE_MACADDR8,
	LA_ENCODE_TID,
	LA_ENCODE_TIMETZ,
	LA_ENCODE_INTERVAL,
	/* of any length */
	LA_ENCODE_NAME,
	LA_ENCODE_BYTES,
	LA_ENCODE_BLANK_PADDED,
	LA_ENCODE_BITS,
	LA_ENCODE_NUMERIC,
	LA_ENCODE_INET,
	LA_ENCODE_OIDVECTOR
} LaEncoding;

/* The longest code of fixed length, and the byte that distinguishes it from null. */
#define LA_ENCODE_NULL_SIZE (16 + 1)

typedef struct LaEncoder
{
	LaEncoding	encoding;
	bool		null_high;		/* null is the greatest, not the smallest */
	uint64		flip;			/* all ones if descending, else 0 */
	uint64		extreme;		/* the code that begins like null's: all ones,
								 * or 0 */
	int			null_length;
	uint8		null_code[LA_ENCODE_NULL_SIZE]; /* already inverted by flip */
} LaEncoder;

/* A buffer for codes.  Those that do not fit are counted in `length`, but not written. */
typedef struct LaEncodeBuffer
{
	uint8	   *to;
	int64		space;
	int64		length;
	bool		no_code;		/* a value has none */
} LaEncodeBuffer;

extern void la_encode_init(LaEncoder *e, LaEncoding encoding, int option);
extern void la_encode_fixed(const LaEncoder *e, const uint8 *code, int n, LaEncodeBuffer *o);
extern void la_encode_by_bytes(const LaEncoder *e, const uint8 *bytes, int n,
							   LaEncodeBuffer *o);
extern void la_encode_other(const LaEncoder *e, Datum value, LaEncodeBuffer *o);

static inline void
la_encode_null(const LaEncoder *e, LaEncodeBuffer *o)
{
	if (o->length + e->null_length <= o->space)
		memcpy(o->to + o->length, e->null_code, e->null_length);
	o->length += e->null_length;
}

/* An unsigned integer of n bytes. */
static inline void
la_encode_uint(const LaEncoder *e, uint64 v, int n, LaEncodeBuffer *o)
{
	int			unused = 64 - 8 * n;
	uint64		code = pg_hton64((v ^ e->flip) << unused);

	if (likely(v != e->extreme >> unused && o->length + n <= o->space))
	{
		memcpy(o->to + o->length, &code, n);
		o->length += n;
		return;
	}
	code = pg_hton64(v << unused);
	la_encode_fixed(e, (const uint8 *) &code, n, o);
}

/* 16 bytes as they are. */
static inline void
la_encode_uuid(const LaEncoder *e, const uint8 *bytes, LaEncodeBuffer *o)
{
	uint64		w[2];

	memcpy(w, bytes, 16);
	if (likely(w[0] != e->extreme && o->length + 16 <= o->space))
	{
		w[0] ^= e->flip;
		w[1] ^= e->flip;
		memcpy(o->to + o->length, w, 16);
		o->length += 16;
		return;
	}
	la_encode_fixed(e, bytes, 16, o);
}

/* Is one of these eight bytes 0 or 1, which have to be escaped? */
static inline bool
la_encode_escapes(uint64 w)
{
	const uint64 ones = UINT64CONST(0x0101010101010101);

	return ((w - 2 * ones) & ~w & (0x80 * ones)) != 0;
}

/*
 * A string of bytes, copied by words unless one has to be escaped.  The store of the last word
 * may go seven bytes beyond the end, for which there must be space.
 */
static inline void
la_encode_bytes(const LaEncoder *e, const uint8 *bytes, int n, LaEncodeBuffer *o)
{
#ifndef WORDS_BIGENDIAN
	uint8	   *to = o->to + o->length;
	const uint8 *from = bytes;
	int			rest = n;
	uint64		w,
				flipped;

	if (unlikely(n == 0 || bytes[0] == 0xFF || o->length + n + 8 > o->space))
		goto by_bytes;
	while (rest >= 8)
	{
		memcpy(&w, from, 8);
		if (unlikely(la_encode_escapes(w)))
			goto by_bytes;
		w ^= e->flip;
		memcpy(to, &w, 8);
		from += 8;
		to += 8;
		rest -= 8;
	}

	/* the last bytes in the low part of a word, and zeros, the terminator */
	if (n >= 8)
	{
		/* the eight bytes before (from + rest) are in the value */
		memcpy(&w, from + rest - 8, 8);
		w = rest > 0 ? w >> (8 * (8 - rest)) : 0;
	}
	else if (rest >= 4)
	{
		uint32		low,
					high;

		memcpy(&low, from, 4);
		memcpy(&high, from + rest - 4, 4);
		w = (uint64) low | (uint64) high << (8 * (rest - 4));
	}
	else
	{
		/* one, two or three: the first, the middle one and the last */
		w = (uint64) from[0] |
			(uint64) from[rest >> 1] << (8 * (rest >> 1)) |
			(uint64) from[rest - 1] << (8 * (rest - 1));
	}
	/* the zeros do not count */
	if (unlikely(la_encode_escapes(w | ~UINT64CONST(0) << (8 * rest))))
		goto by_bytes;
	flipped = w ^ e->flip;
	memcpy(to, &flipped, 8);
	o->length += n + 1;
	return;

by_bytes:
#endif
	la_encode_by_bytes(e, bytes, n, o);
}

/* ---- load: loading a btree from index tuples in order ---- */

typedef struct LaLoad LaLoad;

extern LaLoad *la_load_begin(Relation heap, Relation index, bool unique);
extern void la_load_add(LaLoad *load, IndexTuple tuple, bool equal);
extern void la_load_end(LaLoad *load);

/* False for a tuple that is too large for a page: la_load_add() raises the server's error. */
static inline bool
la_load_fits(const IndexTupleData *tuple)
{
	return MAXALIGN(IndexTupleSize(tuple)) <= la_bt_max_item_size();
}

/* ---- run: runs: sorted rows in temporary files ---- */

typedef struct LaRunWriter LaRunWriter;
typedef struct LaRunReader LaRunReader;

/* A row of a run. */
typedef struct LaRunTuple
{
	IndexTuple	tuple;
	uint8	   *key;
	uint32		key_length;
	uint32		common;			/* bytes shared with the key of the row before */
	uint32		flags;			/* of LaSortTuple */
} LaRunTuple;

extern LaRunWriter *la_run_create(BufFile *file, Size buffer);
extern void la_run_write(LaRunWriter *w, const LaRunTuple *row);
extern void la_run_finish(LaRunWriter *w);

extern LaRunReader *la_run_open(BufFile *file, Size buffer);
extern bool la_run_read(LaRunReader *r, LaRunTuple *row);

/* ---- sorttuple: one row of an index that is being built, as it is sorted ---- */

/*
 * It is stored in one piece:
 *
 * 	LaSortTuple | normalized key | TID | zeros up to a multiple of 8 | index tuple
 *
 * The TID is six bytes, the most significant first.  No normalized key is a proper prefix
 * of another one (normalizedkey.c), so memcmp over key and TID orders rows as the index
 * does, by columns and then by heap TID; and no two rows of an index are equal.  The zeros
 * let the sort read whole words.
 */

#define LA_TID_LENGTH	6

/* So many sort tuples before its use, one is fetched into the CPU's cache. */
#define LA_SORTTUPLES_AHEAD	12

/* flags */
#define LA_SORTTUPLE_DEAD	0x01	/* must be indexed, but is not live */
#define LA_SORTTUPLE_NULL	0x02	/* a key column is null */

typedef struct LaSortTuple
{
	uint32		key_length;		/* with the TID */
	uint32		flags;
} LaSortTuple;

#define la_sorttuple_key(t)		((uint8 *) (t) + sizeof(LaSortTuple))
#define la_sorttuple_index_tuple(t) \
	((IndexTuple) (la_sorttuple_key(t) + TYPEALIGN(8, (t)->key_length)))

/* Eight bytes of the key, as a number. */
static inline uint64
la_sorttuple_word(const LaSortTuple *t, uint32 depth)
{
	uint64		word;

	if (depth >= t->key_length)
		return 0;
	memcpy(&word, la_sorttuple_key(t) + depth, sizeof(word));
	return pg_ntoh64(word);
}

/* How many bytes do two keys share, of which the first "from" are known to be shared? */
static inline uint32
la_sorttuple_common_prefix(const uint8 *a, uint32 a_length, const uint8 *b,
						   uint32 b_length, uint32 from)
{
	uint32		end = Min(a_length, b_length);

	while (from + sizeof(uint64) <= end)
	{
		uint64		x;
		uint64		y;

		memcpy(&x, a + from, sizeof(x));
		memcpy(&y, b + from, sizeof(y));
		if (x != y)
			break;
		from += sizeof(uint64);
	}
	while (from < end && a[from] == b[from])
		from++;
	return from;
}

/* ---- sortmemory: the rows of a sort that are in memory ---- */

typedef struct LaSortMemory LaSortMemory;

extern LaSortMemory *la_sortmemory_create(Size limit);
extern bool la_sortmemory_is_empty(const LaSortMemory *m);
extern LaSortTuple *la_sortmemory_reserve(LaSortMemory *m, Size size, Size *space);
extern void la_sortmemory_add(LaSortMemory *m, LaSortTuple *tuple, Size size);
extern void la_sortmemory_sort(LaSortMemory *m);
extern void la_sortmemory_rewind(LaSortMemory *m);
extern LaSortTuple *la_sortmemory_next(LaSortMemory *m);
extern void la_sortmemory_clear(LaSortMemory *m);

/* ---- merge: merging sorted rows of files and of memory ---- */

typedef struct LaMerge LaMerge;

extern LaMerge *la_merge_create(int max_sources, Size buffer);
extern void la_merge_add_file(LaMerge *merge, BufFile *file);
extern void la_merge_add_memory(LaMerge *merge, LaSortMemory *memory);
extern const LaRunTuple *la_merge_next(LaMerge *merge);
extern void la_merge_free(LaMerge *merge);

/* ---- normalizedkey ---- */

typedef struct LaNormalizedKey LaNormalizedKey;

/* What the dictionaries of an index (dictionary.c) may take. */
typedef struct LaDictionaryLimits
{
	Size		memory;			/* of each column, bytes */
	double		rows;			/* of the index, about */
} LaDictionaryLimits;

/* Instead of a length: a value has no code. */
#define LA_NORMKEY_NONE (-1)

extern LaNormalizedKey *la_normkey_create(Relation index,
										  const LaDictionaryLimits *limits,
										  const char **why);
extern bool la_normkey_has_dictionary(const LaNormalizedKey *key);
extern bool la_normkey_may_fail(const LaNormalizedKey *key);
extern bool la_normkey_is_worthwhile(const LaNormalizedKey *key);
extern Size la_normkey_size(const LaNormalizedKey *key);
extern int	la_normkey_encode(LaNormalizedKey *key, const Datum *values,
							  const bool *isnull, uint8 *to, int space,
							  bool *has_null);

/* ---- pagewriter: writing the pages of a new index, bypassing shared buffers ---- */

typedef struct LaPageWriter LaPageWriter;

extern LaPageWriter *la_pagewriter_begin(Relation index);
extern Page la_pagewriter_get_page(LaPageWriter *w);
extern void la_pagewriter_write(LaPageWriter *w, BlockNumber block, Page page);
extern void la_pagewriter_end(LaPageWriter *w);

/* ---- quicksort: multikey quicksort of rows by the bytes of their keys ---- */

typedef struct LaSortEntry
{
	uint64		word;			/* eight bytes of the key, as a number */
	LaSortTuple *tuple;
} LaSortEntry;

extern void la_quicksort(LaSortEntry *a, Size n, uint32 depth);

/* ---- repeat: may the expressions of an index be evaluated twice for a row? ---- */

extern bool la_repeat_is_safe(const IndexInfo *info);

/* ---- runset: the runs of a sort, which are merged when there are many ---- */

typedef struct LaRunSet LaRunSet;

/* The size from which on rows are too long for a merge of many runs in so much memory. */
#define la_runset_long_row(memory)	Max((Size) 16 * 1024, (memory) / 32)

extern LaRunSet *la_runset_create(Size memory, SharedFileSet *files, int participant);
extern void la_runset_add(LaRunSet *set, LaSortMemory *memory, Size longest);
extern void la_runset_reduce(LaRunSet *set, Size longest);
extern LaMerge *la_runset_merge(LaRunSet *set, LaSortMemory *memory);
extern void la_runset_export(LaRunSet *set);
extern void la_runset_import(LaRunSet *set, int participant);
extern void la_runset_drop(LaRunSet *set);

/* ---- sample: a sample of a table, before dictionaries are made for its index ---- */

extern bool la_sample_is_worthwhile(Relation heap, IndexInfo *info, LaNormalizedKey *key);

/* ---- sort: sorting the rows of an index that is being built ---- */

typedef struct LaSort LaSort;

/* The outcome of putting rows.  Of several processes, the greatest one counts. */
typedef enum LaSortOutcome
{
	LA_SORT_COMPLETE,
	LA_SORT_NO_KEY,				/* a row has no normalized key */
	LA_SORT_LONG_KEYS			/* keys are too long */
} LaSortOutcome;

/* A row that is returned in order. */
typedef struct LaSortedRow
{
	IndexTuple	tuple;			/* valid until the next row */
	bool		equal;			/* to the row before, in all key columns */
	bool		dead;
	bool		has_null;		/* in a key column */
} LaSortedRow;

extern LaSort *la_sort_begin(Relation index, LaNormalizedKey *key, Size memory,
							 bool may_restart, SharedFileSet *files,
							 int participant);
extern void la_sort_put(LaSort *sort, ItemPointer tid, Datum *values, bool *isnull,
						bool alive);
extern LaSortOutcome la_sort_outcome(const LaSort *sort);
extern void la_sort_export(LaSort *sort);
extern void la_sort_import(LaSort *sort, int participant);
extern void la_sort_perform(LaSort *sort);
extern void la_sort_rewind(LaSort *sort);
extern bool la_sort_next(LaSort *sort, LaSortedRow *row);
extern bool la_sort_has_spilled(const LaSort *sort);
extern void la_sort_end(LaSort *sort);

/* ---- tablescan: the table's scan of an index build, with parallel workers or without ---- */

typedef struct LaTableScan LaTableScan;

/* What came of the scan, or of one process's share of it. */
typedef struct LaTableScanResult
{
	double		heap_tuples;
	double		index_tuples;
	bool		broken_hot_chain;
	LaSortOutcome outcome;
} LaTableScanResult;

extern LaTableScan *la_tablescan_begin(Relation heap, Relation index,
									   IndexInfo *info, LaNormalizedKey *key,
									   bool may_restart);
extern bool la_tablescan_has_workers(const LaTableScan *scan);
extern LaSort *la_tablescan_sort(LaTableScan *scan, LaTableScanResult *result);
extern void la_tablescan_end(LaTableScan *scan);

#endif							/* LA_INDEXBUILD_INT_H */
