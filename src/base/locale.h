/*
 * locale.h
 *	  The server's locales, without the headers of ICU.
 *
 * Where the server was built with ICU, utils/pg_locale.h includes ICU's headers, which need
 * not be installed where extensions are built (Debian 13's server package does not require
 * them).  pg_lookahead does not use what they declare, and the structures that it reads
 * have it at their end.  la_collation_is_c() of compat.h needs this file.
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
