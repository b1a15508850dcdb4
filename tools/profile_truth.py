#!/usr/bin/env python3
"""Profiles every measured kernel and every rung of the ladder with Nsight Compute, and compares the lens with it.

usage: tools/profile_truth.py count FOLDER [KIND...]   with a GPU, ncu and ptxas: FOLDER/KIND.json, tile.ncu-rep
       tools/profile_truth.py table FOLDER [OUT]       anywhere: profiles.json and profiles.md of what was counted
                                                       (notebooks/data/h200/profiles)
       tools/profile_truth.py copies FOLDER            on a GPU: wavefronts of cp.async with scattered addresses

Few metrics, one process for many launches: about two minutes. The launches are those of the tests.
"""

import json
import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import test_truth_counters as truth_tests  # noqa: E402
import truth  # noqa: E402

import gpumem  # noqa: E402
from gpumem import ncu, ptxas  # noqa: E402
from gpumem.arguments import lay_out  # noqa: E402
from gpumem.device_counters import ONLY_RANGES, RANGE, by_rung  # noqa: E402
from gpumem.launch import job_of, run  # noqa: E402
from gpumem.metrics import INSTRUCTIONS, METRICS  # noqa: E402
from gpumem.profile import COUNTED, counted, trace_of  # noqa: E402
from gpumem.sass import only_entry  # noqa: E402

LADDERS = json.loads((ROOT / "tests" / "data" / "ncu" / "ladders.json").read_text())
TILE = ("17_classic_transpose_tile", "k17_w32", (2, 2), (32, 8))
FRONT = ("triton_add", "triton_softmax", "numba_copy", "numba_sum")


class Launch(NamedTuple):
    """A measured launch: its name, its kernel, and what it takes."""

    name: str
    kernel: gpumem.Kernel
    grid: Any
    block: Any
    arguments: list[Any]
    shared: int = 0

    def job(self) -> Any:
        """For the driver: machine code as ptxas makes it, not as the driver would."""
        layout = lay_out(self.kernel.parameters, self.kernel._kernel["parameter_bytes"], self.arguments)
        code = ptxas.assemble(only_entry(self.kernel.ptx, self.kernel.name), self.kernel.arch).cubin
        shape = gpumem.kernel.dims("grid", self.grid), gpumem.kernel.dims("block", self.block)
        return job_of(code, self.kernel.name, *shape, self.shared, layout)

    def trace(self) -> gpumem.Trace:
        """In the lens."""
        return self.kernel.trace(self.grid, self.block, *self.arguments, shared=self.shared, machine_code=True)


def launches() -> Iterator[Launch]:
    """The launches of cases.json, of lesson_kernels.json, and of other compilers' kernels."""
    for row in truth_tests.CASES:
        kinds = row["params"][len(row["buffers"]) :]
        arguments = [truth.bytes_of(buffer) for buffer in row["buffers"]]
        arguments += [truth.SCALARS[kind](value) for kind, value in zip(kinds, row["scalars"], strict=True)]
        kernel = truth.kernel(row["source"].removesuffix(".cu"), row["kernel"])
        yield Launch(truth_tests.case_id(row), kernel, row["grid"], row["block"], arguments, row["dynamic_shared"])
    index = truth_tests.random_index()
    for i, (name, grid, block, arguments) in enumerate(truth_tests.LAUNCHES):
        n = truth_tests.N * (33 if "strided" in name and "red_" not in name else 4)
        held = {"a": np.zeros(n, "f4"), "b": np.zeros(2 * truth_tests.N, "f4"), "ix": index}
        kernel = truth.kernel("lesson_kernels", name)
        label = truth_tests.LESSONS[i]["kernel"].removeprefix("void ").split("(")[0]
        extra = "-".join(str(a) for a in arguments[3:] if isinstance(a, int))
        yield Launch(f"{label}{'-' + extra if extra else ''}", kernel, grid, block, [held.get(a, a) for a in arguments])
    for name in FRONT:
        row = truth_tests.front(name)
        arguments, _ = truth_tests.front_arguments(row["args"])
        kernel = gpumem.Kernel((truth.TRUTH / "front" / f"{name}.ptx").read_text())
        yield Launch(name, kernel, row["grid"], row["block"], arguments, int(row["dynamic_shared"]))


def rung_name(row: dict[str, Any]) -> str:
    return " ".join([f"{row['lesson']}/{row['stage']}", *map(str, row["options"].values()), row["dtype"]])


# --- on the GPU ------------------------------------------------------------------------------------------------------


def child_truth() -> None:
    for launch in launches():
        run(launch.job(), profiled=True)


def child_ladder() -> None:
    from gpumem.device_ladder import Lesson

    wanted = {rung_name(row): i for i, row in enumerate(LADDERS["rows"])}
    for lesson, dtype in dict.fromkeys((row["lesson"], row["dtype"]) for row in LADDERS["rows"]):
        job = Lesson(lesson, tuple(LADDERS["shapes"].get(lesson, LADDERS["shapes"][""])), dtype, None)
        for entry in job.entries(gpumem.stages(lesson, "cuda")):
            stage, *options = entry.name.split(" ")
            number = wanted.get(" ".join([f"{lesson}/{stage}", *options, dtype]))
            if number is None:
                continue
            entry.once()
            job.torch.cuda.synchronize()
            job.torch.cuda.nvtx.range_push(f"{RANGE}{number}")
            job.torch.cuda.profiler.start()
            entry.once()
            job.torch.cuda.synchronize()
            job.torch.cuda.profiler.stop()
            job.torch.cuda.nvtx.range_pop()


def child_tile() -> None:
    source, name, grid, block = TILE
    x = np.arange(4096, dtype="f4")
    run(Launch(name, truth.kernel(source, name), grid, block, [x, np.zeros_like(x), 64]).job(), profiled=True)


def child_copies() -> None:
    for pattern in copies():
        run(copy_job(pattern), profiled=True)


CHILDREN: dict[str, Callable[[], None]] = {
    "truth": child_truth, "ladder": child_ladder, "tile": child_tile, "copies": child_copies,
}  # fmt: skip


def command(kind: str) -> list[str]:
    return [sys.executable, str(Path(__file__).resolve()), "child", kind]


def plain(found: list[ncu.Launch]) -> list[dict[str, Any]]:
    """Launches as data, what is zero left out."""
    return [
        {
            "kernel": each.kernel,
            "grid": each.grid,
            "block": each.block,
            "label": each.label,
            "counters": {name: value for name, value in each.counters.items() if value},
        }
        for each in found
    ]


def count(folder: Path, kinds: list[str]) -> None:
    """What Nsight Compute counts, into a file a kind; of `tile` a report with its source page too."""
    for kind in kinds or ("tile", "truth", "ladder"):
        start = time.monotonic()
        if kind == "tile":
            found, _ = counted(command(kind), folder / "tile")
        else:
            wanted = (*COUNTED, ncu.IDEAL_WAVEFRONTS)
            found = ncu.collect(command(kind), metrics=wanted, options=ONLY_RANGES)
        version = ncu._run([str(ncu.find()), "--version"], None).stdout
        (folder / f"{kind}.json").write_text(json.dumps({"ncu": version, "launches": plain(found)}))
        print(f"{kind}: {len(found)} launches in {time.monotonic() - start:.0f} s", flush=True)


# --- cp.async --------------------------------------------------------------------------------------------------------

# A lane copies from and to where its row of a table says; -1 copies nothing.
COPY = """.version 8.0
.target sm_90
.address_size 64
.visible .entry copy{n}(.param .u64 table, .param .u64 data) {{
    .reg .b64 %a<4>; .reg .b32 %r<6>; .reg .pred %p;
    .shared .align 128 .b8 tile[32768];
    ld.param.u64 %a1, [table]; ld.param.u64 %a2, [data];
    mov.u32 %r1, %tid.x; mul.wide.u32 %a3, %r1, 8; add.u64 %a1, %a1, %a3;
    ld.global.u32 %r2, [%a1]; ld.global.u32 %r3, [%a1+4];
    setp.ne.s32 %p, %r3, -1;
    cvt.u64.u32 %a3, %r2; add.u64 %a2, %a2, %a3; mov.u32 %r4, tile; add.u32 %r3, %r3, %r4;
    @%p cp.async.ca.shared.global [%r3], [%a2], {n};
    cp.async.commit_group; cp.async.wait_group 0;
    ret;
}}
"""


def copies() -> list[dict[str, Any]]:
    """Patterns of 32 sources and destinations, in bytes."""
    draw = random.Random(5)
    made = []

    def add(name: str, width: int, source: Any, to: Any, active: Any = lambda _: True) -> None:
        lanes = range(32)
        rows = [(width * source(i), width * to(i) if active(i) else -1) for i in lanes]
        made.append({"name": name, "bytes": width, "source": [r[0] for r in rows], "to": [r[1] for r in rows]})

    for width in (4, 8, 16):
        group = min(32, 128 // width)

        def anywhere(i: int, width: int = width) -> int:
            return draw.randrange(32768 // width)

        def near(i: int, width: int = width) -> int:
            return draw.randrange(512 // width)

        def linear(i: int) -> int:
            return i

        for i in range(5):
            add(f"both random {i}", width, anywhere, anywhere)
            add(f"both near {i}", width, near, near)
            mask = draw.getrandbits(32)
            add(f"both random, some lanes {i}", width, anywhere, anywhere, lambda lane, m=mask: m >> lane & 1)
            add(f"from near {i}", width, near, linear)
        add("from one place", width, lambda _: 0, linear)
        add("from pairs", width, lambda i: i // 2, linear)
        add("from quarters", width, lambda i: i // 8, linear)
        add("from every second lane's", width, lambda i: i & ~2, linear)
        add("from halves twice", width, lambda i: i % 16, linear)
        add("from stride of a line", width, lambda i, g=group: i * g, linear)
        add("from stride 2", width, lambda i: 2 * i, linear)
        add("from reverse", width, lambda i: 31 - i, linear)
        # a conflict of the sources in the first half, of the destinations in the second, and in the same half
        add("halves apart", width, lambda i, g=group: i * g if i < 16 else i, lambda i, g=group: i if i < 16 else i * g)
        add("halves alike", width, lambda i, g=group: i * g if i < 16 else i, lambda i, g=group: i * g if i < 16 else i)
        add("one after the other", width, lambda i, g=group: (i % 4) * g + i // 4, lambda i, g=group: i * g)
    return made


def copy_job(pattern: dict[str, Any]) -> Any:
    table = np.array([pattern["source"], pattern["to"]], np.int64).T.astype(np.int32).copy()
    kernel = gpumem.Kernel(COPY.format(n=pattern["bytes"]))
    return Launch("copy", kernel, 1, 32, [table, np.zeros(1 << 16, np.uint8)]).job()


def count_copies(folder: Path) -> None:
    """Every metric of ldgsts that speaks of wavefronts or conflicts, for each pattern, into copies.json."""
    known = ncu._run([str(ncu.find()), "--query-metrics", "--chips", "gh100"], None).stdout
    names = [line.split()[0] for line in known.splitlines() if "ldgsts" in line]
    (folder / "ldgsts.txt").write_text("\n".join(line for line in known.splitlines() if "ldgsts" in line))
    wanted = [f"{name}.sum" for name in names if "wavefront" in name or "conflict" in name]
    wanted += ["memory_l1_wavefronts_shared", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"]
    ncu.run_under(command("copies"), folder / "copies", ["--metrics", ",".join(wanted), *ONLY_RANGES])
    text = ncu.page(folder / "copies", "raw")
    (folder / "copies.ncu-rep").unlink()
    wanted = [name for name in wanted if name in text]
    found = ncu.parse_raw(text, wanted)
    rows = [{**pattern, "counters": dict(each.counters)} for pattern, each in zip(copies(), found, strict=True)]
    (folder / "copies.json").write_text(json.dumps(rows))
    print(f"copies: {len(rows)} patterns, {wanted}")


# --- the table -------------------------------------------------------------------------------------------------------

SHORT = {metric.name: metric.what for metric in METRICS}


def compared(name: str, group: str, trace: gpumem.Trace, profile: gpumem.Trace) -> dict[str, Any]:
    """One row: what both count, and where they differ."""
    comparison = trace.compare(profile)
    ours, theirs = trace.counters, profile.counters
    changed = {key: list(pair) for key, pair in comparison.changed.items()}
    return {
        "name": name,
        "group": group,
        "kernel": trace.kernel,
        "grid": list(trace.grid),
        "block": list(trace.block),
        "counts": trace.counts,
        "equal": comparison.equal,
        "changed": changed,
        "counters": {key: ours[key] for key in ours if ours[key] and ours[key] == theirs.get(key)},
        "instructions": theirs.get(INSTRUCTIONS, 0),
    }


def as_launch(row: dict[str, Any]) -> ncu.Launch:
    values = {name: row["counters"].get(name, 0) for name in COUNTED}
    return ncu.Launch(row["kernel"], tuple(row["grid"]), tuple(row["block"]), row["label"], values)


def version_of(text: str) -> str:
    """Of what `ncu --version` prints."""
    found = re.search(r"Version (\S+)", text)
    return found[1] if found else text.strip()


def table(folder: Path, out: Path) -> None:
    """The comparison of every launch, as data and as a table."""
    data = json.loads((folder / "truth.json").read_text())
    ladder = json.loads((folder / "ladder.json").read_text())["launches"]
    rows = []
    for launch, row in zip(launches(), data["launches"], strict=True):
        profile = trace_of([as_launch(row)], [], launch.shared, launch.kernel.arch, {})
        rows.append(compared(launch.name, "measured", launch.trace(), profile))
    names = [rung_name(row) for row in LADDERS["rows"]]
    found = by_rung([as_launch(row) for row in ladder], names)
    for row, name in zip(LADDERS["rows"], names, strict=True):
        if name in found:
            shape = tuple(LADDERS["shapes"].get(row["lesson"], LADDERS["shapes"][""]))
            how = {"machine_code": True, "seconds": 60, **row["options"]}
            trace = gpumem.trace_stage(row["lesson"], row["stage"], shape, row["dtype"], **how)
            rows.append(compared(name, "ladder", trace, trace_of(found[name], [], 0, "sm_90", {})))
    head = {"schema": "gpumem.profiles/1", "device": "NVIDIA H200", "ncu": version_of(data["ncu"])}
    lines = ",\n".join(json.dumps(row) for row in rows)
    (out / "profiles.json").write_text(f'{json.dumps(head)[:-1]}, "rows": [\n{lines}\n]}}\n')
    (out / "profiles.md").write_text(page(head, rows))
    same = sum(row["equal"] for row in rows)
    print(f"{len(rows)} launches, {same} with every counter equal, {len(rows) - same} not")


def page(head: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """The table as Markdown."""
    same = sum(row["equal"] for row in rows)
    exact = sum(row["counts"] == "exact" for row in rows)
    said = [
        "# The lens beside Nsight Compute",
        "",
        f"Every measured launch and every rung of the ladder, executed by the lens on a CPU and counted by Nsight "
        f"Compute {head['ncu']} on an {head['device']}: {len(rows)} launches, {exact} bound exactly to machine code, "
        f"{same} with all of {len(METRICS)} metrics equal. Written by tools/profile_truth.py; profiles.json has every "
        "number.",
        "",
        "| launch | grid | block | metrics above zero | equal | differs (lens, hardware) |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        differs = "; ".join(f"{SHORT.get(key, key)}: {a:,}, {b:,}" for key, (a, b) in row["changed"].items())
        shape = (" x ".join(map(str, row[key])) for key in ("grid", "block"))
        count = len(row["counters"]) + len(row["changed"])
        said.append(f"| {row['name']} | {' | '.join(shape)} | {count} | {len(row['counters'])} | {differs} |")
    return "\n".join(said) + "\n"


def main() -> None:
    what, *rest = sys.argv[1:] or ["help"]
    if what == "child":
        CHILDREN[rest[0]]()
    elif what == "count":
        count(Path(rest[0]), rest[1:])
    elif what == "copies":
        count_copies(Path(rest[0]))
    elif what == "table":
        table(Path(rest[0]), Path(rest[-1]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
