"""
world_base.py - what all worlds have: types, operators, functions with effects, roles.

It is made once, in a database that is the template of all others.  Functions leave traces in a
digest of their calls, in the sequence "trail", which no rollback undoes; in notices; and in
rows of "log".  Their labels do not always tell the truth, as users' do not.
"""

# operators of a user's own on integers, by kind: what follows the operator's name, and what is done
# before the comparison, and what is added to the right side
OWN = {
    "own_quiet": ("%", "", ""),
    "own_tells": ("@", "if p % 50 = 7 then raise notice '% with %', p, q; end if; ", ""),
    "own_reads": ("#", "", " + current_setting('my.shift')::int"),
    "own_fails": ("!", "if p = 77 then raise exception 'compared % with %', p, q; end if; ", ""),
    "own_effects": ("&", "perform public.eff(p); ", ""),
}

EFFECTS = """
create sequence trail;
create sequence sq;
create sequence logseq;
create table log (n bigint default nextval('logseq'), x int);
create function eff(i int) returns int language plpgsql volatile as $$
begin
    perform setval('public.trail', (((select last_value from public.trail) * 31 + coalesce(i, -1)) & 1073741823) + 1);
    return i;
end $$;
create function tell(i int) returns int language plpgsql volatile as $$
begin
    if i % 5 = 2 then raise notice 'tell %', i; end if;
    return i;
end $$;
create function put(i int) returns int language plpgsql volatile as $$
begin
    if i % 3 = 0 then insert into public.log (x) values (i); end if;
    return i;
end $$;
create function stable_eff(i int) returns int language plpgsql stable as $$ begin return public.eff(i); end $$;
create function imm_tell(i int) returns int language plpgsql immutable as $$
begin
    if i % 7 = 4 then raise notice 'immutable %', i; end if;
    return i;
end $$;
create function imm_eff(i int) returns int language plpgsql immutable as $$ begin return public.eff(i); end $$;
create function off() returns int language sql stable as $$ select current_setting('my.off')::int $$;
create function off_imm(i int) returns int language plpgsql immutable as $$ begin return i + current_setting('my.off')::int; end $$;
create function boom(i int) returns int language plpgsql immutable as $$
begin
    if i % 101 = 23 then raise exception 'boom %', i; end if;
    return i;
end $$;
create function peek(i int) returns bool language plpgsql immutable cost 0.0001 as $$
begin perform public.eff(i); return i is null or i % 7 <> 6; end $$;
create function peek_tell(i int) returns bool language plpgsql stable cost 0.0001 as $$
begin
    if i % 29 = 1 then raise notice 'peek %', i; end if;
    return true;
end $$;
create function quiet(i int) returns int language plpgsql immutable as $$ begin return i; end $$;
create function zone_to(i int) returns bool language plpgsql volatile as $$
begin
    perform set_config('timezone', case when i % 4 > 1 then 'Asia/Tokyo' else 'Europe/Berlin' end, false);
    return true;
end $$;
create function off_to(i int) returns bool language plpgsql volatile as $$
begin
    perform set_config('my.off', (abs(i) % 4)::text, false), set_config('my.shift', (abs(i) % 9)::text, false);
    return true;
end $$;
create domain dom as int check (value is null or value > -100000000);
create domain dom_text as text check (length(value) < 100000);
create domain dom_fails as int check (value is null or value <> 77777);
create domain dom_tells as int check (public.tell(value) is not distinct from value);
create type pair as (a int, b text);
create type pairj as (a int, b json);
create type deep as (c pairj, d int);
"""

TRIGGERS = """
create function t_zone() returns trigger language plpgsql as $$
begin
    perform set_config('timezone', case when new.id % 4 > 1 then 'Asia/Tokyo' else 'Europe/Berlin' end, false);
    return new;
end $$;
create function t_setting() returns trigger language plpgsql as $$
begin
    perform set_config('my.off', (new.id % 4)::text, false), set_config('my.shift', (new.id % 9)::text, false);
    perform set_config('datestyle', case when new.id % 2 = 0 then 'iso, dmy' else 'german' end, false);
    return new;
end $$;
create function t_change() returns trigger language plpgsql as $$
begin
    new.v := (new.v + new.id) % 10;
    if new.id % 17 = 3 then new.k := null; end if;
    return new;
end $$;
create function t_skip() returns trigger language plpgsql as $$
begin
    if new.id % 3 = 1 then return null; end if;
    return new;
end $$;
create function t_write() returns trigger language plpgsql as $$
begin
    insert into public.log (x) values (new.id);
    update public.o set v = v + 1 where id = new.id % 50;
    delete from public.b where id = new.id % 300;
    return new;
end $$;
create function t_fail() returns trigger language plpgsql as $$
begin
    if new.id % 271 = 77 then raise exception 'row %', new.id; end if;
    return new;
end $$;
create function t_tell() returns trigger language plpgsql as $$
begin
    if coalesce(new.id, old.id) % 13 = 5 then raise notice '% of %', tg_op, coalesce(new.id, old.id); end if;
    perform public.eff(coalesce(new.id, old.id));
    return null;
end $$;
create function t_seen() returns trigger language plpgsql as $$
begin
    perform public.eff(count(*)::int), public.eff(sum(id)::int) from seen;
    return null;
end $$;
"""

LOOPS = """
create function looped(q text, most int) returns setof text language plpgsql as $$
declare r record; n int := 0;
begin
    for r in execute q loop
        n := n + 1;
        if n % 10 = 0 then perform public.eff(n); raise notice 'row %', n; end if;
        if n % 25 = 5 then perform set_config('timezone', case when n % 2 = 0 then 'Europe/Berlin' else 'Asia/Tokyo' end, false),
            set_config('my.off', (n % 4)::text, false), set_config('my.shift', (n % 9)::text, false); end if;
        return next r::text;
        exit when n >= most;
    end loop;
end $$;
create function caught(q text) returns setof text language plpgsql as $$
declare r record;
begin
    begin
        for r in execute q loop
            return next r::text;
        end loop;
    exception when others then
        return next sqlstate || ' ' || sqlerrm;
    end;
    return next current_setting('my.off') || ' ' || (select last_value from public.trail);
end $$;
create function counted(q text) returns bigint language plpgsql as $$
declare n bigint;
begin
    execute format('select count(*) from (%s) whole_row', q) into n;
    return n;
end $$;
create function walked(q text, tab text, what text, every int, most int) returns setof text language plpgsql as $$
declare c refcursor; r record; n int := 0;
begin
    open c no scroll for execute q;
    loop
        fetch c into r;
        exit when not found or n >= most;
        n := n + 1;
        if n % every = 0 then
            if what = 'delete' then
                execute format('delete from %s where current of %I', tab, c);
            else
                execute format('update %s set v = 77 where current of %I', tab, c);
            end if;
            return next r::text;
        end if;
    end loop;
    close c;
end $$;
create function walked_scroll(q text, moves int[]) returns setof text language plpgsql as $$
declare c refcursor; r record; n int;
begin
    open c scroll for execute q;
    foreach n in array moves loop
        if n = 0 then
            perform set_config('timezone', 'Asia/Tokyo', false), set_config('my.shift', '7', false);
        else
            fetch relative n from c into r;
            return next coalesce(r::text, 'none');
        end if;
    end loop;
end $$;
"""

ROLES = ("reader", "stranger")


def split(script):
    """Statements of a script whose bodies are in $$."""
    out, held, inside = [], [], False
    for line in script.splitlines():
        if not held and (not line.strip() or line.startswith("--")):
            continue
        held.append(line)
        inside ^= line.count("$$") % 2 == 1
        if line.endswith(";") and not inside:
            out.append("\n".join(held)[:-1])
            held = []
    return out


def operators(kind):
    """A class of operators for btree, and one for hash, in PL/pgSQL."""
    mark, before, shift = OWN[kind]
    out = []
    for name, op in (("lt", "<"), ("le", "<="), ("eq", "="), ("ge", ">="), ("gt", ">")):
        add = shift if op != "=" else ""
        out.append(f"create function {kind}_{name}(p int, q int) returns bool language plpgsql immutable strict as "
                   f"$$ begin {before}return p {op} q{add}; end $$")
    out.append(f"create function {kind}_cmp(p int, q int) returns int language plpgsql immutable strict as "
               f"$$ begin return sign(p::float8 - q::float8); end $$")
    out.append(f"create function {kind}_hash(p int) returns int language plpgsql immutable strict as $$ begin return hashint4(p); end $$")
    for name, op, rest in (("eq", "=", f", commutator = ={mark}, hashes, merges, restrict = eqsel, join = eqjoinsel"),
                           ("lt", "<", f", commutator = >{mark}, restrict = scalarltsel"), ("le", "<=", f", commutator = >={mark}, restrict = scalarlesel"),
                           ("gt", ">", f", commutator = <{mark}, restrict = scalargtsel"), ("ge", ">=", f", commutator = <={mark}, restrict = scalargesel")):
        out.append(f"create operator {op}{mark} (leftarg = int, rightarg = int, function = {kind}_{name}{rest})")
    out.append(f"create operator class {kind}_btree for type int using btree as operator 1 <{mark}, operator 2 <={mark}, "
               f"operator 3 ={mark}, operator 4 >={mark}, operator 5 >{mark}, function 1 {kind}_cmp(int, int)")
    out.append(f"create operator class {kind}_hash for type int using hash as operator 1 ={mark}, function 1 {kind}_hash(int)")
    return out


def create_roles():
    return [f"do $$ begin create role {r}; exception when duplicate_object then null; end $$" for r in ROLES]


def create_base(extensions):
    """All that worlds share."""
    out = [f"create extension if not exists {e}" for e in extensions]
    out += split(EFFECTS)
    out.append("create type mood as enum (" + ", ".join(f"'m{i:03}'" for i in range(300)) + ")")
    out.append("create collation blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
    out.append("create collation german (provider = icu, locale = 'de')")
    for kind in OWN:
        out += operators(kind)
    out += ["create schema hidden", "create table hidden.t (a int, b text)", "insert into hidden.t values (1, 'secret')",
            "create table open_to_all (a int, b text)", "grant select (a) on open_to_all to reader",
            "grant select on log to reader", "grant all on all sequences in schema public to public"]
    out += split(LOOPS)
    return out
