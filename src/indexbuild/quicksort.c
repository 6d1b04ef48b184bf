/*
 * quicksort.c
 *	  Sorting rows by the bytes of their keys, in memory.
 *
 * Multikey quicksort (Bentley and Sedgewick, "Fast Algorithms for Sorting and
 * Searching Strings", 1997) on words: an entry is a row's address and eight bytes
 * of its key, as a number.  Entries are partitioned by that number into lesser,
 * equal and greater ones; the equal ones go on with the next eight bytes.  Rows
 * themselves are touched once per word ("caching": Ng and Kakehi, "Cache Efficient
 * Radix Sort for String Sorting", 2007).
 *
 *		[ word | row ] [ word | row ] [ word | row ] ...
 *		  lesser  ...  |  equal: next words  |  greater ...
 *
 * Invariants
 *	I1	The stack is as deep as the logarithm of the number of entries, and not
 *		deeper for longer keys.
 *	I2	A sort of many entries can be interrupted.
 *
 * src/indexbuild/quicksort.c
 */
#include "postgres.h"

#include "miscadmin.h"

#include "indexbuild/quicksort.h"

/* Up to so many entries are sorted by insertion. */
#define FEW			12

/* From so many on, a sort can be interrupted. */
#define MANY		4096

/*
 * Of two rows whose keys are equal up to there.
 */
static bool
rest_is_less(const LaRow *a, const LaRow *b, uint32 depth)
{
	uint32		length = Min(a->key_length, b->key_length);
	int			cmp;

	if (depth >= length)
		return a->key_length < b->key_length;
	cmp = memcmp(la_row_key(a) + depth, la_row_key(b) + depth, length - depth);
	return cmp != 0 ? cmp < 0 : a->key_length < b->key_length;
}

static inline bool
is_less(const LaSortEntry *a, const LaSortEntry *b, uint32 depth)
{
	if (a->word != b->word)
		return a->word < b->word;
	return rest_is_less(a->row, b->row, depth + sizeof(uint64));
}

static void
sort_few(LaSortEntry *a, Size n, uint32 depth)
{
	for (Size i = 1; i < n; i++)
	{
		LaSortEntry e = a[i];
		Size		j = i;

		while (j > 0 && is_less(&e, &a[j - 1], depth))
		{
			a[j] = a[j - 1];
			j--;
		}
		a[j] = e;
	}
}

static inline void
fetch(const LaRow *row, uint32 depth)
{
	/* its length, and the word, which is seldom in the same line */
	__builtin_prefetch(row);
	__builtin_prefetch(la_row_key(row) + depth);
}

/*
 * How many bytes do all keys share, of which the first ones, up to depth, are known
 * to be?  Their number down to a whole word.
 */
static uint32
shared_depth(const LaSortEntry *a, Size n, uint32 depth)
{
	const uint8 *key = la_row_key(a[0].row);
	uint32		length = a[0].row->key_length;

	for (Size i = 1; i < n; i++)
	{
		if (i + LA_ROWS_AHEAD < n)
			fetch(a[i + LA_ROWS_AHEAD].row, depth);
		length = la_common_prefix(key, length, la_row_key(a[i].row),
								  a[i].row->key_length, depth);
		if (length < depth + sizeof(uint64))
			return depth;
	}
	return TYPEALIGN_DOWN(sizeof(uint64), length);
}

/*
 * Load the words from that depth on where they are not all the same; returns it.  At
 * the end of the first key, if there is no difference: row.h says that there is one.
 */
static uint32
load_words(LaSortEntry *a, Size n, uint32 depth)
{
	for (;;)
	{
		uint64		different = 0;

		for (Size i = 0; i < n; i++)
		{
			if (i + LA_ROWS_AHEAD < n)
				fetch(a[i + LA_ROWS_AHEAD].row, depth);
			a[i].word = la_row_word(a[i].row, depth);
			different |= a[i].word ^ a[0].word;
		}
		if (different != 0 || depth >= a[0].row->key_length)
			return depth;

		/* rows that agree here often agree in more: one pass for all of it */
		depth = shared_depth(a, n, depth + sizeof(uint64));
	}
}

static inline uint64
median(uint64 a, uint64 b, uint64 c)
{
	if (a < b)
		return b < c ? b : Max(a, c);
	return a < c ? a : Max(b, c);
}

/*
 * The word of an entry in the k-th eighth.  Where in it looks random: at fixed places, all
 * words would be alike where rows come in eight sorted batches, and each partition would
 * split off next to nothing.
 */
static inline uint64
word_in_eighth(const LaSortEntry *a, Size n, int k)
{
	Size		step = n / 8;
	uint64		random = (uint64) n * 8 + k;

	random *= UINT64CONST(0x9E3779B97F4A7C15);
	random ^= random >> 32;
	random *= UINT64CONST(0xBF58476D1CE4E5B9);
	return a[k * step + (((random >> 32) * step) >> 32)].word;
}

static uint64
choose_pivot(const LaSortEntry *a, Size n)
{
	if (n < 64)
		return median(a[0].word, a[n / 2].word, a[n - 1].word);
	return median(median(word_in_eighth(a, n, 0), word_in_eighth(a, n, 1),
						 word_in_eighth(a, n, 2)),
				  median(word_in_eighth(a, n, 3), a[n / 2].word,
						 word_in_eighth(a, n, 4)),
				  median(word_in_eighth(a, n, 5), word_in_eighth(a, n, 6),
						 word_in_eighth(a, n, 7)));
}

/*
 * Entries whose words are equal, too: sorts them by what follows.
 */
static void
sort_equal(LaSortEntry *a, Size n, uint32 depth)
{
	if (n <= FEW)
		sort_few(a, n, depth);
	else
	{
		depth = load_words(a, n, depth + sizeof(uint64));
		if (depth < a[0].row->key_length)
			la_sort_entries(a, n, depth);
	}
}

/*
 * Entries whose words are in order: sorts those of equal words by what follows, but
 * the largest group, whose size it returns.  The others have at most half of the
 * entries each.
 */
static Size
sort_groups(LaSortEntry *a, Size n, uint32 depth, LaSortEntry **largest)
{
	LaSortEntry *most = a;
	Size		nmost = 0;
	Size		i = 0;

	while (i < n)
	{
		Size		j = i + 1;

		while (j < n && a[j].word == a[i].word)
			j++;
		if (j - i > nmost)
		{
			sort_equal(most, nmost, depth);
			most = a + i;
			nmost = j - i;
		}
		else
			sort_equal(a + i, j - i, depth);
		i = j;
	}
	*largest = most;
	return nmost;
}

/*
 * Sort entries that are equal in the bytes before depth, and whose words are
 * those at depth.
 */
void
la_sort_entries(LaSortEntry *a, Size n, uint32 depth)
{
	while (n > FEW)
	{
		Size		i = 1;
		uint64		pivot;
		Size		less;
		Size		greater;
		Size		nless;
		Size		nequal;
		Size		ngreater;

		if (n >= MANY)
			CHECK_FOR_INTERRUPTS();

		/* tables are often in the order of a column, or in parts */
		while (i < n && a[i - 1].word <= a[i].word)
			i++;
		if (i == n && a[0].word != a[n - 1].word)
		{
			n = sort_groups(a, n, depth, &a);
			if (n <= FEW)
				break;
			depth = load_words(a, n, depth + sizeof(uint64));
			if (depth >= a[0].row->key_length)
				return;
			continue;
		}

		pivot = choose_pivot(a, n);
		less = 0;				/* a[0 .. less): less */
		greater = n;			/* a[greater .. n): greater */
		i = 0;
		while (i < greater)
		{
			LaSortEntry e = a[i];

			if (e.word < pivot)
			{
				a[i++] = a[less];
				a[less++] = e;
			}
			else if (e.word > pivot)
			{
				a[i] = a[--greater];
				a[greater] = e;
			}
			else
				i++;
		}
		nless = less;
		nequal = greater - less;
		ngreater = n - greater;

		/*
		 * The largest part comes last, without recursion: the others have at
		 * most half of the entries, so the stack stays as deep as a
		 * logarithm.
		 */
		if (nequal >= nless && nequal >= ngreater)
		{
			la_sort_entries(a, nless, depth);
			la_sort_entries(a + greater, ngreater, depth);
			a += less;
			n = nequal;
			depth = load_words(a, n, depth + sizeof(uint64));
			if (depth >= a[0].row->key_length)
				return;
			continue;
		}
		sort_equal(a + less, nequal, depth);
		if (nless > ngreater)
		{
			la_sort_entries(a + greater, ngreater, depth);
			n = nless;
		}
		else
		{
			la_sort_entries(a, nless, depth);
			a += greater;
			n = ngreater;
		}
	}
	sort_few(a, n, depth);
}
