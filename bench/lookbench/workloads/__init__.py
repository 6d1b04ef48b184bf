"""The workloads, in the order in which they are measured."""

from .append import Append
from .base import CACHED, COLD, OS_CACHED, Cell, Fresh, Index, Scope, Throughput, Workload
from .bitmap import Bitmap, BitmapGin
from .btreeinsert import Insert
from .changing import Changing, Outcome
from .contents import Contents
from .direct import Direct
from .fragmented import Fragmented
from .hashjoin import HashJoin
from .indexbuild import IndexBuild
from .indexonly import IndexOnly
from .inlist import InList
from .limit import Limit, LimitPgbench
from .lookup import Lookup
from .matching import Matching
from .methods import Methods
from .mixed import Mixed
from .nestloop import NestLoop, Rivals
from .reviewed import Reviewed, ReviewedOnly
from .scale import Scale, ScaleOnly
from .sessions import Sessions
from .short import Short
from .star import Star
from .subquery import Subquery
from .toast import Documents, Sized, Toast
from .tpch import TpcH
from .vector import Vector
from .write import Write

WORKLOADS: tuple[type[Workload], ...] = (
    Matching, InList, IndexOnly, Fragmented, Methods, Limit, LimitPgbench, Short, Mixed, Sessions, Lookup,
    Contents, Bitmap, BitmapGin, Vector, Append, Scale, ScaleOnly, Toast, Documents, Sized, Direct, NestLoop, Rivals, Reviewed, ReviewedOnly, Subquery, HashJoin, IndexBuild, Insert,
    Write, TpcH, Star,
)

__all__ = ["CACHED", "COLD", "OS_CACHED", "Cell", "Changing", "Fresh", "Index", "Outcome", "Scope", "Throughput", "WORKLOADS", "Workload"]
