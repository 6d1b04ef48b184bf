-- title: a nested loop over foreign inner rows: requests for each outer row
-- part: requests to the shards, one after the other
SELECT count(*), sum(hashtext(i.v)) FROM (SELECT anything(i, :n, :rows) + 1 AS k FROM generate_series(1, 500) i) o
	CROSS JOIN LATERAL (SELECT v FROM kv WHERE kv.k = o.k OFFSET 0) i;
