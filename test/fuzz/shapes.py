"""
shapes.py - features of a schema, and seeded covering arrays over them.

A shape is a value for each factor.  shapes(seed) yields shapes without end, so chosen that the
first ones contain every pair of values of different factors that can be had together, and then
every triple of the factors in TRIPLES.  After that it starts again, in another order.

The array is greedy: each shape starts from a combination that has not been seen, and takes for
each other factor, in random order, the value that adds most new combinations.  A library would
have neither triples of some factors only, nor a seed.

What cannot be had together is settled by settle(), which changes a shape into one that can be
made; combinations that no shape can have are not waited for.
"""

import itertools
import random

FACTORS = {
    # of the table "t", which all statements are about
    "table_am": ("heap", "heap", "heap", "other"),
    "persistence": ("permanent", "permanent", "unlogged", "temp"),
    "layout": ("plain", "plain", "range", "list", "hash", "inherits"),
    "rows": ("few", "some", "many"),
    "fill": ("10", "30", "100"),
    "id": ("primary", "primary", "unique", "plain", "none", "deferrable"),
    "toast": ("none", "external", "compressed", "mixed"),
    # the key of "t" and the tables that are joined to it
    "key": ("int4", "int8", "int2", "text", "citext", "numeric", "uuid", "timestamp", "timestamptz", "date", "time",
            "interval", "float8", "bool", "bytea", "name", "bpchar", "inet", "jsonb", "int4range", "bit",
            "array", "comp_int_text", "comp_int_json", "array_of_comp", "comp_of_comp", "domain", "domain_text",
            "domain_fails", "enum", "own_quiet", "own_tells", "own_reads", "own_fails", "own_effects", "oidvector"),
    "am": ("btree", "btree", "hash", "gist", "spgist", "gin", "brin"),
    "index": ("plain", "unique", "exclusion", "deferrable", "deferred", "partial", "expression", "expression_tells",
              "include", "two_columns", "fails_later", "descending", "unique_nulls"),
    "collation": ("default", "C", "nondeterministic", "icu"),
    "duplicates": ("none", "few", "many"),
    # what happens beside
    "trigger": ("none", "none", "sets_timezone", "sets_setting", "changes_rows", "skips_rows", "writes", "fails", "after_tells",
                "statement"),
    "columns": ("plain", "generated", "generated_tells", "identity", "virtual", "default_effects", "checked"),
    "security": ("none", "barrier", "rls", "rls_forced", "barrier_rls"),
    "keys": ("none", "out", "in", "both", "deferred", "cascade"),
    "beside": ("none", "btree", "hash", "gin", "brin", "gist", "many"),
}

# those of which all triples are wanted
TRIPLES = (("key", "am", "index"), ("am", "index", "beside"), ("layout", "trigger", "security"), ("table_am", "layout", "persistence"),
           ("index", "collation", "key"), ("trigger", "columns", "keys"), ("key", "duplicates", "index"))

# access methods for which a key's type has a class of operators (with btree_gist); the others' index is on a number
ORDERED = {"btree", "hash", "brin"}
HAVE_GIST = {"int4", "int8", "int2", "text", "numeric", "uuid", "timestamp", "timestamptz", "date", "time", "interval", "float8",
             "bytea", "bpchar", "inet", "int4range", "bit", "enum", "domain", "domain_fails"}
OWN = {"own_quiet", "own_tells", "own_reads", "own_fails", "own_effects"}
TEXTS = {"text", "citext", "bpchar", "domain_text", "name", "comp_int_text"}
COLLATED = {"text", "bpchar", "domain_text"}


def settle(shape):
    """The nearest shape that the server can make; worlds do the rest, see world.py."""
    s = dict(shape)
    if s["layout"] != "plain" and s["layout"] != "inherits" and s["persistence"] == "unlogged":
        s["persistence"] = "permanent"          # no such partitioned table
    if s["persistence"] == "temp":
        # each session makes its own, by chance
        s["am"] = {"gist": "hash", "spgist": "gin"}.get(s["am"], s["am"])
        s["beside"] = {"gist": "brin"}.get(s["beside"], s["beside"])
    if s["collation"] != "default" and s["key"] not in COLLATED:
        s["collation"] = "default"
    if s["key"] in ("bool",) and s["duplicates"] != "many":
        s["duplicates"] = "many"
    if s["duplicates"] != "none" and s["index"] in ("unique", "exclusion", "deferrable", "deferred"):
        s["duplicates"] = "none"
    if s["key"] == "bool" and s["index"] in ("unique", "exclusion", "deferrable", "deferred", "unique_nulls"):
        s["index"] = "plain"
        s["duplicates"] = "many"
    if s["columns"] == "identity" and s["layout"] == "inherits":
        s["columns"] = "generated"              # children do not inherit it
    if s["keys"] in ("in", "both", "cascade") and s["layout"] not in ("list", "inherits"):
        s["id"] = "primary"                     # what refers to it needs that
    if s["index"] == "unique_nulls":
        s["duplicates"] = "none"
    return s


class Cover:
    """Combinations that have not been seen, and shapes that have them."""

    def __init__(self, seed, factors=None, triples=TRIPLES):
        self.r = random.Random(f"shapes/{seed}")
        self.factors = {name: tuple(dict.fromkeys(values)) for name, values in (factors or FACTORS).items()}
        self.weights = factors or FACTORS
        self.names = sorted(self.factors)
        self.left = set()
        self.fill(itertools.combinations(self.names, 2))
        self.later = [tuple(sorted(t)) for t in triples]

    def fill(self, groups):
        for group in groups:
            for values in itertools.product(*(self.factors[n] for n in group)):
                self.left.add(tuple(zip(group, values)))

    def next(self):
        if not self.left:
            if self.later:
                self.fill(self.later)
                self.later = []
            else:
                self.fill(itertools.combinations(self.names, 2))
        # a sorted sequence, for what a set yields depends on the process
        start = self.r.choice(sorted(self.left))
        shape = dict(start)
        rest = [n for n in self.names if n not in shape]
        self.r.shuffle(rest)
        sample = self.r.sample(sorted(self.left), min(len(self.left), 3000))
        for name in rest:
            best = {v: 0 for v in self.factors[name]}
            for c in sample:
                d = dict(c)
                if name in d and all(n == name or shape.get(n) == v for n, v in c):
                    best[d[name]] += 1
            most = max(best.values())
            shape[name] = self.r.choice([v for v in self.weights[name] if best[v] == most])
        made = settle(shape)
        before = len(self.left)
        self.left -= {c for c in self.left if all(made[n] == v for n, v in c)}
        # one that cannot be had is not waited for
        self.left.discard(start)
        assert len(self.left) < before
        return made


def shapes(seed):
    cover = Cover(seed)
    while True:
        yield cover.next()


def count(seed):
    """How many shapes it takes to have all pairs, and then all triples: for whoever changes the factors."""
    cover, pairs = Cover(seed), 0
    while cover.left:
        cover.next()
        pairs += 1
    triples = pairs
    cover.next()
    while cover.left:
        cover.next()
        triples += 1
    return pairs, triples


if __name__ == "__main__":
    print(f"{'%d shapes have all pairs, %d all triples' % count(1)}")
