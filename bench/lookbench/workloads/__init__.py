"""The workloads, in the order in which they are measured."""

from .base import CACHED, COLD, OS_CACHED, Cell, Index, Scope, Workload
from .inlist import InList
from .limit import Limit
from .lookup import Lookup
from .matching import Matching

WORKLOADS: tuple[type[Workload], ...] = (Matching, InList, Limit, Lookup)

__all__ = ["CACHED", "COLD", "OS_CACHED", "Cell", "Index", "Scope", "WORKLOADS", "Workload"]
