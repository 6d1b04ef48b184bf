--
-- session - a session that loads the library by itself, on any server.
--
-- The one test of make installcheck that needs no preloaded library.  So it asks for nothing
-- that only a preloaded one has.
--
set client_min_messages = warning;
load 'pg_lookahead';
create extension if not exists pg_lookahead;
reset client_min_messages;

create table la_session as
    select (hashint4(i) & 2147483647) % 20000 as a, i as id, repeat('w', 100) as w from generate_series(1, 20000) i;
create index on la_session (a, id);
vacuum analyze la_session;
set enable_seqscan = off;
set enable_bitmapscan = off;
set max_parallel_workers_per_gather = 0;

create function la_digest() returns text language plpgsql as $$
declare r record; digest text := '';
begin
    for r in select * from la_session where a between 1000 and 3000 order by a, id loop
        digest := md5(digest || r::text);
    end loop;
    return digest;
end $$;

-- the same rows in the same order, found ahead of the executor
set pg_lookahead.enable = off;
select la_digest() as stock \gset
set pg_lookahead.enable = on;
set pg_lookahead.force = on;
select la_digest() = :'stock' as identical;
select count(*) > 1000 as many from la_session where a between 1000 and 3000 and w > '';
select relation::regclass, index::regclass, blocks_foreseen > 100 as foreseen, reason
    from pg_lookahead_last_statement();

-- settings are checked from now on
set pg_lookahead.max_distance = 0;
set pg_lookahead.max_distanse = 1;

drop function la_digest();
drop table la_session;
