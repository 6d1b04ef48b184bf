/*
 * bucket.c
 *	  The page of a hash index where a value's bucket begins.
 *
 * An entry goes to the bucket of its hash value, on the bucket's first page or, where that is full,
 * on an overflow page behind it.  The first page follows from the metapage, of which the server
 * keeps a copy with the index; if the bucket has been split since, it is a page that is read in
 * vain.  Where overflow pages are is known only to the page before each: they are left alone.
 *
 * src/rows/bucket.c
 */
#include "postgres.h"

#include "access/hash.h"
#include "storage/bufmgr.h"

#include "rows/rows_int.h"

/* value is not null, nor stored out of line. */
BlockNumber
la_bucket_of(Relation index, Datum value)
{
	Buffer		buffer = InvalidBuffer;
	uint32		hash = _hash_datum2hashkey(index, value);
	HashMetaPage meta = _hash_getcachedmetap(index, &buffer, false);
	Bucket		bucket = _hash_hashkey2bucket(hash, meta->hashm_maxbucket, meta->hashm_highmask,
											  meta->hashm_lowmask);
	BlockNumber block = BUCKET_TO_BLKNO(meta, bucket);

	/* the copy was made just now, and the metapage is still pinned */
	if (BufferIsValid(buffer))
		ReleaseBuffer(buffer);
	return block;
}
