--
-- icu - what descent.sql tests, for collations of ICU, in a database where it has run.
--
set client_min_messages = warning;
set search_path = la_descent, public;
create collation equal_cases (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
create table texts as
    select i, (case when i % 3 = 0 then 'KEY ' else 'Key ' end || i % 2000) collate equal_cases as nd,
        ('k\u00e9y ' || i % 700)::text collate "und-x-icu" as icu from generate_series(1, 5000) i;
create index nd on texts (nd, i);
create index icu on texts (icu, nd);
select * from check_index('nd');
select * from check_index('icu');
