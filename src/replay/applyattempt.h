/*
 * applyattempt.h
 *	  A turn of looking ahead, which may neither fail nor wait.
 *
 * See applyattempt.c.
 *
 * src/replay/applyattempt.h
 */
#ifndef LA_APPLYATTEMPT_H
#define LA_APPLYATTEMPT_H

extern bool la_applyattempt_has_memory(Size size);
extern bool la_applyattempt(void (*turn) (void), ErrorData **error);

#endif							/* LA_APPLYATTEMPT_H */
