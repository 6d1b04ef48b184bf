--
-- icu - what normalizedkey.sql tests, for collations of ICU, in a database where it has run.
--
set client_min_messages = warning;
set search_path = la_normalizedkey, public;
create collation la_icu (provider = icu, locale = 'und');
create collation la_nondeterministic (provider = icu, locale = 'und', deterministic = false);
select * from check_values('text collate "und-x-icu"', 'text_pattern_ops', 'table strings');
select * from check_values('bpchar collate "und-x-icu"', 'bpchar_pattern_ops', $$select s || repeat(' ', length(s) % 3) from strings$$);
truncate columns;
insert into columns (type) values ('text collate la_icu'), ('text collate la_nondeterministic'), ('varchar collate la_icu'), ('bpchar collate la_icu'), ('name collate la_icu'), ('word collate la_icu');
insert into columns (type, class) values ('text collate la_icu', 'text_pattern_ops'), ('varchar collate la_icu', 'varchar_pattern_ops'), ('bpchar collate la_icu', 'bpchar_pattern_ops');
select type, class, why(type, class) from columns order by number;
create table icu_parts (a int, t text collate la_icu, j jsonb);
create index icu_parts_include on icu_parts (a) include (t, j);
create index icu_parts_expression on icu_parts (length(t), (j ->> 'k') collate "C", (t collate "C"));
create index icu_parts_collated on icu_parts (a, (j ->> 'k') collate la_icu);
select i, la_test_normalizedkey_why(('icu_parts_' || i)::regclass) from unnest(array['include', 'expression', 'collated']) i;
-- ranks
select * from check_values('text collate la_icu', '', 'select s from strings');
select * from check_values('text collate la_nondeterministic', '', $$select s from strings union all select normalize(s || 'ü', nfd) from strings union all select s || 'ü' from strings$$);
select * from check_values('varchar collate la_icu', '', 'select md5(i::text) from generate_series(1, 900) i');
select * from check_values('bpchar collate la_icu', '', $$select s from strings union all select s || '  ' from strings$$);
select * from check_values('name collate la_icu', '', 'select left(s, 20)::name from strings');
