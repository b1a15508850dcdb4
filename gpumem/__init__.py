"""Memory-bound array work at the speed of a copy, and why.

Operations on NumPy arrays and on anything that speaks DLPack: `transpose`, `matrix_transpose`, `permute_dims`, `copy`,
`sum`, `to_soa`, `to_aos`.
The ladder shows what each optimisation is worth on this machine: `stages`, `run`, `ladder`, `bench`,
`info`.
"""

from .errors import LimitError, UsageError, WrongResultError, end_command

try:
    from ._core import Array, copy, get_num_threads, matrix_transpose, permute_dims, set_num_threads, sum, transpose
except ImportError as error:
    end_command(error)
    raise
from . import examples as examples
from .advice import Advice
from .bench import bench
from .counted import TracedLadder, trace_ladder
from .info import Info, info
from .kernel import Kernel
from .ladder import Ladder, ladder
from .lessons import run
from .measured import Measured
from .ops import to_aos, to_soa
from .profile import profile
from .result import Result
from .roofline import Roofline, roofline
from .simulate import trace_stage
from .stage_table import Stage, stages
from .sweep import sweep
from .sweep_result import Sweep
from .trace import Trace

__all__ = [
    "Advice",
    "Array",
    "Info",
    "Kernel",
    "Ladder",
    "LimitError",
    "Measured",
    "Result",
    "Roofline",
    "Stage",
    "Sweep",
    "Trace",
    "TracedLadder",
    "UsageError",
    "WrongResultError",
    "bench",
    "copy",
    "get_num_threads",
    "info",
    "ladder",
    "matrix_transpose",
    "permute_dims",
    "profile",
    "roofline",
    "run",
    "set_num_threads",
    "stages",
    "sum",
    "sweep",
    "to_aos",
    "to_soa",
    "trace_ladder",
    "trace_stage",
    "transpose",
]


def __getattr__(name: str) -> str:
    # Looked up when asked for: reading package metadata would double the time of the import.
    if name == "__version__":
        from .machine import version

        return version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
