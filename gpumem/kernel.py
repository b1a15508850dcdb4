"""A kernel, from PTX or CUDA C, that the lens executes on the CPU."""

from __future__ import annotations

import math
import operator
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from .arguments import Layout, Parameter, lay_out
from .errors import LimitError, UsageError, unknown
from .listing import PTX
from .mix import mix_of
from .occupancy import launch_notes
from .pattern import Place, patterns_of
from .timing import ROUNDS
from .trace import COUNTS, Trace, findings_of, sites_of

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from .binding import Binding, Counted
    from .measured import Measured

WATCHES = {"shared": 1, "global": 2, "registers": 4}  # GM_WATCH_*
Dim = int | Sequence[int]
COPIES = (
    "Wavefronts of cp.async.ca are exact where source or destination is free of conflicts, else the least that the "
    "hardware takes."
)
_MEMORY = ("global", "generic")


class Kernel:
    """A kernel that can be executed without a GPU, and whose memory accesses are counted.

    source: PTX of any compiler (nvcc, NVRTC, Triton, Numba), or CUDA C, which is compiled by NVRTC (`pip install
    'gpumem[lens]'`) or by nvcc. name: the kernel, where the text has several; of CUDA C as it stands there ("tile",
    "tile<float, 32>"), of PTX as it stands there. arch: the chip that CUDA C is compiled for. file: what the text is
    called in reports, and beside which its includes are looked for. options: more for the compiler.

    Raises NotImplementedError for PTX that the lens cannot execute, ValueError for a kernel that is not there and for
    text that is no PTX, with the line; UsageError (a ValueError) for CUDA C that does not compile or where there is no
    compiler.

    >>> kernel = gpumem.Kernel(gpumem.examples.COPY)
    >>> kernel.name, [parameter.type for parameter in kernel.parameters]
    ('copy', ['u64', 'u64', 'u32'])
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        name: str | None = None,
        arch: str = "sm_90",
        *,
        file: str | None = None,
        options: Sequence[str] = (),
    ) -> None:
        from .compiler import Compiled, check_arch, is_ptx, to_ptx

        if isinstance(source, os.PathLike):
            file = file or os.fspath(source)
            source = Path(source).read_text()
        if not isinstance(source, str):
            raise TypeError(f"source is CUDA C or PTX as a str, or a path to it, not {type(source)}")
        check_arch(arch)
        self.file = file or ("kernel.ptx" if is_ptx(source) else "kernel.cu")
        self.arch = arch
        self.source = {} if is_ptx(source) else {Path(self.file).name: source}
        compiled = Compiled(source, None) if is_ptx(source) else to_ptx(source, name, arch, self.file, options)
        self.ptx = compiled.ptx
        if target := re.search(r"^\s*\.target\s+(\w+)", self.ptx, re.MULTILINE):
            self.arch = target[1]
        self._asked = compiled.name or entry_named(self.ptx, name)
        self._load()

    def _load(self) -> None:
        ptx_name = self.file if not self.source else f"{self.file} (PTX)"
        self._lens = _core._lens(self.ptx, ptx_name, self._asked)
        self._kernel = self._lens.describe()
        self.name: str = self._kernel["name"]
        self.parameters = tuple(Parameter(*row) for row in self._kernel["parameters"])
        self._bound: tuple[Binding, bytes, list[Counted | None]] | None = None
        self._why_not = ""  # there is no binding, though there are the tools

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: value
            for name, value in vars(self).items()
            if name not in ("_lens", "_kernel", "parameters", "_bound")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._load()

    def __repr__(self) -> str:
        return f"gpumem.Kernel({self.name}({', '.join(parameter.type for parameter in self.parameters)}), {self.arch})"

    @property
    def shared(self) -> int:
        """Bytes of shared memory that the kernel declares; a launch may add dynamic ones."""
        return int(self._kernel["static_shared"])

    @property
    def communicates(self) -> str:
        """Why blocks may depend on one another, or "": an atomic, or a load that sees what others write."""
        if self._kernel["communicates"]:
            return f"{self._kernel['communicates']} in line {self._kernel['communicates_line']} of the PTX"
        for opcode, _, line, _, kind, space, *_ in self._kernel["sites"]:
            if kind in ("atom", "red") and space in _MEMORY:
                return f"{opcode} in line {line} of the PTX"
        return ""

    @property
    def listens(self) -> str:
        """The first volatile load of global memory, or "": blocks talk by it where they write what it reads."""
        return f"{self._kernel['listens']} in line {self._kernel['listens_line']}" if self._kernel["listens"] else ""

    def trace(
        self,
        grid: Dim,
        block: Dim,
        /,
        *args: Any,
        shared: int = 0,
        opt_in: bool | None = None,
        cluster: Dim | None = None,
        sample: float | None = None,
        executor: Executor | None = None,
        watch: Iterable[str] = ("shared", "registers"),
        threads: int | None = None,
        instructions: int | None = None,
        memory: int | None = None,
        seconds: float | None = None,
        names: Sequence[str] = (),
        machine_code: bool | None = None,
    ) -> Trace:
        """Executes a launch on the CPU, and reports what every memory instruction cost and what would go wrong.

        grid, block, cluster: up to three lengths each, x first. args: as the kernel's parameters: NumPy arrays (or
        what shares its memory with NumPy by DLPack) are the device's buffers, which hold what the kernel wrote
        afterwards; numbers take the parameter's type; None is a null pointer, bytes a struct. A kernel reaches the
        whole memory that an array's base owns, and nothing else: wrong accesses are findings. shared: bytes of dynamic
        shared memory. opt_in: whether the program that launches it asks for more than 48 KiB
        (`cudaFuncSetAttribute`): without that CUDA refuses such a launch, and False does so here; None notes it.

        sample: the fraction of blocks to execute, spread over the grid; totals are scaled then. executor: spreads
        blocks over the workers of a `concurrent.futures` executor (of processes, or a Dask client or its); refused for
        kernels whose blocks may depend on one another. watch: what to look for besides wrong addresses, barriers and
        deadlocks, which always are found: "shared" (races and unwritten shared memory), "registers" (unwritten
        values), "global" (races between blocks; slow). threads: as many as gpumem uses by default; results do not
        depend on it. instructions, memory (bytes that the run itself takes), seconds: limits, by default 2**40
        warp instructions, 1 GiB and an hour. names: what reports call the arguments. machine_code: whether accesses are
        counted as ptxas assembles them (merged, dropped, one lane for its warp), which needs ptxas: True,
        False, or where they are and GPUMEM_MACHINE_CODE is not 0; `trace.counts` says what came of it.

        Raises ValueError for a launch that no GPU would take, TypeError and OverflowError for arguments that the
        parameters cannot take, LimitError (a RuntimeError) where a limit was reached, KeyboardInterrupt on Ctrl-C.
        A deadlock is a finding.

        >>> kernel = gpumem.Kernel(gpumem.examples.COPY)
        >>> x, out = np.arange(1000, dtype="f4"), np.zeros(1000, "f4")
        >>> trace = kernel.trace(8, 128, out, x, 1000)
        >>> bool((out == x).all()), trace.counters["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"]
        (True, 125)
        """
        layout = lay_out(self.parameters, self._kernel["parameter_bytes"], args, names)
        launch = Launch(
            dims("grid", grid),
            dims("block", block),
            (0, 0, 0) if cluster is None else dims("cluster", cluster),
            size("shared", shared, 1 << 32),
            (
                _core.get_num_threads() if threads is None else size("threads", threads, 1 << 16),
                watches(watch),
                None,
                size("instructions", instructions or 0, 1 << 63),
                size("memory", memory or 0, 1 << 63),
                float(seconds or 0.0),
            ),
            self._counted_rows(machine_code),
        )
        notes = self._launch_notes(launch, opt_in)
        units = launch.units(self._kernel["cluster"])
        first, step, count = 0, 1, units
        if sample is not None:
            step, count = sampled(units, sample, launch.grid[0])
        if executor is None:
            result = self._run(launch, layout, (first, step, 0 if count == units else count))
        else:
            if self.communicates:
                raise UsageError(
                    f"{self.name}: its blocks may depend on one another ({self.communicates}), so that they cannot be "
                    "spread over an executor: leave it out"
                )
            from .spread import spread

            result = spread(self, executor, launch, layout, step, count)
        trace = self._trace(launch, layout, result)
        return replace(trace, notes=(*trace.notes, *notes)) if notes else trace

    def launch(self, grid: Dim, block: Dim, /, *args: Any, shared: int = 0) -> None:
        """The same launch on a GPU: arrays are copied to the first CUDA device, and back when the kernel has ended.

        The arguments are those of `trace`; arrays are in host memory. To compare results, not for speed. Raises
        RuntimeError where the driver refuses the code or the launch, UsageError where there is no driver.
        """
        from .launch import job_of, run, write_back

        layout = lay_out(self.parameters, self._kernel["parameter_bytes"], args)
        shape, dynamic = (dims("grid", grid), dims("block", block)), size("shared", shared, 1 << 32)
        write_back(layout.buffers, run(job_of(self.ptx.encode() + b"\0", self.name, *shape, dynamic, layout)))

    def measure(
        self, grid: Dim, block: Dim, /, *args: Any, shared: int = 0, repeat: int = ROUNDS, **options: Any
    ) -> Measured:
        """The same launch in the lens and then, timed, on the first CUDA device: what binds it, and how long it takes.

        args, shared: as for `trace`; arrays are in host memory, and hold what the lens wrote afterwards. repeat: timed
        launches, each from a cold cache and with the arrays as they were given. options: those of `trace`, but for
        sample, executor and cluster. `gpumem.roofline` draws both of its points.

        Raises UsageError where there is no GPU, and for a launch in which the lens found anything wrong (an access
        outside of its arrays, a misaligned one, a deadlock, and what `watch` names): such a one is not given to the
        GPU. RuntimeError where the driver refuses the code or the launch, and where it does not end in a minute.

        >>> kernel = gpumem.Kernel(gpumem.examples.COPY)
        >>> x = np.ones(1 << 20, "f4")
        >>> taken = kernel.measure(8192, 128, np.zeros_like(x), x, x.size)                   # doctest: +SKIP
        >>> gpumem.roofline(taken).plot()                                                    # doctest: +SKIP
        """
        from .measured import measure

        refused = {"sample", "executor", "cluster"} & options.keys()
        if refused:
            raise UsageError(f"{', '.join(sorted(refused))}: for a trace; what is measured is launched whole, as it is")
        return measure(self, grid, block, args, shared=shared, repeat=repeat, **options)

    def _counted_rows(self, asked: bool | None) -> bytes:
        """How the lens is to count each site; b"" as they are written. Looked up once a kernel."""
        from . import binding

        if not binding.wanted(asked):
            return b""
        if self._bound is None and (asked or not self._why_not):
            try:
                bound = binding.bind(self.ptx, self.name)
            except UsageError as error:
                if asked:
                    raise
                self._why_not = str(error)
            else:
                self._bound = (bound, *binding.for_lens(bound, self._kernel["sites"]))
        return self._bound[1] if self._bound else b""

    def _launch_notes(self, launch: Launch, opt_in: bool | None) -> tuple[str, ...]:
        """What the launch needs beside itself. Raises UsageError where no GPU would take it."""
        known = self._bound[0] if self._bound and launch.counted else None
        arch, resources = (known.arch, known.resources) if known else (self.arch, None)
        return launch_notes(arch, math.prod(launch.block), self.shared, launch.shared, resources, opt_in)

    def _machine(self, launch: Launch) -> dict[str, Any]:
        """What a trace says of the machine code: how exact its counts are, what changed, what the launch takes."""
        from .binding import what_stands

        if self._bound is None or not launch.counted:
            return {"counts": what_stands(None, self._why_not)}
        bound = self._bound[0]
        fit = bound.fit(math.prod(launch.block), launch.shared)
        return {"counts": what_stands(bound), "changes": tuple(bound.changes), "fit": fit, "arch": bound.arch}

    def _run(self, launch: Launch, layout: Layout, units: tuple[int, int, int]) -> dict[str, Any]:
        """A run of some units of the grid; counters as an array, a row a site."""
        buffers = [(each.address, each.size, each.name, 0, each.read_only) for each in layout.buffers]
        result: dict[str, Any] = self._lens.run(
            launch.grid,
            launch.block,
            launch.cluster,
            launch.shared,
            bytes(layout.block),
            layout.pointers,
            buffers,
            units,
            launch.options,
            launch.counted,
        )
        result["counts"] = np.frombuffer(result["counts"], np.uint64).reshape(-1, len(COUNTS))
        result["ran"] = np.frombuffer(result["ran"], np.uint64).reshape(-1, 2)
        return result

    def _trace(self, launch: Launch, layout: Layout, result: dict[str, Any]) -> Trace:
        notes: tuple[str, ...] = ()
        if result["left_out"]:
            notes = (f"{result['left_out']:,} more accesses that were wrong are not listed.",)
        places = [
            Place(buffer.name, address, buffer.size)
            for buffer, address in zip(layout.buffers, result["addresses"], strict=True)
        ]
        trace = Trace(
            self.name,
            launch.grid,
            launch.block,
            launch.shared,
            self.arch,
            sites_of(
                self._kernel["sites"],
                result["counts"],
                self._bound[2] if self._bound and launch.counted else (),
                patterns_of(result["patterns"], places, launch.grid),
            ),
            result["instructions"],
            result["thread_instructions"],
            findings_of(result["findings"], [buffer.name for buffer in layout.buffers]),
            result["blocks"],
            result["blocks_total"],
            result["ended"],
            result["why"],
            notes=notes,
            source={**self.source, PTX: self.ptx},
            buffers={buffer.name: buffer.size for buffer in layout.buffers},
            mix=mix_of(self._kernel["stretches"], result["ran"].tolist()),
            read_only=tuple(buffer.name for buffer in layout.buffers if buffer.read_only),
        )
        trace = replace(trace, **self._machine(launch))
        if any(site.conflicts and site.opcode.startswith("cp.async.ca") for site in trace.sites):
            trace = replace(trace, notes=(*trace.notes, COPIES))
        if trace.ended == "limit":
            raise LimitError(f"{self.name}: stopped: {trace.why}", trace)
        return trace


class Launch:
    """A launch without its arguments; can be pickled."""

    def __init__(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        cluster: tuple[int, int, int],
        shared: int,
        options: tuple[int, int, str | None, int, int, float],
        counted: bytes = b"",
    ) -> None:
        self.grid, self.block, self.cluster, self.shared, self.options = grid, block, cluster, shared, options
        self.counted = counted

    def units(self, declared: Sequence[int]) -> int:
        """Clusters of the grid; blocks, where the launch has none."""
        each = self.cluster if any(self.cluster) else declared if any(declared) else (1, 1, 1)
        return max(math.prod(self.grid) // math.prod(max(n, 1) for n in each), 1)


def dims(what: str, value: Dim) -> tuple[int, int, int]:
    """Three lengths from one to three. The limits of a GPU are checked by the lens.

    >>> dims("grid", 7), dims("block", (32, 8))
    ((7, 1, 1), (32, 8, 1))
    """
    try:
        given = (value,) if isinstance(value, (int, np.integer)) else tuple(value)
    except TypeError:
        raise TypeError(f"{what} {value!r}: an integer, or one to three of them") from None
    if not 1 <= len(given) <= 3:
        raise UsageError(f"{what} {value!r}: one to three lengths")
    lengths = [size(what, length, 1 << 32) for length in given]
    x, y, z = [*lengths, 1, 1][:3]
    return x, y, z


def size(what: str, value: Any, limit: int) -> int:
    """A number from 0 to below a limit. Raises TypeError and UsageError, naming it."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} {value!r}: an integer") from None
    if not 0 <= number < limit:
        raise UsageError(f"{what} {number}: from 0 to {limit - 1}")
    return number


def watches(names: Iterable[str]) -> int:
    """The bits of what is to be looked for."""
    bits = 0
    for name in [names] if isinstance(names, str) else names:
        if name not in WATCHES:
            raise unknown("hazard to watch", name, WATCHES)
        bits |= WATCHES[name]
    return bits


def sampled(units: int, fraction: float, width: int) -> tuple[int, int]:
    """Step and number of the units that make a fraction of a grid, spread over it.

    The step shares no factor with the grid's width where that can be, so that not one column of blocks stands for all.

    >>> sampled(1024, 0.1, 32)
    (9, 102)
    """
    if not 0 < fraction <= 1:
        raise UsageError(f"sample {fraction}: a fraction of the blocks, more than 0 and at most 1")
    count = max(1, round(units * fraction))
    step = max(1, units // count)
    return next((less for less in range(step, step // 2, -1) if math.gcd(less, width) == 1), step), count


def entry_named(ptx: str, name: str | None) -> str | None:
    """The entry that is meant by a name: itself, or the only one that C++ made of it."""
    entries: list[str] = re.findall(r"\.entry\s+([\w$]+)", ptx)
    if name is None or name in entries:
        return name
    mangled = [entry for entry in entries if f"{len(name)}{name}" in entry]
    if len(mangled) == 1:
        return mangled[0]
    if entries:
        raise unknown("kernel", name, entries)
    return name
