/*
 * hugepages.h
 *	  Huge pages for large areas of memory that are visited at random.
 *
 * See hugepages.c.
 *
 * src/base/hugepages.h
 */
#ifndef LA_HUGEPAGES_H
#define LA_HUGEPAGES_H

extern void la_ask_for_huge_pages(void *memory, Size size);

#endif							/* LA_HUGEPAGES_H */
