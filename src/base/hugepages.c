/*
 * hugepages.c
 *	  Huge pages for large areas of memory that are visited at random.
 *
 * A visit in many megabytes waits for the translation of its address, too; and the
 * first visits of small pages cost a page fault each.  Where the system gives huge
 * pages to those who ask (transparent_hugepage = madvise or always), large areas
 * ask.  The memory itself is the server's, from its memory contexts.
 *
 * src/base/hugepages.c
 */
#include "postgres.h"

#include <sys/mman.h>

#include "base/guc.h"
#include "base/hugepages.h"

#define HUGE_PAGE		(2 * 1024 * 1024)
#define HUGE_FROM		(2 * HUGE_PAGE)

/*
 * To be called before the area is written to.  Without huge pages all works as well.
 */
void
la_ask_for_huge_pages(void *memory, Size size)
{
#ifdef MADV_HUGEPAGE
	uintptr_t	begin = TYPEALIGN(HUGE_PAGE, (uintptr_t) memory);
	uintptr_t	end = TYPEALIGN_DOWN(HUGE_PAGE, (uintptr_t) memory + size);

	if (la_huge_pages && size >= HUGE_FROM && end > begin)
		(void) madvise((void *) begin, end - begin, MADV_HUGEPAGE);
#endif
}
