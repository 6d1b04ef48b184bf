/*
 * locale.h
 *	  The server's locales, without ICU's headers.
 *
 * utils/pg_locale.h includes those where the server has been built with ICU, but
 * the packages that extensions are built with need not bring them: Debian 13's do
 * not.  Nothing here looks at what they declare, and in the structures it comes
 * last.  la_collation_is_c() in compat.h needs this file.
 *
 * src/base/locale.h
 */
#ifndef LA_LOCALE_H
#define LA_LOCALE_H

#ifdef USE_ICU
#undef USE_ICU
#include "utils/pg_locale.h"
#define USE_ICU 1
#else
#include "utils/pg_locale.h"
#endif

#endif							/* LA_LOCALE_H */
