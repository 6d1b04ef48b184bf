/*
 * diskload.c
 *	  What a block device has read and written so far, for whomever, and reads ahead.
 *
 * Linux counts it.  What has been added during a measurement, and was not read by it, is the load
 * of others; if less has been added than was read, the file system has served reads from memory.
 * There are no counters of file systems without a device of their own (overlays, btrfs, network
 * file systems), and none of what others do to the same hardware behind it.  Some drivers count
 * nothing, and counting can be switched off (queue/iostats).
 *
 * Of a file that is read in order, the kernel reads so much ahead as is set for the device
 * (queue/read_ahead_kb).
 *
 * src/calibrate/diskload.c
 */
#include "postgres.h"

#ifdef __linux__
#include <sys/sysmacros.h>
#endif

#include "storage/fd.h"

#include "calibrate/calibrate_int.h"

#define SECTOR 512				/* of these counters, whatever the device's
								 * are */

#ifdef __linux__

/* A setting of the device's queue.  A partition has none of its own. */
static int
queue_setting(dev_t device, const char *name, int unknown)
{
	static const char *const places[] = {"queue", "../queue"};
	int			value = unknown;

	for (int i = 0; i < (int) lengthof(places); i++)
	{
		char		path[MAXPGPATH];
		FILE	   *file;

		snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s/%s", major(device), minor(device),
				 places[i], name);
		file = AllocateFile(path, "r");
		if (file == NULL)
			continue;
		if (fscanf(file, "%d", &value) != 1)
			value = unknown;
		FreeFile(file);
		break;
	}
	return value;
}

#endif							/* __linux__ */

/* Bytes, or -1 if that is not known. */
int64
la_disk_bytes(dev_t device)
{
	int64		bytes = -1;

#ifdef __linux__
	char		path[MAXPGPATH];
	unsigned long long read_sectors,
				written_sectors;
	FILE	   *file;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/stat", major(device), minor(device));
	file = AllocateFile(path, "r");
	if (file == NULL)
		return -1;
	/* requests, merged, sectors, milliseconds: of reads, then of writes */
	if (fscanf(file, "%*u %*u %llu %*u %*u %*u %llu", &read_sectors, &written_sectors) == 2)
		bytes = (int64) (read_sectors + written_sectors) * SECTOR;
	FreeFile(file);

	/* what has never been read from is not counted */
	if (bytes == 0 || queue_setting(device, "iostats", 1) == 0)
		bytes = -1;
#endif
	return bytes;
}

/* Bytes, or 0 if that is not known. */
int
la_disk_read_ahead(dev_t device)
{
#ifdef __linux__
	int			kilobytes = queue_setting(device, "read_ahead_kb", 0);

	return Max(Min(kilobytes, PG_INT32_MAX / 1024), 0) * 1024;
#else
	return 0;
#endif
}
