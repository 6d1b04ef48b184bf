/*
 * blockfiles.h
 *	  Files of a tablespace, open for direct reads.
 *
 * src/calibrate/blockfiles.h
 */
#ifndef LA_BLOCKFILES_H
#define LA_BLOCKFILES_H

#include <sys/stat.h>

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

#endif							/* LA_BLOCKFILES_H */
