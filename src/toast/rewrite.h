/*
 * rewrite.h
 *	  Statements that rewrite a table.
 *
 * src/toast/rewrite.h
 */
#ifndef LA_TOAST_REWRITE_H
#define LA_TOAST_REWRITE_H

extern void la_rewrite_init(void);

#endif							/* LA_TOAST_REWRITE_H */
