/*
 * statfile.h
 *	  The statistics of statements and indexes, kept in a file while the server is down.
 *
 * src/base/statfile.h
 */
#ifndef LA_STATFILE_H
#define LA_STATFILE_H

extern void la_statfile_init(void);

#endif							/* LA_STATFILE_H */
