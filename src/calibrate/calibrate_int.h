/*
 * calibrate_int.h
 *	  What the files of this room share.
 *
 * src/calibrate/calibrate_int.h
 */
#ifndef LA_CALIBRATE_INT_H
#define LA_CALIBRATE_INT_H

#include <sys/stat.h>
#include <sys/types.h>

/* ---- blockfiles: files of a tablespace, open for direct reads ---- */

#define LA_MAX_FILES 16

/* of memory that is read into, and written from */
#define LA_DIRECT_ALIGNMENT 4096

typedef struct LaBlockFile
{
	int			fd;
	int64		blocks;
	char		path[MAXPGPATH];
} LaBlockFile;

typedef struct LaBlockFiles
{
	dev_t		device;			/* of the first one */
	int			nfiles;
	LaBlockFile files[LA_MAX_FILES];
} LaBlockFiles;

extern void la_block_files_open(Oid tablespace, LaBlockFiles *files);
extern void la_block_files_close(LaBlockFiles *files);

/* ---- directread: reads that go to the device, many at a time, and what they take ---- */

#define LA_MAX_DEPTH			256 /* requests in flight */
#define LA_MAX_REQUEST_BLOCKS	16

typedef struct LaReadPattern
{
	bool		sequential;		/* else in random order */
	int			depth;			/* requests in flight */
	int			blocks;			/* of a request */
	double		seconds;
} LaReadPattern;

typedef struct LaMeasured
{
	double		requests_per_s;
	double		average_us;		/* of a request, from its start to its end */
	double		median_us;
	double		p99_us;
	int64		bytes;			/* read in all */
} LaMeasured;

typedef struct LaReader LaReader;

extern LaReader *la_reader_create(void);
extern void la_reader_use(LaReader *reader, const LaBlockFiles *files);
extern void la_reader_measure(LaReader *reader, const LaReadPattern *pattern,
							  LaMeasured *result);
extern void la_reader_destroy(LaReader *reader);

/* ---- diskload ---- */

extern int64 la_disk_bytes(dev_t device);
extern int	la_disk_read_ahead(dev_t device);

/* ---- processor: what the processor takes for tuples ---- */

extern double la_processor_measure(LaMeasured *blocks);

#endif							/* LA_CALIBRATE_INT_H */
