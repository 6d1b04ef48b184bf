/* sql/pg_lookahead--1.0.0--1.1.0.sql */

-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION pg_lookahead UPDATE TO '1.1.0'" to load this file. \quit

-- Every reason that src/ gives is here, as dev/lint checks.
CREATE OR REPLACE FUNCTION pg_lookahead_reasons(
    OUT reason text,
    OUT meaning text,
    OUT advice text)
RETURNS SETOF record
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
VALUES
    ('a function is volatile',
     'a volatile function in C is called for rows that would be taken early; how often and when it is called could be noticed',
     'Call it in an outer query, above the join; or, if it always gives the same result for the same arguments: ALTER FUNCTION ... IMMUTABLE.'),
    ('a function is not written in C, or has settings or rights of its own',
     'functions in SQL, PL/pgSQL and other languages, with SET clauses or SECURITY DEFINER, can do anything',
     'Replace it by the expression that it computes, or write it in SQL so simple that the planner inlines it (LANGUAGE sql, one SELECT, no SET clause, no SECURITY DEFINER; as volatile as its body).'),
    ('a function runs code that its arguments name, or assigns a transaction ID',
     'functions such as query_to_xml() have effects that depend on their arguments',
     'Call it in an outer query, above the join.'),
    ('a function of an extension is not immutable, or returns a set',
     'functions in C of other extensions may run any statement unless they are declared immutable',
     'Call it in an outer query, above the join; or, if it always gives the same result for the same arguments: ALTER FUNCTION ... IMMUTABLE.'),
    ('a function of any type is called for a type that is not the server''s',
     'functions such as array_cat() call those of the type, which are not known',
     'Compute the value above the join, or use a type of the server''s.'),
    ('a function is unknown', 'it was dropped while the statement ran', 'Nothing: it is gone with the next plan.'),
    ('an operator is unknown', 'it was dropped while the statement ran', 'Nothing: it is gone with the next plan.'),
    ('an operator has no hash function', 'the keys of the hash join have none that could be computed early', 'Compare columns of the same, hashable type.'),
    ('an index access method is not the server''s',
     'a scan on the outer side, or a write, uses an index whose functions are not known',
     'Use a btree, hash, GiST, SP-GiST, GIN or BRIN index there.'),
    ('a parameter is of a kind that is not known', 'another extension passes it', 'Nothing: such statements run as in stock.'),
    ('an aggregate is unknown', 'it was dropped while the statement ran', 'Nothing: it is gone with the next plan.'),
    ('a value is converted from or to a type that is not the server''s',
     'input and output functions of other types can do anything',
     'Convert above the join, or store the value in the type that it is compared in.'),
    ('a value of a type that is not the server''s is subscripted', 'subscripts of other types can do anything', 'Take the element above the join.'),
    ('an expression is of a kind that is not known', 'as in a new kind of expression, or one of another extension', 'Compute it above the join, or nothing.'),
    ('a sampling method is not the server''s', 'TABLESAMPLE by a method of an extension', 'Use SYSTEM or BERNOULLI.'),
    ('a sample is not repeatable', 'TABLESAMPLE would draw other rows', 'Add REPEATABLE (seed).'),
    ('a cursor may be asked which row of a scan it is on', 'UPDATE or DELETE with WHERE CURRENT OF takes the row from a scan of the cursor''s plan, which must not be ahead of it', 'Nothing: such rows are read as in stock.  Without a cursor they are read ahead.'),
    ('a table access method is not heap', 'how other tables are read is not known', 'Nothing: such tables are read as in stock.'),
    ('an Append is asynchronous', 'foreign tables on the outer side are read beside each other', 'Put the rows of the foreign tables into a temporary table before.'),
    ('rows are written or locked',
     'the outer side locks or writes rows, and would do so early',
     'Leave out FOR UPDATE / FOR SHARE where the rows need not be locked, or lock them in an outer query.'),
    ('a node is of a kind that is not known',
     'the outer side has a node whose effects are not known, such as a foreign table or a custom scan',
     'Put its rows into a temporary table, or a MATERIALIZED CTE in another statement, if they are few.'),
    ('the statement is not known', 'the join runs outside of a statement that was seen from its beginning', 'Nothing: it is seen from the next execution on.'),
    ('another extension executes a node', 'an extension has replaced a node''s function', 'Load pg_lookahead after that extension, or do without the other one, if the statement matters more.'),
    ('an expression has a subplan',
     'a correlated subquery or an EXISTS stays a subquery, which would run early',
     'Write the subquery as a join (LEFT JOIN LATERAL, or an aggregate joined by its key).'),
    ('system columns are read that the statement may change', 'xmin, xmax, cmin, cmax or ctid of rows that it writes', 'Leave these columns out.'),
    ('a stable function is called, and rows leave the statement between its calls',
     'in a cursor, or a loop over a query, what a stable function reads may change between two rows',
     'Fetch all rows with one command, or put the function''s value into a variable first.'),
    ('a stable function is called in a statement that has effects',
     'the statement writes, or calls volatile functions, and a stable function could see that',
     'Put the function''s value into a variable or parameter before.'),
    ('a function may raise a notice', 'such as to_tsvector(), and any function in C of an extension; notices would come early or twice', 'Store the result in a generated column and use that.'),
    ('a function of rows may fail', 'its error could not be kept until the turn of its row', 'Use the columns that are needed in place of the row.'),
    ('an expression may fail that the server might not evaluate',
     'such as x / y: an error could come for a row that the server does not come to (LIMIT, cursors, EXISTS)',
     'Divide by a constant (x / 10 cannot fail), or compute it above the join.'),
    ('not all rows may be read, and reading takes predicate locks',
     'SERIALIZABLE: rows read early stay locked, needed or not',
     'Use REPEATABLE READ where the application allows it; or leave out LIMIT, or the cursor.'),
    ('reading takes predicate locks, which a write may remove',
     'SERIALIZABLE: a statement that writes takes the locks of reads back, row by row',
     'Use REPEATABLE READ where the application allows it; or read first, into a temporary table.'),
    ('not all rows may be read, and old snapshots expire',
     'a read that is not needed could fail with "snapshot too old"',
     'ALTER SYSTEM SET old_snapshot_threshold = -1; and restart the server.'),
    ('the index''s access method is not known to allow it',
     'whether its scans may be run ahead of the executor is not known',
     'If it keeps nothing of the row that a scan has returned last: ALTER SYSTEM SET pg_lookahead.additional_access_methods = ...; SELECT pg_reload_conf(); see docs/settings.md.'),
    ('the plan reads a CTE, and so may the rest of the statement',
     'rows of a CTE are shared with another part of the statement, which would see them taken',
     'Write the CTE as a subquery of the INSERT, UPDATE or MERGE, or use its rows there only.'),
    ('the write has a subquery', 'in RETURNING, in a policy or in an action of MERGE, which would see other rows', 'Compute its value in the query that the rows come from, or in a separate statement.'),
    ('too many different values', 'of a column that has no exact sort key (index build)', 'CREATE INDEX ... (column COLLATE "C"), if that order suffices; else nothing.'),
    ('too many parallel workers', 'for a column without an exact sort key (index build)', 'SET max_parallel_maintenance_workers = 2 for the build.'),
    ('long values are compressed', 'in the index, and are several times as long without (index build)', 'Nothing: the server builds the index.'),
    ('comparison function is not built in', 'of a column without an exact sort key (index build)', 'Nothing: the server builds the index.'),
    ('functions might be called more often', 'by a build that has to begin anew, and somebody could notice (index build)', 'Nothing: the server builds the index.')
$$;

-- What is wrong, or can be changed, with how the library is loaded and set.
CREATE OR REPLACE FUNCTION pg_lookahead_findings_server(
    OUT code text,
    OUT section text,
    OUT severity text,
    OUT finding text,
    OUT advice text,
    OUT gain_ms double precision,
    OUT figures jsonb)
RETURNS SETOF record
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    reload constant text := ' SELECT pg_reload_conf();';
    ns text := (SELECT e.extnamespace::regnamespace::text FROM pg_extension e WHERE e.extname = 'pg_lookahead');
    major int := current_setting('server_version_num')::int / 10000;
    -- before any function of the library is called, which would load it
    loaded bool := EXISTS (SELECT FROM pg_settings WHERE name = 'pg_lookahead.enable');
    with_statements text;
    preloaded bool := false;
    libraries text;             -- null: this user may not read them
    stat_statements text := (SELECT e.extnamespace::regnamespace::text FROM pg_extension e WHERE e.extname = 'pg_stat_statements');
    trouble text;
    state text;
    attached numeric;
    reads_ms float8 := (SELECT nullif(sum(blk_read_time), 0) FROM pg_stat_database);
    seen record;
    r record;
BEGIN
    -- Not everybody may read what is preloaded.
    BEGIN
        SELECT coalesce(string_agg(quote_ident(replace(regexp_replace(l, '^"(.*)"$', '\1'), '""', '"')), ', ' ORDER BY n), '') INTO libraries
            FROM regexp_split_to_table(current_setting('shared_preload_libraries'), '\s*,\s*') WITH ORDINALITY AS x (l, n)
            WHERE l <> '';
    EXCEPTION WHEN insufficient_privilege THEN
        libraries := NULL;
    END;
    -- with pg_stat_statements before pg_lookahead
    with_statements := trim(trailing ', ' FROM regexp_replace(libraries, '("[^",]*)?pg_stat_statements"?(, |$)', ''));
    with_statements := CASE WHEN with_statements ~ 'pg_lookahead' THEN regexp_replace(with_statements, '("[^",]*)?pg_lookahead', 'pg_stat_statements, \&')
                            ELSE concat_ws(', ', nullif(with_statements, ''), 'pg_stat_statements', 'pg_lookahead') END;

    BEGIN
        EXECUTE format('SELECT sum(scans_attached) FROM %s.pg_stat_lookahead', ns) INTO attached;
        preloaded := true;
    EXCEPTION
        WHEN object_not_in_prerequisite_state THEN
            RETURN QUERY SELECT 'server.not_preloaded', 'server', 'problem',
                'The server does not preload pg_lookahead: there are no statistics, and sessions look ahead only if they load it themselves ('
                    || CASE WHEN loaded THEN 'this one has).' ELSE 'this one had not, before this call).' END,
                CASE WHEN libraries IS NULL THEN 'Add pg_lookahead to shared_preload_libraries, keeping what is there, and restart the server.'
                     ELSE format('ALTER SYSTEM SET shared_preload_libraries = %s; and restart the server.', concat_ws(', ', nullif(libraries, ''), 'pg_lookahead')) END,
                reads_ms, jsonb_build_object('loaded', loaded);
        WHEN insufficient_privilege THEN
            RETURN QUERY SELECT 'server.no_privilege', 'server', 'problem',
                format('%s may not read the statistics of look-ahead.', current_user),
                format('GRANT SELECT ON %s.pg_stat_lookahead TO %I;', ns, current_user),
                NULL::float8, '{}'::jsonb;
    END;

    EXECUTE format('SELECT l.* FROM %s.pg_lookahead_library() l', ns) INTO r;
    IF r.disabled <> '{}' THEN
        RETURN QUERY SELECT 'server.other_minor', 'server', 'problem',
            format('pg_lookahead was built for PostgreSQL %s, and this is %s. Off for that: %s.', r.built_for, r.server, array_to_string(r.disabled, ', ')),
            'Build it again for this server, install it, and restart the server: see docs/install.md.',
            reads_ms, to_jsonb(r);
    END IF;
    FOR r IN SELECT e.extversion AS installed, a.default_version AS available
             FROM pg_extension e JOIN pg_available_extensions a ON a.name = e.extname
             WHERE e.extname = 'pg_lookahead' AND a.default_version <> e.extversion
    LOOP
        RETURN QUERY SELECT 'server.old_extension', 'server', 'change',
            format('The extension is of version %s in this database, and %s is installed.', r.installed, r.available),
            'ALTER EXTENSION pg_lookahead UPDATE;', NULL::float8, to_jsonb(r);
    END LOOP;
    IF preloaded AND attached = 0 THEN
        EXECUTE format('SELECT min(stats_reset) AS since FROM %s.pg_stat_lookahead', ns) INTO r;
        RETURN QUERY SELECT 'server.nothing_seen', 'server', 'note',
            'Nothing has been seen yet: no scan or join has run with look-ahead since the statistics were reset.',
            'Come back when the server has worked for a while.', NULL::float8, to_jsonb(r);
    END IF;

    -- Settings of our own, as this session has them.
    FOR r IN SELECT s.name, s.setting,
                 CASE s.source
                     WHEN 'session' THEN format('RESET %s;', s.name)
                     WHEN 'client' THEN format('Leave %s out of the connection''s options (PGOPTIONS).', s.name)
                     WHEN 'user' THEN format('ALTER ROLE %I RESET %s;', session_user, s.name)
                     WHEN 'database' THEN format('ALTER DATABASE %I RESET %s;', current_database(), s.name)
                     WHEN 'database user' THEN format('ALTER ROLE %I IN DATABASE %I RESET %s;', session_user, current_database(), s.name)
                     WHEN 'command line' THEN format('Leave %s out of the server''s command line.', s.name)
                     ELSE format('ALTER SYSTEM SET %s = on; SELECT pg_reload_conf();', s.name)
                 END AS advice
             FROM pg_settings s
             WHERE s.name ~ '^pg_lookahead\.(enable|nestloop_reuse_tids)' AND s.boot_val = 'on' AND s.setting = 'off'
             ORDER BY s.name
    LOOP
        RETURN QUERY SELECT 'settings.off', 'settings', CASE r.name WHEN 'pg_lookahead.enable' THEN 'problem' ELSE 'change' END,
            format('%s is off.', r.name), r.advice, CASE r.name WHEN 'pg_lookahead.enable' THEN reads_ms END, jsonb_build_object('setting', r.name);
    END LOOP;
    FOR r IN SELECT split_part(c, '=', 1) AS name, d.datname, x.setrole <> 0 AS of_role, pg_get_userbyid(x.setrole) AS rolname
             FROM pg_db_role_setting x
                 CROSS JOIN unnest(x.setconfig) c
                 LEFT JOIN pg_database d ON d.oid = x.setdatabase
             WHERE c ~ '^pg_lookahead\.enable[a-z_]*=(off|false|no|0)$'
                 AND c !~ '^pg_lookahead\.(enable_index_build|enable_btree_insert)='
             ORDER BY 1, 2, 4
    LOOP
        RETURN QUERY SELECT 'settings.off_for_some', 'settings', 'change',
            concat_ws(' ', r.name, 'is off for', CASE WHEN r.of_role THEN 'role ' || quote_ident(r.rolname) END,
                      CASE WHEN r.datname IS NOT NULL THEN 'in database ' || quote_ident(r.datname) END) || '.',
            concat_ws(' ', CASE WHEN r.of_role THEN format('ALTER ROLE %I', r.rolname) END,
                      CASE WHEN r.datname IS NOT NULL AND r.of_role THEN format('IN DATABASE %I', r.datname)
                           WHEN r.datname IS NOT NULL THEN format('ALTER DATABASE %I', r.datname)
                           WHEN NOT r.of_role THEN 'ALTER ROLE ALL' END,
                      format('RESET %s;', r.name)),
            NULL::float8, to_jsonb(r);
    END LOOP;
    IF current_setting('pg_lookahead.force', true) = 'on' THEN
        RETURN QUERY SELECT 'settings.force', 'settings', 'change',
            'pg_lookahead.force is on: every scan looks ahead, also those that lose by it.',
            'It is for tests. RESET pg_lookahead.force; and ALTER SYSTEM RESET pg_lookahead.force;' || reload,
            NULL::float8, '{}'::jsonb;
    END IF;
    IF (SELECT setting FROM pg_settings WHERE name = 'pg_lookahead.backend_memory') = '0' THEN
        RETURN QUERY SELECT 'settings.backend_memory', 'settings', 'problem',
            'pg_lookahead.backend_memory is 0: no scan finds memory to look ahead.',
            'ALTER SYSTEM RESET pg_lookahead.backend_memory;' || reload, reads_ms, '{}'::jsonb;
    END IF;
    IF current_setting('pg_lookahead.excluded_access_methods', true) <> '' THEN
        RETURN QUERY SELECT 'settings.excluded_access_methods', 'settings', 'note',
            format('Indexes of these access methods are scanned as in stock: %s.', current_setting('pg_lookahead.excluded_access_methods')),
            'ALTER SYSTEM RESET pg_lookahead.excluded_access_methods;' || reload, NULL::float8,
            jsonb_build_object('excluded', current_setting('pg_lookahead.excluded_access_methods'));
    END IF;

    -- Settings of the server that look-ahead, or this report, depends on.
    IF current_setting('compute_query_id') = 'off' THEN
        RETURN QUERY SELECT 'settings.compute_query_id', 'settings', 'change',
            'compute_query_id is off: statements are not told from each other, so there is nothing to report of them.',
            'ALTER SYSTEM SET compute_query_id = on;' || reload, NULL::float8, '{}'::jsonb;
    ELSIF preloaded AND attached > 0 THEN
        EXECUTE format('SELECT i.statements, i.statements_max, i.statements_dealloc FROM %s.pg_stat_lookahead_info i', ns) INTO seen;
        IF seen.statements = 0 AND current_setting('compute_query_id') <> 'on' THEN
            RETURN QUERY SELECT 'settings.compute_query_id', 'settings', 'change',
                format('Scans have run, but no statement is in pg_stat_lookahead_statements: with compute_query_id = %s, nobody has asked for their identifiers.', current_setting('compute_query_id')),
                'ALTER SYSTEM SET compute_query_id = on;' || reload, NULL::float8, '{}'::jsonb;
        END IF;
    END IF;
    IF NOT current_setting('track_io_timing')::bool THEN
        RETURN QUERY SELECT 'settings.track_io_timing', 'settings', 'change',
            'track_io_timing is off: only waits of scans under observation are known, not those of whole statements.',
            'ALTER SYSTEM SET track_io_timing = on;' || reload || ' (Its cost: pg_test_timing.)', NULL::float8, '{}'::jsonb;
    END IF;
    IF stat_statements IS NULL THEN
        RETURN QUERY SELECT 'settings.pg_stat_statements', 'settings', 'change',
            'pg_stat_statements is not in this database: statements have numbers instead of texts here, and spilled joins are not seen.',
            CASE WHEN libraries IS NULL THEN 'If it is not there, add pg_stat_statements to shared_preload_libraries, keeping what is there, and restart the server. Then: '
                 WHEN libraries ~ 'pg_stat_statements' THEN ''
                 ELSE format('ALTER SYSTEM SET shared_preload_libraries = %s; restart the server; ',
                             with_statements) END
                || 'CREATE EXTENSION pg_stat_statements;',
            NULL::float8, '{}'::jsonb;
    ELSE
        BEGIN
            EXECUTE format('SELECT FROM %s.pg_stat_statements LIMIT 1', stat_statements);
        EXCEPTION WHEN OTHERS THEN
            GET STACKED DIAGNOSTICS trouble = MESSAGE_TEXT, state = RETURNED_SQLSTATE;
            RETURN QUERY SELECT 'settings.pg_stat_statements', 'settings', 'change',
                format('pg_stat_statements cannot be read: %s.', trouble),
                CASE state
                    WHEN '42501' THEN   -- insufficient_privilege
                        CASE WHEN has_schema_privilege(stat_statements::regnamespace, 'USAGE') THEN ''
                             ELSE format('GRANT USAGE ON SCHEMA %s TO %I; ', stat_statements, current_user) END
                            || format('GRANT SELECT ON %s.pg_stat_statements TO %I;', stat_statements, current_user)
                    WHEN '55000' THEN   -- object_not_in_prerequisite_state
                        CASE WHEN libraries IS NULL THEN 'Add pg_stat_statements to shared_preload_libraries, keeping what is there, and restart the server.'
                             ELSE format('ALTER SYSTEM SET shared_preload_libraries = %s; and restart the server.', with_statements) END
                    ELSE format('See what is wrong: SELECT * FROM %s.pg_stat_statements LIMIT 1;', stat_statements) END,
                NULL::float8, '{}'::jsonb;
        END;
        IF preloaded AND libraries ~ 'pg_lookahead.*pg_stat_statements' THEN
            RETURN QUERY SELECT 'settings.pg_stat_statements', 'settings', 'note',
                'pg_stat_statements stands behind pg_lookahead in shared_preload_libraries, and hides the identifiers of utility statements: of COPY, CALL and others no figures are kept.',
                format('ALTER SYSTEM SET shared_preload_libraries = %s; and restart the server.', with_statements), NULL::float8, '{}'::jsonb;
        END IF;
    END IF;
    IF current_setting('default_transaction_isolation') = 'serializable' THEN
        RETURN QUERY SELECT 'settings.serializable', 'settings', 'change',
            'default_transaction_isolation is serializable: scans look ahead within one index page only, and joins in statements that write not at all.',
            'Where the application allows it: ALTER SYSTEM SET default_transaction_isolation = ''repeatable read'';' || reload,
            NULL::float8, '{}'::jsonb;
    END IF;
    IF coalesce(current_setting('old_snapshot_threshold', true), '-1') <> '-1' THEN
        RETURN QUERY SELECT 'settings.old_snapshot_threshold', 'settings', 'problem',
            format('old_snapshot_threshold is %s: scans and nested loops run as in stock.', current_setting('old_snapshot_threshold')),
            'ALTER SYSTEM SET old_snapshot_threshold = -1; and restart the server.', reads_ms, '{}'::jsonb;
    END IF;
    IF coalesce(current_setting('debug_io_direct', true), '') ~ 'data'
        AND (major < 18 OR current_setting('io_method', true) = 'sync' OR pg_is_in_recovery()) THEN
        RETURN QUERY SELECT 'settings.io_direct', 'settings', 'problem',
            'debug_io_direct includes data, and this server has no asynchronous reads to use for that: nothing is read ahead.',
            CASE WHEN major >= 18 AND NOT pg_is_in_recovery() THEN 'ALTER SYSTEM SET io_method = worker; and restart the server.'
                 ELSE 'ALTER SYSTEM RESET debug_io_direct; and restart the server.' END,
            reads_ms, '{}'::jsonb;
    END IF;
    IF major < 18 AND current_setting('effective_io_concurrency')::int <= 1 THEN
        RETURN QUERY SELECT 'settings.effective_io_concurrency', 'settings',
            CASE WHEN current_setting('effective_io_concurrency') = '0' OR NOT loaded OR current_setting('pg_lookahead.enable_bitmap_scan', true) = 'off' THEN 'change' ELSE 'note' END,
            format('effective_io_concurrency is %s: ', current_setting('effective_io_concurrency'))
                || CASE WHEN current_setting('effective_io_concurrency') = '0' THEN 'bitmap heap scans read one block after the other.'
                        WHEN loaded THEN format('bitmap heap scans keep %s reads in flight where look-ahead is on (pg_lookahead.max_distance), and one where it is off.', current_setting('pg_lookahead.max_distance', true))
                        ELSE 'bitmap heap scans read one block ahead.' END,
            'ALTER SYSTEM SET effective_io_concurrency = 64;' || reload, NULL::float8,
            jsonb_build_object('effective_io_concurrency', current_setting('effective_io_concurrency')::int);
    END IF;
    FOR r IN SELECT t.spcname AS tablespace, split_part(o, '=', 2) AS effective_io_concurrency
             FROM pg_tablespace t CROSS JOIN unnest(t.spcoptions) o
             WHERE o ~ '^effective_io_concurrency=\d+$' AND split_part(o, '=', 2)::int < 16
             ORDER BY 1
    LOOP
        RETURN QUERY SELECT 'settings.tablespace', 'settings', 'change',
            format('Tablespace %I has effective_io_concurrency = %s: ', r.tablespace, r.effective_io_concurrency)
                || CASE r.effective_io_concurrency WHEN '0' THEN 'nothing is read ahead there.' ELSE 'no scan keeps more reads in flight there.' END,
            format('ALTER TABLESPACE %I RESET (effective_io_concurrency); unless its disk must be spared.', r.tablespace),
            NULL::float8, to_jsonb(r);
    END LOOP;

    -- Index access methods of this database that are left alone.
    FOR r IN SELECT a.amname, count(*) AS indexes, min(c.oid::regclass::text) AS example
             FROM pg_class c JOIN pg_am a ON a.oid = c.relam
             WHERE c.relkind = 'i' AND a.amtype = 'i'
                 AND a.amname NOT IN ('btree', 'hash', 'gist', 'spgist', 'gin', 'brin', 'hnsw', 'ivfflat', 'rum')
                 AND NOT a.amname = ANY (regexp_split_to_array(coalesce(current_setting('pg_lookahead.additional_access_methods', true), ''), '[\s",]+'))
             GROUP BY a.amname ORDER BY a.amname
    LOOP
        RETURN QUERY SELECT 'settings.access_method', 'settings', 'note',
            format('Indexes of access method %I (%s, such as %s) are scanned as in stock: whether their scans may be run ahead is not known.', r.amname, r.indexes, r.example),
            format('If it keeps nothing of the row that a scan has returned last: ALTER SYSTEM SET pg_lookahead.additional_access_methods = %s;%s',
                   concat_ws(', ', NULLIF(current_setting('pg_lookahead.additional_access_methods', true), ''), quote_ident(r.amname)), reload),
            NULL::float8, to_jsonb(r);
    END LOOP;

    -- The tables of entries.
    IF preloaded THEN
        FOR r IN SELECT s.name FROM pg_settings s WHERE s.name IN ('pg_lookahead.max_statements', 'pg_lookahead.max_indexes') AND s.setting = '0'
        LOOP
            RETURN QUERY SELECT 'settings.no_entries', 'settings', 'change', format('%s is 0: there are no such statistics.', r.name),
                format('ALTER SYSTEM RESET %s; and restart the server.', r.name), NULL::float8, to_jsonb(r);
        END LOOP;
        FOR r IN EXECUTE format($q$
            SELECT x.* FROM %s.pg_stat_lookahead_info i,
                LATERAL (VALUES ('statements', i.statements, i.statements_max, i.statements_dealloc),
                                ('indexes', i.indexes, i.indexes_max, i.indexes_dealloc)) x (what, entries, most, dealloc)
            WHERE x.dealloc > 0 AND x.entries >= x.most * 0.9$q$, ns)
        LOOP
            RETURN QUERY SELECT 'settings.entries', 'settings', 'change',
                format('The table of %s is full: of %s entries, %s were given up for others, and their figures are lost.', r.what, r.most, r.dealloc),
                format('ALTER SYSTEM SET pg_lookahead.max_%s = %s; and restart the server.', r.what, least(r.most * 4, 1000000)),
                NULL::float8, to_jsonb(r);
        END LOOP;
    END IF;
EXCEPTION WHEN insufficient_privilege THEN
    -- what was found before stays
    GET STACKED DIAGNOSTICS trouble = MESSAGE_TEXT;
    RETURN QUERY SELECT 'server.no_privilege', 'server', 'note',
        format('%s may not read all of the statistics: %s.', current_user, trouble),
        format('Grant %I SELECT on that.', current_user), NULL::float8, '{}'::jsonb;
END
$$;

-- Which statements wait for reads, and why look-ahead does not help them more.
CREATE OR REPLACE FUNCTION pg_lookahead_findings_statements(
    OUT code text,
    OUT section text,
    OUT severity text,
    OUT finding text,
    OUT advice text,
    OUT gain_ms double precision,
    OUT figures jsonb)
RETURNS SETOF record
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    -- a statement that has waited for less, or lost less, is not worth a change
    worth_ms CONSTANT float8 := 10;
    ns text := (SELECT e.extnamespace::regnamespace::text FROM pg_extension e WHERE e.extname = 'pg_lookahead');
    stat_statements text := (SELECT e.extnamespace::regnamespace::text FROM pg_extension e WHERE e.extname = 'pg_stat_statements');
    -- as JSON, since its columns' names depend on its version
    texts text := '(SELECT NULL::oid AS userid, NULL::oid AS dbid, NULL::bigint AS queryid, NULL::jsonb AS j)';
    entries text;
    work_mem_kb float8 := (SELECT setting FROM pg_settings WHERE name = 'work_mem')::float8;
    distance int := coalesce((SELECT setting FROM pg_settings WHERE name = 'pg_lookahead.max_distance')::int, 64);
    ours text;
    why text;
    spilled_mb float8;
    trouble text;
    -- of which EXPLAIN shows a plan, behind comments; and those that run a cursor's query
    explainable text := '^([\s(]|/\*.*?\*/|--[^\n]*\n)*(SELECT|WITH|VALUES|TABLE|INSERT|UPDATE|DELETE|MERGE|CREATE\s+MATERIALIZED\s+VIEW|CREATE\s+(UNLOGGED\s+|TEMP\w*\s+)?TABLE\s+\S+\s+AS)\M';
    of_cursor text := '^(\s|/\*.*?\*/|--[^\n]*\n)*(FETCH|MOVE|CLOSE)\M';
    r record;
BEGIN
    BEGIN
        EXECUTE format('SELECT FROM %s.pg_stat_lookahead_statements LIMIT 1', ns);
    EXCEPTION WHEN object_not_in_prerequisite_state OR insufficient_privilege THEN
        RETURN;
    END;
    IF stat_statements IS NOT NULL THEN
        BEGIN
            EXECUTE format('SELECT FROM %s.pg_stat_statements LIMIT 1', stat_statements);
            texts := format('(SELECT p.userid, p.dbid, p.queryid, to_jsonb(p) AS j FROM %s.pg_stat_statements p)', stat_statements);
        EXCEPTION WHEN OTHERS THEN
            NULL;               -- pg_lookahead_findings_server() tells
        END;
    END IF;

    -- waited: what is still waited for.  Where a statement looked ahead, or the server does not
    -- measure, that is what its scans have waited under observation.  fast: its reads were served
    -- from the operating system's cache, or by the kernel's read-ahead.
    entries := format($q$
        SELECT s.*, p.j,
            CASE WHEN s.scans_activated > 0 THEN s.wait_time ELSE greatest(s.wait_time, s.read_time) END AS waited,
            s.scans_activated = 0 AND s.read_time > 0 AND s.read_time < s.blocks_read * %s AS fast,
            coalesce(regexp_replace(left(p.j->>'query', 1000), '\s+', ' ', 'g'), 'statement ' || s.queryid) AS label,
            p.j->>'query' ~* %L AS explainable,
            coalesce((p.j->>'temp_blks_written')::bigint, 0) AS temp_blocks,
            (p.j->>'calls')::bigint AS calls
        FROM %s.pg_stat_lookahead_statements s
            LEFT JOIN %s p ON p.userid = s.userid AND p.dbid = s.dbid AND p.queryid = s.queryid
                AND coalesce((p.j->>'toplevel')::bool, true) = s.toplevel
        $q$, coalesce((SELECT setting FROM pg_settings WHERE name = 'pg_lookahead.min_read_time')::float8, 0.025), explainable, ns, texts);

    -- those that wait most
    FOR r IN EXECUTE format($q$
        SELECT e.*, CASE WHEN length(label) > 100 THEN left(label, 97) || '...' ELSE label END AS text
        FROM (%s) e WHERE queryid IS NOT NULL AND waited >= 1 ORDER BY waited DESC, queryid LIMIT 10$q$, entries)
    LOOP
        ours := format('%s ms waited for reads (executions: %s)', to_char(r.waited, 'FM999,999,999,990'), r.executions);
        spilled_mb := r.temp_blocks * current_setting('block_size')::float8 / 1048576 / greatest(r.calls, r.executions, 1);
        figures := to_jsonb(r) - 'j' - 'label' - 'explainable' || jsonb_build_object('queryid', r.queryid::text);
        gain_ms := r.waited;
        section := 'statements';
        severity := 'change';
        IF spilled_mb >= 1 AND cardinality(r.reasons) = 0 THEN
            code := 'statement.spilled';
            gain_ms := CASE WHEN NOT r.fast THEN r.waited END;
            why := format('%s MB written to temporary files by each: sorts, or hash joins of several batches, which the server executes alone', to_char(spilled_mb, 'FM999,999,990'));
            advice := format('SET work_mem = ''%sMB''; for this statement, and look whether %s.',
                             (2 ^ ceil(log(2, (work_mem_kb / 1024 + spilled_mb)::numeric)))::bigint,
                             CASE WHEN r.explainable THEN 'EXPLAIN (ANALYZE) still says Batches > 1' ELSE 'temp_blks_written of pg_stat_statements still grows' END);
        ELSIF r.fast THEN
            code := 'statement.fast_reads';
            severity := 'note';
            gain_ms := NULL;
            why := format('%s ms for each of %s blocks: the operating system had them in its cache, or reads them ahead', round((r.read_time / r.blocks_read)::numeric, 3), r.blocks_read);
            advice := 'Look-ahead would gain nothing. Larger shared_buffers would save these reads.';
        ELSIF cardinality(r.reasons) > 0 THEN
            code := 'statement.refused';
            why := 'not looked ahead everywhere: ' || array_to_string(r.reasons, '; ');
            EXECUTE format('SELECT string_agg(x.advice, '' '' ORDER BY x.reason) FROM %s.pg_lookahead_reasons() x WHERE x.reason = ANY ($1)', ns)
                INTO advice USING r.reasons;
        ELSIF r.blocks_late > 0.2 * (r.blocks_on_time + r.blocks_late) AND r.blocks_on_time + r.blocks_late >= 100 THEN
            code := 'statement.late';
            why := format('of %s blocks that were read ahead, %s%% came late', r.blocks_on_time + r.blocks_late,
                          round(100.0 * r.blocks_late / (r.blocks_on_time + r.blocks_late)));
            advice := format('SET pg_lookahead.max_distance = %s; for this statement. If it comes as late, the disk is at its limit.', least(distance * 2, 1024));
        ELSIF r.blocks_wasted > 0.3 * r.blocks_issued AND r.blocks_issued >= 100 THEN
            code := 'statement.wasted';
            why := format('of %s blocks whose reads were started early, %s%% were not needed', r.blocks_issued, round(100.0 * r.blocks_wasted / r.blocks_issued));
            advice := format('SET pg_lookahead.max_distance = %s; for this statement: it stops before it has read what lies ahead.', greatest(distance / 4, 1));
        ELSIF r.scans_activated > 0 THEN
            code := 'statement.ahead';
            severity := 'note';
            why := format('it looks ahead, and %s of %s blocks came on time', r.blocks_on_time, r.blocks_issued);
            advice := 'What is left are the first reads of scans, and those of other nodes. Nothing to change.';
        ELSIF r.blocks_read < 16 * r.executions THEN
            code := 'statement.short';
            severity := 'note';
            why := format('%s blocks read by each: too few to look ahead', round(r.blocks_read / greatest(r.executions, 1)::numeric, 1));
            advice := 'Larger shared_buffers, if it is often executed.';
        ELSIF r.explainable IS FALSE THEN
            code := 'statement.not_begun';
            severity := 'note';
            why := 'nothing in it began to look ahead';
            advice := 'Larger shared_buffers, if it reads the same blocks again.';
        ELSE
            code := 'statement.not_begun';
            severity := 'note';
            why := 'no scan began to look ahead: its reads are those of sequential scans or bitmap heap scans, or follow the order of the table';
            advice := CASE WHEN r.explainable THEN 'EXPLAIN (ANALYZE, BUFFERS) says which.' ELSE 'EXPLAIN (ANALYZE, BUFFERS) says which, if it takes the statement.' END
                || ' An index, or SET random_page_cost lower, if an index scan of few rows would do.';
        END IF;
        IF r.waited < worth_ms THEN
            severity := 'note';
        END IF;
        finding := format('%s; %s: %s', ours, why, r.text);
        RETURN NEXT;
    END LOOP;

    -- reasons, over all statements
    FOR r IN EXECUTE format($q$
        SELECT x.reason, count(*) AS statements, sum(e.executions)::bigint AS executions, coalesce(sum(e.waited) FILTER (WHERE NOT e.fast), 0) AS waited,
            (array_agg(e.label ORDER BY e.waited DESC, e.executions DESC, e.queryid))[1] AS example,
            coalesce(min(a.meaning), 'a reason of another version') AS meaning, min(a.advice) AS advice
        FROM (%s) e CROSS JOIN unnest(e.reasons) x (reason) LEFT JOIN %s.pg_lookahead_reasons() a ON a.reason = x.reason
        WHERE e.queryid IS NOT NULL GROUP BY x.reason ORDER BY 4 DESC, 1$q$, entries, ns)
    LOOP
        RETURN QUERY SELECT 'reason', 'statements', CASE WHEN r.waited >= worth_ms THEN 'change' ELSE 'note' END,
            format('Refused (statements: %s, executions: %s, waited: %s ms): %s - %s. The first: %s', r.statements, r.executions,
                   to_char(r.waited, 'FM999,999,999,990'), r.reason, r.meaning,
                   CASE WHEN length(r.example) > 100 THEN left(r.example, 97) || '...' ELSE r.example END),
            r.advice, CASE WHEN r.waited >= 1 THEN r.waited END, to_jsonb(r) - 'advice' - 'meaning';
    END LOOP;

    -- what it has saved
    FOR r IN EXECUTE format($q$
        SELECT e.*, CASE WHEN length(label) > 100 THEN left(label, 97) || '...' ELSE label END AS text
        FROM (%s) e WHERE queryid IS NOT NULL AND saved_time >= 1 ORDER BY saved_time DESC, queryid LIMIT 5$q$, entries)
    LOOP
        RETURN QUERY SELECT 'statement.saved', 'statements', 'good',
            format('About %s ms saved, +- %s (executions: %s): %s', to_char(r.saved_time, 'FM999,999,999,990'),
                   to_char(r.saved_time_error, 'FM999,999,999,990'), r.executions, r.text),
            NULL::text, NULL::float8, to_jsonb(r) - 'j' - 'label' - 'explainable' || jsonb_build_object('queryid', r.queryid::text);
    END LOOP;

    -- what it has cost
    FOR r IN EXECUTE format($q$
        SELECT e.*, CASE WHEN length(label) > 100 THEN left(label, 97) || '...' ELSE label END AS text
        FROM (%s) e WHERE queryid IS NOT NULL AND saved_time + saved_time_error <= -1 ORDER BY saved_time, queryid LIMIT 5$q$, entries)
    LOOP
        RETURN QUERY SELECT 'statement.loses', 'statements', CASE WHEN r.saved_time <= -worth_ms THEN 'change' ELSE 'note' END,
            format('About %s ms lost by look-ahead, +- %s (executions: %s): %s', to_char(-r.saved_time, 'FM999,999,999,990'),
                   to_char(r.saved_time_error, 'FM999,999,999,990'), r.executions, r.text),
            'SET pg_lookahead.enable = off; for this statement, and compare. If it is as much faster then, that is a bug.', -r.saved_time,
            to_jsonb(r) - 'j' - 'label' - 'explainable' || jsonb_build_object('queryid', r.queryid::text);
    END LOOP;

    -- statements that wait, and of which nothing is known
    FOR r IN EXECUTE format($q$
        SELECT p.j->>'query' AS query, p.queryid::text AS queryid, (p.j->>'calls')::bigint AS calls,
            coalesce(p.j->>'shared_blk_read_time', p.j->>'blk_read_time')::float8 AS waited,
            left(regexp_replace(left(p.j->>'query', 1000), '\s+', ' ', 'g'), 100) AS text
        FROM %s p
        WHERE p.queryid IS NOT NULL AND coalesce(p.j->>'shared_blk_read_time', p.j->>'blk_read_time')::float8 >= 100
            AND NOT EXISTS (SELECT FROM %s.pg_stat_lookahead_statements s
                            WHERE s.userid = p.userid AND s.dbid = p.dbid AND s.queryid = p.queryid)
        ORDER BY 3 DESC, 1 LIMIT 3$q$, texts, ns)
    LOOP
        RETURN QUERY SELECT 'statement.unseen', 'statements', 'note',
            format('%s ms waited for reads (executions: %s); nothing of it is in the statistics of look-ahead: %s', to_char(r.waited, 'FM999,999,999,990'), r.calls, r.text),
            CASE WHEN r.query ~* explainable THEN
                'If no scan or join in it can look ahead: sequential scans are the server''s own, and EXPLAIN (ANALYZE, BUFFERS) says whether an index would do.'
            WHEN r.query ~* of_cursor THEN
                'These are reads of the cursor''s query, whose figures are counted when the cursor is closed.'
            ELSE
                'What look-ahead did for queries in it is counted for them (toplevel is false), and for it if pg_stat_statements stands before pg_lookahead in shared_preload_libraries. Maintenance is the server''s own.'
            END,
            NULL::float8, to_jsonb(r) - 'query';
    END LOOP;

    -- what this user may not see
    EXECUTE format('SELECT count(*) AS statements, sum(wait_time) AS waited FROM %s.pg_stat_lookahead_statements WHERE queryid IS NULL', ns) INTO r;
    IF r.statements > 0 THEN
        RETURN QUERY SELECT 'statement.hidden', 'statements', 'note',
            format('Statements of other users are not shown: %s.', r.statements),
            format('GRANT pg_read_all_stats TO %I;', current_user), NULL::float8, to_jsonb(r);
    END IF;
EXCEPTION WHEN insufficient_privilege THEN
    -- what was found before stays
    GET STACKED DIAGNOSTICS trouble = MESSAGE_TEXT;
    RETURN QUERY SELECT 'server.no_privilege', 'server', 'note',
        format('%s may not read all of the statistics: %s.', current_user, trouble),
        format('Grant %I SELECT on that.', current_user), NULL::float8, '{}'::jsonb;
END
$$;

COMMENT ON COLUMN pg_stat_lookahead.kind
    IS 'index scan, index only scan, nested loop, hash join, bitmap heap scan, bitmap index scan, index insert, foreign key, toast, subplan or tid scan';
