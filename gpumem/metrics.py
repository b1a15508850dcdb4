"""The names that Nsight Compute gives to what the lens counts, and how its sites add up to them.

One table: the lens fills it from its sites, `gpumem.profile` asks Nsight Compute for the same names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol


class Counted(Protocol):
    """What a site counts."""

    @property
    def kind(self) -> str:
        """load, store, atom, red, copy, bulk, ldsm or stsm."""

    @property
    def space(self) -> str:
        """global, shared, local or generic."""


class Metric(NamedTuple):
    """A metric: which sites it adds up, and which of their counters."""

    name: str
    kinds: tuple[str, ...]
    space: str
    counter: str
    what: str


_OPS = {
    "ld": ("load", "copy"),  # cp.async counts its global side as a load
    "st": ("store",),
    "atom": ("atom",),
    "red": ("red",),
}
_WORDS = {"ld": "loads", "st": "stores", "atom": "atomics with a result", "red": "atomics without a result"}
_SHARED = {"ld": ("load",), "st": ("store",), "atom": ("atom", "red"), "ldsm": ("ldsm",), "stsm": ("stsm",)}
_SHARED_WORDS = {
    "ld": "shared loads",
    "st": "shared stores",
    "atom": "shared atomics",
    "ldsm": "ldmatrix",
    "stsm": "stmatrix",
}

# Instructions of the machine code; the lens executes those of the PTX, which are others.
INSTRUCTIONS = "smsp__inst_executed.sum"
THREAD_INSTRUCTIONS = "smsp__thread_inst_executed.sum"
METRICS: tuple[Metric, ...] = (
    *(
        Metric(
            f"l1tex__t_{counter}_pipe_lsu_mem_global_op_{op}.sum",
            kinds,
            "global",
            counter,
            f"{counter} of global {_WORDS[op]}",
        )
        for op, kinds in _OPS.items()
        for counter in ("requests", "sectors")
    ),
    *(
        Metric(
            f"l1tex__t_{counter}_pipe_lsu_mem_local_op_{op}.sum",
            _OPS[op],
            "local",
            counter,
            f"{counter} of local {_WORDS[op]}",
        )
        for op in ("ld", "st")
        for counter in ("requests", "sectors")
    ),
    *(
        Metric(
            f"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum",
            kinds,
            "shared",
            "wavefronts",
            f"wavefronts of {_SHARED_WORDS[op]}",
        )
        for op, kinds in _SHARED.items()
    ),
    *(
        Metric(f"smsp__sass_inst_executed_op_{space}_{op}.sum", (kind,), space, "active", f"{space} {kind}s executed")
        for space in ("global", "shared")
        for op, kind in (("ld", "load"), ("st", "store"))
    ),
)


# Metrics that not all chips have (`ncu --query-metrics`): the first compute capability with them, and without.
SINCE = {"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_stsm.sum": 90}
UNTIL = {"dram__bytes_read.sum": 120, "dram__bytes_write.sum": 120}


def known_to(capability: int | None, names: Iterable[str]) -> list[str]:
    """Of metrics' names those that a chip of that compute capability has; None: all.

    >>> known_to(80, ["smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_stsm.sum", "dram__bytes_read.sum"])
    ['dram__bytes_read.sum']
    """
    if capability is None:
        return list(names)
    return [name for name in names if SINCE.get(name, 0) <= capability < UNTIL.get(name, 1000)]


def add_up(sites: Iterable[Counted]) -> dict[str, int]:
    """Every metric of the table, from sites."""
    rows = list(sites)
    return {
        metric.name: sum(getattr(site, metric.counter) for site in rows if adds(metric, site)) for metric in METRICS
    }


def adds(metric: Metric, site: Counted) -> bool:
    """Whether a site counts for a metric.

    A generic access is of the spaces that its lanes meant, which its counters tell; its executions are of none.
    """
    if site.kind not in metric.kinds:
        return False
    if metric.counter == "active":
        return site.space == metric.space
    return (site.space == "local") == (metric.space == "local")
