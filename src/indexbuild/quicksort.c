/*
 * quicksort.c
 *	  Multikey quicksort of rows by the bytes of their keys.
 *
 * The algorithm is that of Bentley and Sedgewick, "Fast Algorithms for Sorting and Searching
 * Strings" (1997), on words instead of characters.  An entry is a pointer to a sort tuple and eight
 * bytes of its key, cached as a number (Ng and Kakehi, "Cache Efficient Radix Sort for String
 * Sorting", 2007).  Entries are partitioned by that number; those that equal the pivot continue
 * with the next eight bytes, so that a sort tuple is touched once per word:
 *
 *		[ word | tuple ] [ word | tuple ] [ word | tuple ] ...
 *		     less  ...     |  equal: next words  |     greater ...
 *
 * Invariants
 *	- The depth of the stack is at most the logarithm of the number of entries, whatever
 *	  the length of the keys: la_quicksort() recurses into the smaller parts only.
 *	- A sort of many entries can be interrupted.
 *
 * src/indexbuild/quicksort.c
 */
#include "postgres.h"

#include "miscadmin.h"

#include "indexbuild/indexbuild_int.h"

#define INSERTION_SORT_ENTRIES	12	/* at most */
#define MEDIAN_OF_THREE_ENTRIES 64	/* fewer than these */
#define INTERRUPTIBLE_ENTRIES	4096	/* at least */

/* Of two keys that are equal up to depth, is a's the lesser one? */
static bool
rest_is_less(const LaSortTuple *a, const LaSortTuple *b, uint32 depth)
{
	uint32		length = Min(a->key_length, b->key_length);
	int			cmp;

	if (depth >= length)
		return a->key_length < b->key_length;
	cmp = memcmp(la_sorttuple_key(a) + depth, la_sorttuple_key(b) + depth,
				 length - depth);
	return cmp != 0 ? cmp < 0 : a->key_length < b->key_length;
}

static inline bool
is_less(const LaSortEntry *a, const LaSortEntry *b, uint32 depth)
{
	if (a->word != b->word)
		return a->word < b->word;
	return rest_is_less(a->tuple, b->tuple, depth + sizeof(uint64));
}

static void
insertion_sort(LaSortEntry *a, Size n, uint32 depth)
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
prefetch(const LaSortTuple *tuple, uint32 depth)
{
	/* the key's length and the word, which seldom share a cache line */
	__builtin_prefetch(tuple);
	__builtin_prefetch(la_sorttuple_key(tuple) + depth);
}

/*
 * How many bytes, rounded down to whole words, do all keys share?  The first depth bytes
 * are known to be shared.
 */
static uint32
shared_depth(const LaSortEntry *a, Size n, uint32 depth)
{
	const uint8 *key = la_sorttuple_key(a[0].tuple);
	uint32		length = a[0].tuple->key_length;

	for (Size i = 1; i < n; i++)
	{
		if (i + LA_SORTTUPLES_AHEAD < n)
			prefetch(a[i + LA_SORTTUPLES_AHEAD].tuple, depth);
		length = la_sorttuple_common_prefix(key, length, la_sorttuple_key(a[i].tuple),
											a[i].tuple->key_length, depth);
		if (length < depth + sizeof(uint64))
			return depth;
	}
	return TYPEALIGN_DOWN(sizeof(uint64), length);
}

/*
 * Load the first words from depth on that are not the same in all keys, and return where
 * they are: at the end of the first key if there are none, which indexbuild_int.h excludes.
 */
static uint32
load_words(LaSortEntry *a, Size n, uint32 depth)
{
	for (;;)
	{
		uint64		different = 0;

		for (Size i = 0; i < n; i++)
		{
			if (i + LA_SORTTUPLES_AHEAD < n)
				prefetch(a[i + LA_SORTTUPLES_AHEAD].tuple, depth);
			a[i].word = la_sorttuple_word(a[i].tuple, depth);
			different |= a[i].word ^ a[0].word;
		}
		if (different != 0 || depth >= a[0].tuple->key_length)
			return depth;

		/* keys that share a word often share more: skip all of it in one pass */
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
 * The word of a pseudo-random entry in the k-th eighth.  Fixed positions would have the
 * same words where rows come in eight sorted batches, and partitions would be lopsided.
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
	if (n < MEDIAN_OF_THREE_ENTRIES)
		return median(a[0].word, a[n / 2].word, a[n - 1].word);
	return median(median(word_in_eighth(a, n, 0), word_in_eighth(a, n, 1),
						 word_in_eighth(a, n, 2)),
				  median(word_in_eighth(a, n, 3), a[n / 2].word,
						 word_in_eighth(a, n, 4)),
				  median(word_in_eighth(a, n, 5), word_in_eighth(a, n, 6),
						 word_in_eighth(a, n, 7)));
}

/*
 * Partition entries by their words: a[0 .. *less) are less than the pivot, and
 * a[*greater .. n) are greater.
 */
static inline void
partition(LaSortEntry *a, Size n, Size *less, Size *greater)
{
	uint64		pivot = choose_pivot(a, n);
	Size		low = 0;
	Size		high = n;
	Size		i = 0;

	while (i < high)
	{
		LaSortEntry e = a[i];

		if (e.word < pivot)
		{
			a[i++] = a[low];
			a[low++] = e;
		}
		else if (e.word > pivot)
		{
			a[i] = a[--high];
			a[high] = e;
		}
		else
			i++;
	}
	*less = low;
	*greater = high;
}

/* Sort entries whose words are equal, too, by what follows. */
static void
sort_equal(LaSortEntry *a, Size n, uint32 depth)
{
	if (n <= INSERTION_SORT_ENTRIES)
		insertion_sort(a, n, depth);
	else
	{
		depth = load_words(a, n, depth + sizeof(uint64));
		if (depth < a[0].tuple->key_length)
			la_quicksort(a, n, depth);
	}
}

static bool
words_are_sorted(const LaSortEntry *a, Size n)
{
	Size		i = 1;

	while (i < n && a[i - 1].word <= a[i].word)
		i++;
	return i == n;
}

/*
 * Entries whose words are in order: sort each group of equal words by what follows, except the
 * largest group, whose size is returned.  Each of the others has at most half of the entries.
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
 * Partition entries and sort all parts but the largest, whose size is returned.  *equal:
 * its words are all the same.
 */
static Size
sort_smaller_parts(LaSortEntry *a, Size n, uint32 depth, LaSortEntry **largest, bool *equal)
{
	Size		nless;
	Size		greater;
	Size		nequal;
	Size		ngreater;

	partition(a, n, &nless, &greater);
	nequal = greater - nless;
	ngreater = n - greater;
	*equal = nequal >= nless && nequal >= ngreater;
	if (!*equal)
		sort_equal(a + nless, nequal, depth);
	if (*equal || nless <= ngreater)
		la_quicksort(a, nless, depth);
	if (*equal || nless > ngreater)
		la_quicksort(a + greater, ngreater, depth);

	*largest = a + (*equal ? nless : nless > ngreater ? 0 : greater);
	return *equal ? nequal : Max(nless, ngreater);
}

/* Sort entries whose keys are equal up to depth, and whose words are those at depth. */
void
la_quicksort(LaSortEntry *a, Size n, uint32 depth)
{
	while (n > INSERTION_SORT_ENTRIES)
	{
		bool		equal = true;

		if (n >= INTERRUPTIBLE_ENTRIES)
			CHECK_FOR_INTERRUPTS();

		/* rows often come in the order of a column, or in sorted batches */
		if (a[0].word != a[n - 1].word && words_are_sorted(a, n))
			n = sort_groups(a, n, depth, &a);
		else
			n = sort_smaller_parts(a, n, depth, &a, &equal);
		if (equal && n > INSERTION_SORT_ENTRIES)
		{
			depth = load_words(a, n, depth + sizeof(uint64));
			if (depth >= a[0].tuple->key_length)
				return;
		}
	}
	insertion_sort(a, n, depth);
}
