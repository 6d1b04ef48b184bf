-- The tables of one shard.

CREATE TABLE kv (k bigint PRIMARY KEY, owner int NOT NULL, v text NOT NULL);
CREATE INDEX kv_owner ON kv (owner, k);
CREATE TABLE orders (o_orderkey bigint PRIMARY KEY, o_custkey int NOT NULL, o_orderdate date NOT NULL, o_totalprice numeric(15,2) NOT NULL, o_comment text NOT NULL);
CREATE INDEX orders_customer ON orders (o_custkey);
CREATE TABLE lineitem (l_orderkey bigint, l_linenumber int, l_partkey int NOT NULL, l_quantity numeric(15,2) NOT NULL, l_extendedprice numeric(15,2) NOT NULL, l_shipdate date NOT NULL, l_comment text NOT NULL, PRIMARY KEY (l_orderkey, l_linenumber));
CREATE INDEX lineitem_part ON lineitem (l_partkey);
CREATE TABLE part (p_partkey int PRIMARY KEY, p_name text NOT NULL, p_retailprice numeric(15,2) NOT NULL);
CREATE TABLE ping (i int);
