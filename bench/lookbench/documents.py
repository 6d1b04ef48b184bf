"""The table of GIN indexes: documents with a title, a body and attributes.

Titles and bodies are words of three syllables, of which the r-th is drawn with a probability
of about 0.1 / r (Zipf), as in any language.  A title has TITLE words, a body BODY.  The
attributes have values of ATTRIBUTES, each as likely as the others.  All is drawn from hashes,
so that the table is the same on every server.

The indexes exist before the first row does, and are filled through the pending list, as those
of a table that grows: the pages of a posting tree lie anywhere in the index.
"""

from __future__ import annotations

from typing import Mapping

WORDS = 20_000
TITLE = 4
BODY = 25
ATTRIBUTES: Mapping[str, int] = {"brand": 50, "country": 20, "colour": 12, "year": 15, "size": 8}

_CONSONANTS = "bcdfghklmnprstvz"
_VOWELS = "aeiou"
_SYLLABLES = len(_CONSONANTS) * len(_VOWELS)
_STRIDE = 104_729  # has no factor in common with the number of words there could be


def word(rank: int) -> str:
    """The word of that rank, from 1; SQL for the same is _WORD."""
    number = rank * _STRIDE % _SYLLABLES**3
    digits = (number // _SYLLABLES**place % _SYLLABLES for place in range(3))
    return "".join(_CONSONANTS[digit // len(_VOWELS)] + _VOWELS[digit % len(_VOWELS)] for digit in digits)


def _word() -> str:
    number = f"rank * {_STRIDE} % {_SYLLABLES**3}"
    return " || ".join(
        f"substr('{_CONSONANTS}', 1 + {digit} / {len(_VOWELS)}, 1) || substr('{_VOWELS}', 1 + {digit} % {len(_VOWELS)}, 1)"
        for digit in (f"({number} / {_SYLLABLES**place} % {_SYLLABLES})" for place in range(3))
    )


_WORD = _word()
_ATTRIBUTES = ", ".join(
    f"'{name}', (hashint4extended(id, {seed}) & 1048575) % {values}"
    for seed, (name, values) in enumerate(ATTRIBUTES.items(), 70)
)

# columns of the table by what is indexed: name of the index -> method and expression
INDEXES: Mapping[str, str] = {
    "bench_documents_words": "to_tsvector('simple', body)",
    "bench_documents_title": "title gin_trgm_ops",
    "bench_documents_facts": "facts jsonb_path_ops",
}

DOCUMENTS = (
    "create table bench_documents (id integer, title text, body text, facts jsonb);\n"
    + "".join(f"create index {name} on bench_documents using gin ({text});\n" for name, text in INDEXES.items())
    + f"""insert into bench_documents
with words as materialized (select rank, {_WORD} as word from generate_series(1, {WORDS}) rank),
places as (
    select id, place,
           floor(exp((hashint8extended(id::bigint * 64 + place, 61) & 1048575) / 1048576.0::float8 * ln({WORDS}::float8)))::integer as rank
    from generate_series(0, {{rows}} - 1) id, generate_series(0, {TITLE + BODY} - 1) place
)
select id, string_agg(word, ' ' order by place) filter (where place < {TITLE}),
       string_agg(word, ' ' order by place) filter (where place >= {TITLE}),
       jsonb_build_object({_ATTRIBUTES})
from places join words using (rank) group by id order by id
"""
)
SCRIPTS: Mapping[str, str] = {"bench_documents": DOCUMENTS}
