-- The tables of the coordinator, in the schema that is given.

CREATE SCHEMA :"schema";
SET search_path = :"schema";
CREATE TABLE kv (k bigint, owner int, v text) PARTITION BY HASH (k);
CREATE TABLE orders (o_orderkey bigint, o_custkey int, o_orderdate date, o_totalprice numeric(15,2), o_comment text) PARTITION BY HASH (o_orderkey);
CREATE TABLE lineitem (l_orderkey bigint, l_linenumber int, l_partkey int, l_quantity numeric(15,2), l_extendedprice numeric(15,2), l_shipdate date, l_comment text) PARTITION BY HASH (l_orderkey);
CREATE TABLE part (p_partkey int, p_name text, p_retailprice numeric(15,2)) PARTITION BY HASH (p_partkey);
CREATE TABLE ping (i int) PARTITION BY HASH (i);
