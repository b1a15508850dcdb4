"""`gpumem sweep`, `gpumem plot` and `gpumem roofline`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .errors import UsageError

Command = Callable[[str, str, str], argparse.ArgumentParser]

SWEEP = (
    "gpumem sweep copy --sizes 4K:1G --plot copy.svg -o copy.json\n"
    "gpumem sweep transpose --sizes 1K:256M --dtype uint8 --peers numpy\n"
    "gpumem sweep read --strides 1:64 --device cuda --plot stride.png\n"
    "gpumem sweep read --offsets 0:33 --device sim\n"
    "gpumem sweep copy --over width --device cuda"
)
PLOT = (
    "gpumem plot copy.json\n"
    "gpumem plot copy.json -o curves.png\n"
    "gpumem plot notebooks/data/h200/ladder-*.json --to figures --format png\n"
    "gpumem plot before.json after.json --to ."
)
ROOFLINE = (
    "gpumem roofline add.cu --grid 4096 --block 256 --arg c:f32[1048576] --arg a:f32[1048576] --arg b:f32[1048576]\n"
    "gpumem roofline --stage transpose/padded --shape 1024,1024 --on H200 --plot roof.svg\n"
    "gpumem roofline add.ptx --grid 4096 --block 256 --arg c:f32[1048576] --arg a:f32[1048576] --arg b:f32[1048576] "
    "--on A100\n"
    "gpumem roofline --devices"
)
OVER = {"sizes": "size", "strides": "stride", "offsets": "offset", "widths": "width", "threads": "threads"}


def register(command: Command, measuring: Callable[[Any], None], launched: Callable[[Any], None]) -> None:
    """Adds the commands; `measuring` and `launched` add the options of a measurement and of a launch."""
    made = command("sweep", "the bandwidth of every stage against size, stride, offset, width or threads", SWEEP)
    made.add_argument("lesson", nargs="?", default="copy", help="a lesson, or transpose, copy (default), sum")
    made.add_argument("--over", metavar="AXIS", help="size, stride, offset, width, flight or threads, at usual values")
    made.add_argument("--sizes", metavar="RANGE", help="bytes of the array: 4K:1G doubles, 4K:1G:x4, or 4K,1M,1G")
    made.add_argument("--strides", metavar="RANGE", help="items from one to the next: 1:64, or 1,2,4,8")
    made.add_argument("--offsets", metavar="RANGE", help="items before the first: 0:33")
    made.add_argument("--widths", metavar="LIST", help="bytes of an item: 1,2,4,8,16")
    made.add_argument("--threads", metavar="RANGE", help="threads of the CPU: 1:16")
    made.add_argument("--stages", default="all", metavar="A,B", help="these only (all)")
    made.add_argument("--shape", metavar="ROWSxCOLS", help="of the array, where the axis leaves it free")
    made.add_argument("--dtype", default="float32", help="of the items (float32)")
    made.add_argument("--jobs", type=int, metavar="N", help="processes that count (device sim)")
    measuring(made)

    made = command("plot", "draw sweeps, ladders, benchmarks and traces from their files", PLOT)
    made.add_argument("files", nargs="+", type=Path, metavar="FILE", help="JSON that gpumem wrote")
    made.add_argument("--output", "-o", type=Path, metavar="FILE", help="the figure of one file: .svg, .png or .pdf")
    made.add_argument("--to", type=Path, metavar="DIR", help="where to (beside each file); made where it is not there")
    made.add_argument("--format", metavar="EXT", help="svg (default), png, pdf")

    made = command("roofline", "operations a byte, what binds a kernel on a device, and how fast it is here", ROOFLINE)
    launched(made)
    made.add_argument(
        "--on", metavar="NAME", help="a device such as A100 (default: this machine's GPU, which also times the launch)"
    )
    made.add_argument("--repeat", type=int, metavar="N", help="timed launches (7)")
    made.add_argument(
        "--watch", metavar="A,B", help="hazards that keep a launch from the GPU: shared, registers (both), or none"
    )
    made.add_argument("--devices", action="store_true", help="print the device table with its sources")
    made.add_argument("--sample", type=float, metavar="PART", help="execute this fraction of the blocks")
    made.add_argument("--plot", type=Path, metavar="FILE", help="also draw it (.png .svg .pdf; needs matplotlib)")
    made.set_defaults(save=[], html=None, threads=None, seconds=None, output=None, arch=None)


def axis_of(options: argparse.Namespace) -> tuple[str, str | None]:
    """The axis and its values. Raises UsageError where two are named."""
    given = {OVER[name]: getattr(options, name) for name in OVER if getattr(options, name)}
    if len(given) > 1 or (given and options.over not in (None, *given)):
        raise UsageError(f"one axis at a time: {', '.join(dict.fromkeys([*given, *filter(None, [options.over])]))}")
    for over, values in given.items():
        return over, values
    return options.over or "size", None


def run_sweep(options: argparse.Namespace) -> None:
    """A sweep; with --output it can be stopped, and goes on where it was."""
    from concurrent.futures import ProcessPoolExecutor
    from contextlib import nullcontext

    from .cli import check_files, parse_peers, parse_shape, put, write_plot
    from .sweep import sweep
    from .timing import ROUNDS

    check_files(options)
    over, values = axis_of(options)
    if options.jobs is not None and options.jobs < 1:
        raise UsageError(f"--jobs {options.jobs}: at least 1")
    pool = ProcessPoolExecutor(options.jobs) if options.jobs else nullcontext()
    with pool as executor:
        result = sweep(
            options.lesson,
            over,
            values,
            stages=options.stages if options.stages == "all" else options.stages.split(","),
            shape=parse_shape(options.shape),
            dtype=options.dtype,
            device=options.device,
            repeat=ROUNDS if options.repeat is None else options.repeat,
            peers=parse_peers(options.peers, []),
            output=options.output,
            executor=executor,
            progress=not options.quiet,
        )
    write_plot(result, options)
    put(result, options, result.to_json())


def run_plot(options: argparse.Namespace) -> None:
    """Draws files. Nothing is drawn unless all can be written."""
    from .plot import check_format, plot_file

    if options.output and (options.to or options.format):
        raise UsageError("--output: it says where to and in which format; leave --to and --format out")
    if options.output and len(options.files) > 1:
        raise UsageError(f"--output: one file, and {len(options.files)} are to be drawn: --to DIR takes them all")
    pairs = []
    for path in options.files:
        to = options.output or (options.to or path.parent) / f"{path.stem}.{options.format or 'svg'}"
        folder = to.absolute().parent
        to_be_made = options.to and not folder.exists() and folder.parent.is_dir()
        if not (folder.is_dir() or to_be_made):
            raise UsageError(f"cannot write {to}: there is no such directory")
        if to.suffix != ".svg":  # pictures of traces need no matplotlib
            check_format(to)
        pairs.append((path, to))
    if len({to for _, to in pairs}) < len(pairs):
        raise UsageError("two of the files have the same name: draw them one at a time")
    if options.to:
        options.to.mkdir(exist_ok=True)
    for path, to in pairs:
        plot_file(path, to)
        print(to)


def run_roofline(options: argparse.Namespace) -> None:
    """A kernel or a stage under the roof of a device; timed, where that is this machine's GPU."""
    from .cli import check_files, put, write_plot
    from .devices import device
    from .roofline import DeviceTable, roofline
    from .trace_command import measured
    from .trace_command import run as traced

    if options.devices:
        table = DeviceTable()
        put(table, options, table.to_json())
        return
    check_files(options)
    where = device(options.on)  # before anything is executed
    read = options.file and options.file.suffix == ".json"
    if options.on is None and not read:
        options.arch, options.watch = options.arch or f"sm_{where.capability}", options.watch or "shared,registers"
        result = roofline(measured(options), device=where)
    else:
        options.arch, options.watch = options.arch or "sm_90", options.watch or "none"
        result = roofline(traced(options), device=where)
    write_plot(result, options)
    put(result, options, result.to_json())
