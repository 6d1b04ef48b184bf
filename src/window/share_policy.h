/*
 * share_policy.h
 *	  A session's share of the reads that may be in flight on a tablespace.
 *
 * Pure functions, without PostgreSQL's headers: test/unit simulates sessions on one volume.  See
 * share_policy.c.
 *
 * src/window/share_policy.h
 */
#ifndef LA_SHARE_POLICY_H
#define LA_SHARE_POLICY_H

#include <stdbool.h>
#include <stdint.h>

extern bool la_share_is_active(uint32_t then_ms, uint32_t now_ms);
extern int	la_share_of_session(int limit, int active, int place, uint32_t now_ms);
extern int	la_share_of_member(int share, int members, uint32_t number, bool is_member);

#endif							/* LA_SHARE_POLICY_H */
