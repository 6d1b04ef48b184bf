/*
 * base.c
 *	  What all rooms use: settings, counters, limits.
 *
 * None of this looks ahead, so it works in every minor release.
 *
 * src/base/base.c
 */
#include "postgres.h"

#include "base/base.h"

void
la_base_init(void)
{
	la_guc_init();
	la_am_init();
	la_utility_init();
	la_shmem_init();
	la_stats_init();
	la_build_stats_init();
	la_explain_init();
	la_minor_init();
}
