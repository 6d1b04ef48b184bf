-- title: a join by the key of the shards, which each of them makes
-- part: nested loops on all shards
-- set: enable_partitionwise_join = on
SELECT count(*), sum(l_extendedprice), min(o_comment) FROM orders JOIN lineitem ON l_orderkey = o_orderkey
	WHERE o_custkey BETWEEN (:n * 7919) % (:customers - 20) AND (:n * 7919) % (:customers - 20) + 19;
