-- One shard, as a foreign server and the partitions that it has.

SET search_path = :"schema";
SELECT format('CREATE SERVER %I FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host %L, port %L, dbname %L, options %L %s)',
    :'server', :'host', :'port', 'postgres', '-c enable_bitmapscan=off ' || :'settings', :'more') \gexec
CREATE USER MAPPING FOR CURRENT_USER SERVER :"server";
SELECT format('CREATE FOREIGN TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS %s, REMAINDER %s) SERVER %I OPTIONS (schema_name ''public'', table_name %L)',
    t || '_' || :'number', t, :'shards', :'remainder', :'server', t)
    FROM unnest(ARRAY['kv', 'orders', 'lineitem', 'part', 'ping']) t \gexec
