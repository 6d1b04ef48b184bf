"""A table like the prices that were paid for houses in England and Wales (UK land registry).

Made, not fetched, and the same at every time: whatever a row says follows from its id by hash
functions, and ids are in random order.  What matters to an index is as in the registry's own file:
names in upper case of realistic length with shared beginnings, few counties, many places, a few of
which have most of the rows, and postcodes that hardly anybody shares.

bench_paid_places   24,000 (county, city, locality) of 1,200 (county, city) and 120 counties; the first
                    locality of each city has the empty name, as where a locality says nothing
bench_paid          id, uid, price, transfer, county, city, district, locality, street, postcode,
                    always_null, a, b, c, amount, and note: about 200 bytes that begin alike
bench_paid_source   the first rows of the same without note, in random order; what is inserted
bench_paid_by_*     the same rows in the order of an index; see workloads/btreeinsert.py

Of the integers a has 100 values, b 1,000, and c two billion.
"""

from __future__ import annotations

from typing import Mapping

COUNTIES = (
    "GREATER LONDON", "GREATER MANCHESTER", "WEST MIDLANDS", "WEST YORKSHIRE", "KENT", "ESSEX", "HAMPSHIRE", "SURREY",
    "LANCASHIRE", "HERTFORDSHIRE", "MERSEYSIDE", "SOUTH YORKSHIRE", "NORFOLK", "STAFFORDSHIRE", "DEVON", "WEST SUSSEX",
    "TYNE AND WEAR", "LINCOLNSHIRE", "DERBYSHIRE", "NORTHAMPTONSHIRE", "SUFFOLK", "OXFORDSHIRE", "EAST SUSSEX", "CORNWALL",
    "LEICESTERSHIRE", "NOTTINGHAMSHIRE", "CAMBRIDGESHIRE", "WARWICKSHIRE", "NORTH YORKSHIRE", "GLOUCESTERSHIRE", "CUMBRIA",
    "SOMERSET", "WORCESTERSHIRE", "DORSET", "WILTSHIRE", "BUCKINGHAMSHIRE", "CHESHIRE", "CHESHIRE EAST",
    "CHESHIRE WEST AND CHESTER", "EAST RIDING OF YORKSHIRE", "CITY OF BRISTOL", "COUNTY DURHAM", "SHROPSHIRE", "LEICESTER",
    "CARDIFF", "CITY OF PLYMOUTH", "CITY OF NOTTINGHAM", "CITY OF DERBY", "CITY OF KINGSTON UPON HULL", "CITY OF PETERBOROUGH",
    "MILTON KEYNES", "BRIGHTON AND HOVE", "SOUTH GLOUCESTERSHIRE", "NORTH SOMERSET", "BATH AND NORTH EAST SOMERSET",
    "NORTHUMBERLAND", "NORTH LINCOLNSHIRE", "NORTH EAST LINCOLNSHIRE", "STOKE-ON-TRENT", "SOUTHAMPTON", "PORTSMOUTH", "MEDWAY",
    "YORK", "CENTRAL BEDFORDSHIRE", "BEDFORD", "BEDFORDSHIRE", "LUTON", "WARRINGTON", "HALTON", "SWINDON", "THURROCK",
    "SOUTHEND-ON-SEA", "TELFORD AND WREKIN", "THE VALE OF GLAMORGAN", "RHONDDA CYNON TAFF", "SWANSEA", "NEWPORT", "CARMARTHENSHIRE",
    "PEMBROKESHIRE", "CEREDIGION", "POWYS", "GWYNEDD", "CONWY", "DENBIGHSHIRE", "FLINTSHIRE", "WREXHAM", "ISLE OF ANGLESEY",
    "CAERPHILLY", "BRIDGEND", "NEATH PORT TALBOT", "MERTHYR TYDFIL", "BLAENAU GWENT", "TORFAEN", "MONMOUTHSHIRE", "HEREFORDSHIRE",
    "RUTLAND", "ISLE OF WIGHT", "ISLES OF SCILLY", "BOURNEMOUTH", "POOLE", "BOURNEMOUTH, CHRISTCHURCH AND POOLE", "TORBAY",
    "READING", "WOKINGHAM", "SLOUGH", "WEST BERKSHIRE", "BERKSHIRE", "WINDSOR AND MAIDENHEAD", "BRACKNELL FOREST",
    "STOCKTON-ON-TEES", "MIDDLESBROUGH", "REDCAR AND CLEVELAND", "HARTLEPOOL", "DARLINGTON", "BLACKPOOL", "BLACKBURN WITH DARWEN",
    "NORTH NORTHAMPTONSHIRE", "WEST NORTHAMPTONSHIRE", "WESTMORLAND AND FURNESS", "CUMBERLAND",
)
STEMS = (
    "STOCK", "STOCKING", "NORTH", "NORTHAMP", "SOUTH", "SOUTHAMP", "WEST", "WESTER", "EAST", "EASTING", "MAN", "MANS", "BRAD", "BRAM",
    "BRIDGE", "BURN", "BUR", "CHESTER", "CHEL", "CHIP", "CLIF", "COL", "CROW", "DAR", "DOR", "DUN", "ECCLES", "EL", "FARN", "FEN",
    "GAINS", "GREEN", "HAD", "HAL", "HAR", "HASLING", "HEAT", "HOLM", "HOR", "HUDDERS", "KEN", "KING", "KIRK", "LANG", "LEIGH", "LIT",
    "LONG", "MAR", "MEL", "MID", "MIDDLE", "NEW", "NEWING", "OLD", "ORM", "PEN", "PRES", "RAM", "RED", "ROCH", "SAL", "SAND", "SHEF",
    "SHEP", "SKEL", "STAN", "STRET", "SUT", "SWIN", "THORN", "TIM", "UP", "WAL", "WAR", "WHIT", "WIG", "WIN", "WOLVER", "WOOD", "YAR",
)
ENDINGS = (
    "TON", "FORD", "FIELD", "HAM", "PORT", "BURY", "LEY", "WORTH", "WICK", "BY", "DALE", "MOUTH", "POOL", "STEAD", "WELL", "CHESTER",
    "HAMPTON", "BOROUGH", "COMBE", "THORPE", "INGTON", "BRIDGE", "WOOD", "HURST", "MINSTER", "GATE",
)
LOCALITY_PREFIXES = ("", "", "", "", "", "", "GREAT ", "LITTLE ", "UPPER ", "LOWER ", "OLD ", "NEW ", "NORTH ", "SOUTH ")
LOCALITY_SUFFIXES = (
    "", "", "", "", "", "", " GREEN", " HEATH", " COMMON", " ST MARY", " ST JOHN", " UNDER EDGE", " ON THE HILL", "-BY-THE-SEA",
)
TOWN_SUFFIXES = ("", "", "", "", "-ON-SEA", "-UPON-AVON", "-UNDER-LYNE", "-LE-MOORS", " REGIS", " SPA")
KINDS = (
    "ROAD", "STREET", "LANE", "AVENUE", "CLOSE", "DRIVE", "WAY", "GARDENS", "COURT", "CRESCENT", "GROVE", "TERRACE", "PLACE", "HILL",
)
PLACES_ROWS = 24_000
CITIES = 1_200


def _array(names: tuple[str, ...]) -> str:
    return "array[" + ", ".join(f"'{name}'" for name in names) + "]"


def _pick(names: tuple[str, ...], key: str, seed: int) -> str:
    """SQL for one of the names, by hash of an integer."""
    return f"({_array(names)})[1 + {_number(key, seed)} % {len(names)}]"


def _number(key: str, seed: int) -> str:
    """SQL for an integer of 31 bits, by hash of an integer."""
    return f"(hashint8extended({key}, {seed}) & 2147483647)::integer"


def _share(key: str, seed: int) -> str:
    """SQL for a number from 0 to less than 1."""
    return f"({_number(key, seed)} / 2147483648.0::float8)"


# A place of low number has many rows: the number is that many times a power of what is evenly
# distributed.  The same makes some cities have more places than others, and some counties more
# cities.  The first place of each city, and the first city of each county, make all of them occur.
_SKEW = 2.5
_SLIGHT_SKEW = 1.5

PLACES = f"""
create table {{table}} as
with cities as (
    select city_no, county_no, ({_array(COUNTIES)})[county_no + 1] as county,
           {_pick(STEMS, "city_no", 2)} || {_pick(ENDINGS, "city_no", 3)} || {_pick(TOWN_SUFFIXES, "city_no", 4)} as name
    from (select n as city_no,
                 case when n < {len(COUNTIES)} then n
                      else floor({len(COUNTIES)} * power({_share("n", 1)}, {_SLIGHT_SKEW}))::integer end as county_no
          from generate_series(0::bigint, {CITIES} - 1) n) numbered
), distinct_cities as (
    select city_no, county_no, county,
           name || case when nth = 1 then '' else ({_array(TOWN_SUFFIXES[4:])})[1 + (nth - 2) % 6] || repeat(' PARVA', (nth / 8)::integer) end as city
    from (select *, row_number() over (partition by county, name order by city_no) as nth from cities) counted
), named as (
    select n as place, city_no,
           case when n < {CITIES} then ''
                else {_pick(LOCALITY_PREFIXES, "n", 6)} || {_pick(STEMS, "n", 7)} || {_pick(ENDINGS, "n", 8)}
                     || {_pick(LOCALITY_SUFFIXES, "n", 9)} end as locality
    from (select n, case when n < {CITIES} then n
                         else floor({CITIES} * power({_share("n", 5)}, {_SLIGHT_SKEW}))::bigint end as city_no
          from generate_series(0::bigint, {{rows}} - 1) n) numbered
)
select place::integer, county, city, {_pick(STEMS, "city_no / 3", 10)} || 'SHIRE ' || county as district, locality,
       chr(65 + (city_no / 26 % 26)::integer) || chr(65 + (city_no % 26)::integer) as area
from named join distinct_cities using (city_no) order by place
"""

_COLUMNS = f"""
id, md5(id::text)::uuid as uid,
(20 + 1000 * power({_share("id", 20)}, 3))::integer * 500 as price,
timestamp '1995-01-01' + {_number("id", 21)} % 852076800 * interval '1 second' as transfer,
county, city, district, locality,
{_pick(STEMS, "street_no", 12)} || {_pick(ENDINGS[:8], "street_no", 13)} || ' ' || {_pick(KINDS, "street_no", 14)} as street,
area || 1 + {_number("id", 15)} % 99 || ' ' || {_number("id", 16)} % 10
    || chr(65 + {_number("id", 17)} % 26) || chr(65 + {_number("id", 18)} % 26) as postcode,
null::text as always_null,
floor(100 * power({_share("id", 22)}, 2))::integer as a, {_number("id", 23)} % 1000 as b, {_number("id", 24)} as c,
({_number("id", 25)} % 100000000 / 100.0)::numeric(12, 2) as amount
"""

_NOTE = """
'REGISTERED TITLE, FREEHOLD, COUNTY OF ' || county || ', ' || city || ', SOLD AS SEEN: ' || md5((id + 1)::text) || md5((id + 2)::text)
    || md5((id + 3)::text) || md5((id + 4)::text)
""".strip()

_FROM = f"""
from (select id, floor({PLACES_ROWS} * power({_share("id", 10)}, {_SKEW}))::integer as place,
             floor(5000 * power({_share("id", 11)}, 2))::integer as street_no
      from (select id from generate_series(1::bigint, {{rows}}) id order by hashint8extended(id, 42)) shuffled) drawn
join bench_paid_places using (place)
"""

PAID = f"create table {{table}} as\nselect {_COLUMNS}, {_NOTE} as note\n{_FROM};\nalter table {{table}} alter id set not null\n"
SOURCE = "create table {table} as\nselect {columns} from bench_paid limit {rows}\n"
SORTED = "create table {table} as\nselect * from bench_paid_source order by {order}\n"
SOURCE_COLUMNS = "id, uid, price, transfer, county, city, district, locality, street, postcode, always_null, a, b, c, amount"

# in which orders rows are inserted, by the name of the index that has this order
ORDERS: Mapping[str, str] = {
    "uuid": "uid",
    "text3": "county, city, locality",
    "text4": "county, city, locality, postcode",
    "int3": "a, b, c",
    "int": "c",
}

SCRIPTS: Mapping[str, str] = {
    "bench_paid_places": PLACES,
    "bench_paid": PAID,
    "bench_paid_source": SOURCE.replace("{columns}", SOURCE_COLUMNS),
} | {f"bench_paid_by_{name}": SORTED.replace("{order}", order) for name, order in ORDERS.items()}
