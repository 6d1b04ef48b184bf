/*
 * bitmap.h
 *	  Bitmap scans that look ahead.
 *
 * src/bitmap/bitmap.h
 */
#ifndef LA_BITMAP_H
#define LA_BITMAP_H

extern void la_bitmap_init(void);

#endif							/* LA_BITMAP_H */
