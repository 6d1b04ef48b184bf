/*
 * guc.h
 *	  The settings of pg_lookahead, as the rooms read them.
 *
 * See guc.c for units, ranges and meaning.
 *
 * src/base/guc.h
 */
#ifndef LA_GUC_H
#define LA_GUC_H

extern bool la_enable;
extern bool la_enable_index_scan;
extern bool la_enable_bitmap_scan;
extern bool la_enable_nestloop;
extern bool la_nestloop_reuse_tids;
extern bool la_enable_hash_join;
extern bool la_hash_huge_pages;
extern bool la_enable_index_build;
extern bool la_enable_btree_insert;
extern bool la_enable_write;
extern bool la_enable_foreign_key;
extern bool la_enable_toast;
extern bool la_enable_subplan;
extern bool la_enable_tid_scan;
extern bool la_enable_replay;
extern bool la_enable_apply;
extern bool la_adjust_costs;
extern bool la_force;
extern bool la_explain;
extern int	la_attach_threshold;
extern int	la_max_distance;
extern int	la_tablespace_max_in_flight;
extern int	la_miss_threshold;
extern double la_min_read_time;
extern int	la_cache_prefetch_threshold;
extern int	la_cache_prefetch_distance;
extern int	la_max_leaf_pages;
extern int	la_scan_memory;
extern int	la_backend_memory;
extern int	la_apply_queue_size;
extern int	la_max_statements;
extern int	la_max_indexes;
extern bool la_save_statistics;
extern int	la_log_min_saved;

extern void la_guc_init(void);

#endif							/* LA_GUC_H */
