"""The workloads, in the order in which they are measured."""

from .append import Append
from .base import CACHED, COLD, OS_CACHED, Cell, Index, Scope, Workload
from .direct import Direct
from .inlist import InList
from .limit import Limit
from .lookup import Lookup
from .matching import Matching
from .methods import Methods
from .toast import Toast
from .vector import Vector

WORKLOADS: tuple[type[Workload], ...] = (
    Matching, InList, Limit, Lookup, Methods, Vector, Append, Toast, Direct,
)

__all__ = ["CACHED", "COLD", "OS_CACHED", "Cell", "Index", "Scope", "WORKLOADS", "Workload"]
