/*
 * shmem.c
 *	  Shared memory, if the library is preloaded by the server: one pair of hooks for all rooms.
 *
 * Rooms register areas of a fixed size while the library is loaded.  There is shared memory only
 * if that happens through shared_preload_libraries, since a running backend cannot request any.
 * Otherwise a room's pointer to its area remains NULL, and the room does without.
 *
 * AddinShmemInitLock is held while areas are initialized.  After that no lock protects them: all
 * that they hold are atomic variables.
 *
 * src/base/shmem.c
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "base/shmem.h"

#define MAX_AREAS 8

static struct
{
	const char *name;
	Size		size;
	void		(*init) (void *area);
	void	  **area;
}			areas[MAX_AREAS];
static int	nareas = 0;

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

static void
request_shmem(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	for (int i = 0; i < nareas; i++)
		RequestAddinShmemSpace(MAXALIGN(areas[i].size));
}

static void
startup_shmem(void)
{
	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	for (int i = 0; i < nareas; i++)
	{
		bool		found;
		void	   *area = ShmemInitStruct(areas[i].name, areas[i].size, &found);

		if (!found)
			areas[i].init(area);
		*areas[i].area = area;
	}
	LWLockRelease(AddinShmemInitLock);
}

/*
 * Have *area point to shared memory when the server has started.  init is called once, with the
 * uninitialized area.
 */
void
la_shmem_register(const char *name, Size size, void (*init) (void *area), void **area)
{
	if (nareas >= MAX_AREAS)
		elog(ERROR, "too many areas of shared memory registered");
	areas[nareas].name = name;
	areas[nareas].size = size;
	areas[nareas].init = init;
	areas[nareas].area = area;
	nareas++;
}

void
la_shmem_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_shmem;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = startup_shmem;
}
