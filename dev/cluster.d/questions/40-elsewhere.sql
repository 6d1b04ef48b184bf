-- title: a join by another key than that of the shards, by the planner's choice
-- part: scans of all shards, and rows sent to the coordinator
-- set: enable_partitionwise_join = on
SELECT count(*), sum(l_quantity), min(p_name) FROM orders JOIN lineitem ON l_orderkey = o_orderkey JOIN part ON p_partkey = l_partkey
	WHERE o_custkey BETWEEN (:n * 7919) % (:customers - 5) AND (:n * 7919) % (:customers - 5) + 4;
