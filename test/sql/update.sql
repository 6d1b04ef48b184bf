--
-- update - a database at an older version works with this library, and is updated to what a new
-- one gets.
--
-- The catalog of the newest version is printed, so that whoever changes it sees what he changes.
-- Rows of the catalogs are compared whole, but for numbers that are new in each database.
--
set client_min_messages = warning;
drop extension if exists pg_lookahead cascade;
create schema la_update;
set search_path = la_update, public;
create table t (a int, w text);
insert into t select i * 7919 % 10007, repeat('w', 100) from generate_series(1, 10006) i;
create index t_a on t (a);
vacuum analyze t;
reset client_min_messages;
set enable_seqscan = off;
set enable_bitmapscan = off;
set pg_lookahead.force = on;

-- what belongs to the extension, of any kind
create view members as
    select classid, objid, objsubid, (i).type, (i).identity
    from (select classid, objid, objsubid, pg_identify_object(classid, objid, objsubid) as i
          from pg_depend
          where refclassid = 'pg_extension'::regclass and deptype = 'e'
              and refobjid = (select oid from pg_extension where extname = 'pg_lookahead')) d;

-- all that the catalogs say of it (in attoptions, 15.20 notes when a column was defined)
create function row_of(r jsonb, variable text[]) returns jsonb immutable language sql as 'select r - variable';
create view catalog(object, what, contents) as
    select identity, 'pg_proc', row_of(to_jsonb(p), '{oid, prorettype, prosqlbody, proargdefaults}')
        from members join pg_proc p on classid = 'pg_proc'::regclass and p.oid = objid
    union all
    select identity, 'result', to_jsonb(pg_get_function_result(objid)) from members where classid = 'pg_proc'::regclass
    union all
    select identity, 'arguments', to_jsonb(pg_get_function_arguments(objid)) from members where classid = 'pg_proc'::regclass
    union all
    select identity, 'body', to_jsonb(pg_get_function_sqlbody(objid)) from members where classid = 'pg_proc'::regclass
    union all
    select identity, 'pg_class', row_of(to_jsonb(c), '{oid, reltype, reltoastrelid, relfilenode, relfrozenxid, relminmxid}')
        from members join pg_class c on classid = 'pg_class'::regclass and c.oid = objid
    union all
    select identity, 'column ' || attnum, row_of(to_jsonb(a), '{attrelid, attoptions}')
        from members join pg_attribute a on classid = 'pg_class'::regclass and attrelid = objid
    union all
    select identity, 'definition', to_jsonb(pg_get_viewdef(objid))
        from members where classid = 'pg_class'::regclass
    union all
    select identity, 'index', to_jsonb(pg_get_indexdef(indexrelid))
        from members join pg_index on classid = 'pg_class'::regclass and indrelid = objid
    union all
    select identity, 'comment', to_jsonb(obj_description(objid, classid::regclass::name)) from members
    union all
    select identity, 'comment on column ' || attnum, to_jsonb(col_description(objid, attnum))
        from members join pg_attribute a on classid = 'pg_class'::regclass and attrelid = objid
    union all
    select identity, 'privileges by the extension', to_jsonb(i.initprivs)
        from members m join pg_init_privs i on (m.classid, m.objid) = (i.classoid, i.objoid)
    union all
    select identity, 'extension', row_of(to_jsonb(e), '{oid}')
        from members, pg_extension e where extname = 'pg_lookahead'
    union all
    select identity, 'depends on ' || pg_describe_object(refclassid, refobjid, refobjsubid), to_jsonb(deptype)
        from members m join pg_depend d using (classid, objid);

-- a new database
create extension pg_lookahead;
select extversion = (select default_version from pg_available_extensions where name = 'pg_lookahead') as newest
    from pg_extension where extname = 'pg_lookahead';
create table new as select * from catalog;
select count(*) > 60 as compared from new;
\pset format unaligned
select type, identity, obj_description(objid, classid::regclass::name) as comment from members where type <> 'type' order by 2;
select objid::regclass, attname, format_type(atttypid, atttypmod), col_description(objid, attnum) as comment
    from members join pg_attribute on classid = 'pg_class'::regclass and attrelid = objid where attnum > 0 order by identity, attnum;
-- (a body in another language is what the script has)
select objid::regproc, case when prolang = (select oid from pg_language where lanname = 'c') then prosrc
        when prosrc <> '' then 'a body' else prosrc end as prosrc, pg_get_function_arguments(objid) as arguments, pg_get_function_result(objid) as result,
    prokind, provolatile, proparallel, proisstrict, prosecdef, proleakproof, procost, prorows, proconfig
    from members join pg_proc on classid = 'pg_proc'::regclass and oid = objid order by identity;
select identity, case when grantee = 0 then 'public' when grantee = grantor then 'owner' end as grantee,
    string_agg(privilege_type, ', ' order by privilege_type) filter (where grantee = 0) as privileges
    from members left join pg_class c on classid = 'pg_class'::regclass and c.oid = objid
        left join pg_proc p on classid = 'pg_proc'::regclass and p.oid = objid,
        aclexplode(coalesce(relacl, proacl, acldefault('f', proowner)))
    where type <> 'type' group by 1, 2 order by 1, 2;
\pset format aligned
-- nothing is without a comment, but for the row types of views
select type, identity from members where type <> 'type' and obj_description(objid, classid::regclass::name) is null;
select objid::regclass, attname from members join pg_attribute on classid = 'pg_class'::regclass and attrelid = objid
    where attnum > 0 and col_description(objid, attnum) is null;
drop extension pg_lookahead;

-- in a schema with functions and operators that fit the types of arguments better than the server's:
-- none of them is taken into views and functions
create schema la_captor;
do $$
declare
    l text;
    r text;
    o text;
begin
    foreach l in array '{int,bigint,float8,numeric,text,name}'::text[] loop
        foreach r in array '{int,bigint,float8,numeric,text,name}'::text[] loop
            execute format('create function la_captor.op(%s, %s) returns float8 language sql as ''select 0.0::float8''', l, r);
            execute format('create function la_captor.is(%s, %s) returns bool language sql as ''select true''', l, r);
            execute format('create function la_captor.log(%s, %s) returns numeric language sql as ''select 0.0''', l, r);
            foreach o in array '{=,<>,<,>,<=,>=,+,-,*,/,^,||}'::text[] loop
                continue when exists (select from pg_operator where oprname = o and oprleft = l::regtype
                    and oprright = r::regtype and oprnamespace = 'pg_catalog'::regnamespace);
                execute format('create operator la_captor.%s (leftarg = %s, rightarg = %s, function = la_captor.%s)', o, l, r,
                    case when o in ('=', '<>', '<', '>', '<=', '>=') then 'is' else 'op' end);
            end loop;
        end loop;
        execute format('create function la_captor.format(text, %s) returns text language sql as ''select $1''', l);
        execute format('create function la_captor.format(text, %s, float8, float8) returns text language sql as ''select $1''', l);
        execute format('create function la_captor.format(text, %s, numeric, float8) returns text language sql as ''select $1''', l);
        execute format('create function la_captor.format(text, %s, text) returns text language sql as ''select $1''', l);
        execute format('create function la_captor.format(text, %s, text, text) returns text language sql as ''select $1''', l);
        execute format('create aggregate la_captor.array_agg(%s) (sfunc = array_append, stype = %s[])', l, l);
        execute format('create function la_captor.unnest(%s[]) returns setof %s language sql as ''select null::%s''', l, l, l);
    end loop;
    create function la_captor.array_position(text[], text) returns int language sql as 'select 1';
    create function la_captor.slope(float8, float8, int) returns float8 language sql as 'select 0.0::float8';
    create aggregate la_captor.regr_slope(float8, int) (sfunc = la_captor.slope, stype = float8);
    create aggregate la_captor.jsonb_agg(jsonb) (sfunc = jsonb_concat, stype = jsonb);
    create function la_captor.jsonb_build_object(variadic text[]) returns jsonb language sql as $f$select '{}'::jsonb$f$;
    create function la_captor.current_setting(name) returns text language sql as 'select null::text';
end $$;
create extension pg_lookahead schema la_captor;
with captors as (
    select 'pg_proc'::regclass as classid, oid from pg_proc where pronamespace = 'la_captor'::regnamespace
        and proname !~ '^pg_(stat_)?(get_)?lookahead'
    union all select 'pg_operator'::regclass, oid from pg_operator where oprnamespace = 'la_captor'::regnamespace)
select pg_describe_object(d.classid, d.objid, 0) as captive, pg_describe_object(d.refclassid, d.refobjid, 0) as captor
    from pg_depend d join captors c on d.refclassid = c.classid and d.refobjid = c.oid
    where d.objid not in (select oid from captors)
    order by 1, 2;
drop extension pg_lookahead;
set client_min_messages = warning;
drop schema la_captor cascade;
reset client_min_messages;

-- one at 1.0.0 (test/data); views of the user's survive the update
create extension pg_lookahead version '1.0.0';
select extversion from pg_extension where extname = 'pg_lookahead';
select pg_stat_lookahead_reset();
select count(w) from (select w from t where a > 5000 order by a offset 0) s;
select relation, index, scans_activated, capacity, reason from pg_lookahead_last_statement();
select count(*) from pg_stat_lookahead;
create view mine as select index, scans_activated, reason from pg_lookahead_last_statement();
create view builds as select status, reason, builds from pg_stat_lookahead_index_build;

alter extension pg_lookahead update;
select extversion from pg_extension where extname = 'pg_lookahead';
select count(w) from (select w from t where a > 5000 order by a offset 0) s;
select * from mine;
select * from builds;
drop view builds;
drop extension pg_lookahead;
drop view mine;
drop extension pg_lookahead;

-- from every version that there is
create function differences(old text) returns setof text language plpgsql as $$
declare
    line text;
begin
    set client_min_messages = warning;
    drop extension if exists pg_lookahead;
    execute format('create extension pg_lookahead version %L', old);
    reset client_min_messages;
    if old <> (select default_version from pg_available_extensions where name = 'pg_lookahead') then
        alter extension pg_lookahead update;
    end if;
    for line in select 'updated: ' || d::text from (select * from catalog except all select * from new) d
        union all select 'new: ' || d::text from (select * from new except all select * from catalog) d loop
        return next line;
    end loop;
end $$;
select version, differences(version) from pg_available_extension_versions where name = 'pg_lookahead';
select version from pg_available_extension_versions where name = 'pg_lookahead' order by 1;
-- such as this would show
update new set contents = '"v"' where what = 'comment' and object like '%stat_lookahead_reset%';
select version, split_part(differences(version), '(', 1) as difference
    from pg_available_extension_versions where name = 'pg_lookahead' and version = '1.0.0';

set client_min_messages = warning;
drop schema la_update cascade;
