/*
 * run.c
 *	  Runs: sorted rows in temporary files.
 *
 * Neighbours in a run share long prefixes, so each key is written without what it shares with the
 * key before it (front coding):
 *
 *		length of the shared prefix | of the rest | flags | index tuple | rest of the key
 *
 * Lengths are written in groups of seven bits, the least significant first; the eighth bit says
 * that more follow.
 *
 * Invariants
 *	- The caller opens, closes and deletes files.
 *	- A writer or reader takes one buffer of the caller's size, and a reader the longest row of
 *	  its file as well, in the memory context of its creation.
 *	- A file that ends within a row is an error.
 *
 * src/indexbuild/run.c
 */
#include "postgres.h"

#include "miscadmin.h"

#include "indexbuild/indexbuild_int.h"

/* The most that two lengths and the flags take. */
#define MAX_HEADER	11

struct LaRunWriter
{
	BufFile    *file;
	Size		used;
	Size		size;
	uint8	   *buffer;
};

struct LaRunReader
{
	MemoryContext context;
	BufFile    *file;
	Size		size;
	Size		filled;
	Size		position;
	uint8	   *buffer;
	Size		key_space;		/* allocated for the row's key, */
	Size		tuple_space;	/* and for its index tuple */
};

/* ---- writing ------------------------------------------------------------ */

LaRunWriter *
la_run_create(BufFile *file, Size buffer)
{
	LaRunWriter *w = palloc(sizeof(LaRunWriter));

	w->file = file;
	w->used = 0;
	w->size = buffer;
	w->buffer = palloc(buffer);
	return w;
}

static void
flush(LaRunWriter *w)
{
	CHECK_FOR_INTERRUPTS();
	BufFileWrite(w->file, w->buffer, w->used);
	w->used = 0;
}

static void
write_bytes(LaRunWriter *w, const void *bytes, Size length)
{
	if (w->used + length > w->size)
	{
		flush(w);
		if (length > w->size)
		{
			BufFileWrite(w->file, unconstify(void *, bytes), length);
			return;
		}
	}
	memcpy(w->buffer + w->used, bytes, length);
	w->used += length;
}

static uint8 *
put_length(uint8 *to, uint32 length)
{
	while (length >= 0x80)
	{
		*to++ = (uint8) (length | 0x80);
		length >>= 7;
	}
	*to++ = (uint8) length;
	return to;
}

void
la_run_write(LaRunWriter *w, const LaRunTuple *row)
{
	uint8		header[MAX_HEADER];
	uint8	   *end = header;

	end = put_length(end, row->common);
	end = put_length(end, row->key_length - row->common);
	*end++ = (uint8) row->flags;
	write_bytes(w, header, end - header);
	write_bytes(w, row->tuple, IndexTupleSize(row->tuple));
	write_bytes(w, row->key + row->common, row->key_length - row->common);
}

void
la_run_finish(LaRunWriter *w)
{
	flush(w);
	pfree(w->buffer);
	pfree(w);
}

/* ---- reading ------------------------------------------------------------ */

LaRunReader *
la_run_open(BufFile *file, Size buffer)
{
	LaRunReader *r = palloc0(sizeof(LaRunReader));

	r->context = CurrentMemoryContext;
	r->file = file;
	/* the header is read from the buffer in one piece */
	r->size = Max(buffer, 4 * MAX_HEADER);
	r->buffer = palloc(r->size);
	return r;
}

/* Fill the buffer.  Returns false if it has fewer bytes than wanted then. */
static bool
fill(LaRunReader *r, Size wanted)
{
	Size		rest = r->filled - r->position;

	CHECK_FOR_INTERRUPTS();
	memmove(r->buffer, r->buffer + r->position, rest);
	r->position = 0;
	r->filled = rest + BufFileRead(r->file, r->buffer + rest, r->size - rest);
	return r->filled >= wanted;
}

static void
report_truncated_file(void)
{
	ereport(ERROR,
			(errcode_for_file_access(),
			 errmsg("unexpected end of a temporary file of an index build")));
}

static void
read_bytes(LaRunReader *r, void *to, Size length)
{
	char	   *p = to;

	while (length > r->filled - r->position)
	{
		Size		part = r->filled - r->position;

		memcpy(p, r->buffer + r->position, part);
		r->position += part;
		p += part;
		length -= part;
		if (!fill(r, 1))
			report_truncated_file();
	}
	memcpy(p, r->buffer + r->position, length);
	r->position += length;
}

static uint32
get_length(LaRunReader *r)
{
	uint32		length = 0;
	int			shift = 0;

	for (;;)
	{
		uint8		byte;

		if (r->position >= r->filled || shift > 28)
			report_truncated_file();
		byte = r->buffer[r->position++];
		length |= (uint32) (byte & 0x7f) << shift;
		if (byte < 0x80)
			return length;
		shift += 7;
	}
}

static void
enlarge(LaRunReader *r, uint8 **area, Size *space, Size wanted)
{
	if (wanted <= *space)
		return;
	wanted = Max(wanted, 2 * *space);
	if (*area == NULL)
		*area = MemoryContextAllocHuge(r->context, wanted);
	else
		*area = repalloc_huge(*area, wanted);
	*space = wanted;
}

/*
 * Read the next row; false at the end.  *row must be the one read before, all zeros at
 * first: its memory is used again, and its key is the prefix of the next one.
 */
bool
la_run_read(LaRunReader *r, LaRunTuple *row)
{
	uint32		rest;
	IndexTupleData head;
	Size		size;

	if (r->filled - r->position < MAX_HEADER && !fill(r, MAX_HEADER) && r->filled == 0)
		return false;
	row->common = get_length(r);
	rest = get_length(r);
	if (r->position >= r->filled || row->common > row->key_length)
		report_truncated_file();
	row->flags = r->buffer[r->position++];

	read_bytes(r, &head, sizeof(head));
	size = IndexTupleSize(&head);
	enlarge(r, (uint8 **) &row->tuple, &r->tuple_space, size);
	memcpy(row->tuple, &head, sizeof(head));
	read_bytes(r, (char *) row->tuple + sizeof(head), size - sizeof(head));

	row->key_length = row->common + rest;
	enlarge(r, &row->key, &r->key_space, row->key_length);
	read_bytes(r, row->key + row->common, rest);
	return true;
}
