/*
 * bufferhint.c
 *	  Where this backend has seen blocks in shared buffers.
 *
 * The server finds a block by its buffer mapping table, whose buckets, chains and entries are
 * in memory that the CPU's caches seldom hold: in a cached index scan that turns to a page it
 * has visited before, this search takes two fifths of the time (measured on 18, 20 million
 * rows).  A scan that looks ahead asks here first.
 *
 *		(relation, block) ---(block + hash of relation, modulo nslots)---> one slot:
 *												{ block ^ hash of relation, buffer }
 *
 * There are as many slots as shared buffers, up to MAX_SLOTS, which are enough for every block
 * of a table of 1 GB.  Slots of neighbouring blocks are neighbours, so a scan that goes through
 * a table with gaps reads them in order.  A later block overwrites an earlier one in its slot.
 *
 * Invariant: a hint.  The buffer is neither pinned nor locked, and the block may have left it
 * since.  la_bufferhint_find() compares the block with the tag of the buffer's descriptor, which
 * another process may be changing; whoever pins the buffer checks it again (pin_recent() in
 * issue.c).
 *
 * The table is allocated when the backend has noted FIRST_NOTES blocks, so that sessions of short
 * statements do without, unless it would take more than a share of backend_memory.  It is kept
 * until the backend ends.  Temporary tables are not noted.
 *
 * src/window/bufferhint.c
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "port/pg_bitutils.h"
#include "storage/buf_internals.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "base/base.h"
#include "base/compat.h"
#include "window/window_int.h"

#define MAX_SLOTS		131072	/* 1 MB */
#define SHIFT			40503	/* some odd number */
#define MEMORY_SHARE	8		/* of backend_memory, one of so many bytes */
#define FIRST_NOTES		4096

typedef struct Slot
{
	uint32		check;
	Buffer		buffer;			/* InvalidBuffer: the slot is empty */
} Slot;

static Slot *slots = NULL;
static uint32 mask;				/* number of slots, a power of 2, less 1 */
static int	nnotes = 0;

/*
 * Blocks that are MAX_SLOTS apart are not in the same slot: a scan with steps of equal length
 * would meet one such pair after the other.
 */
static inline Slot *
slot_of(BlockNumber block, uint32 hash)
{
	return &slots[(block + block / MAX_SLOTS * SHIFT + hash) & mask];
}

/* The buffer that seems to hold a block of a relation that is not temporary, or InvalidBuffer. */
Buffer
la_bufferhint_find(Relation rel, BlockNumber block)
{
	uint32		hash;
	BufferTag	tag;
	Slot	   *slot;

	if (slots == NULL)
		return InvalidBuffer;
	hash = murmurhash32(la_rel_file_number(rel));
	slot = slot_of(block, hash);
	if (slot->check != (block ^ hash) || !BufferIsValid(slot->buffer))
		return InvalidBuffer;
	la_init_buffer_tag(tag, rel, block);
	if (memcmp(&GetBufferDescriptor(slot->buffer - 1)->tag, &tag, sizeof(tag)) != 0)
		return InvalidBuffer;
	return slot->buffer;
}

/* Returns false if there is no memory for them. */
static bool
create_slots(void)
{
	uint32		n = pg_nextpower2_32(Min(NBuffers, MAX_SLOTS));

	nnotes = 0;
	if (n * sizeof(Slot) > (Size) la_backend_memory * 1024 / MEMORY_SHARE)
		return false;
	mask = n - 1;
	slots = MemoryContextAllocExtended(TopMemoryContext, n * sizeof(Slot),
									   MCXT_ALLOC_ZERO | MCXT_ALLOC_NO_OOM);
	return slots != NULL;
}

/* The block was found in this shared buffer. */
void
la_bufferhint_note(Relation rel, BlockNumber block, Buffer buffer)
{
	uint32		hash = murmurhash32(la_rel_file_number(rel));
	Slot	   *slot;

	Assert(BufferIsValid(buffer));
	if (slots == NULL)
	{
		if (++nnotes < FIRST_NOTES || !create_slots())
			return;
	}
	slot = slot_of(block, hash);
	slot->check = block ^ hash;
	slot->buffer = buffer;
}
