/*
 * config.h
 *	  The configuration of a scan's policies, from settings and from what is known.
 *
 * src/window/config.h
 */
#ifndef LA_CONFIG_H
#define LA_CONFIG_H

#include "utils/relcache.h"

#include "window/cache_policy.h"
#include "window/io_policy.h"

extern LaIoPolicyConfig la_config_reads(Relation rel, bool read_to_end, Oid known_by);
extern LaIoPolicyConfig la_config_reads_now(Relation rel, bool read_to_end, Oid known_by);
extern LaCachePolicyConfig la_config_cache(Oid known_by);

#endif							/* LA_CONFIG_H */
