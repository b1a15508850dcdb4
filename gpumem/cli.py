"""The command line: data to stdout, progress to stderr, one line for an error.

Exit status: 0 done; 1 a result was wrong; 2 the command was wrong or cannot be done here; 3 `advise --fail-on` found
what it was to fail on; 130 interrupted.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from . import advise_command, compare_command, exercise_command, explain_command, figure_commands
from .errors import UsageError, WrongResultError
from .table import Shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WRONG, USAGE, INTERRUPTED = 1, 2, 130


class Measured(Protocol):
    """A result that can be written to files."""

    def to_json(self) -> str:
        """The result as JSON."""

    def plot(self) -> Axes:
        """The result as a plot."""


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the usage in front of it; options have their whole names."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Ends the program with status 2."""
        self.exit(USAGE, f"{self.prog}: {message}\n")


def parser() -> Parser:
    """The whole command line."""
    top = Parser(
        prog="gpumem",
        description="Memory-bound array work at the speed of a copy, and why.",
        epilog="'gpumem COMMAND --help' shows a command's examples.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="store_true", help="print the version")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)

    def command(name: str, summary: str, examples: str) -> Parser:
        made = commands.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            epilog="examples:\n" + "\n".join(f"  {line}" for line in examples.splitlines()),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        made.add_argument("--json", action="store_true", help="print JSON instead of a table")
        return made

    def measuring(made: Parser) -> None:
        made.add_argument("--device", metavar="NAME", help="where to run: cpu (default) or cuda; of a ladder also sim")
        made.add_argument("--repeat", type=int, metavar="N", help="rounds in which all take turns (7)")
        made.add_argument(
            "--peers",
            metavar="A,B",
            help="compare with these: numpy, hptt, openblas, torch (cuda: torch, cupy, cublas, cutensor); or none",
        )
        made.add_argument("--plot", type=Path, metavar="FILE", help="also draw it (.png .svg .pdf; needs matplotlib)")
        made.add_argument("--output", "-o", type=Path, metavar="FILE", help="also write JSON with the raw samples")
        made.add_argument("--quiet", "-q", action="store_true", help="no progress on stderr")

    def launched(made: Parser) -> None:
        made.add_argument("file", nargs="?", type=Path, metavar="FILE", help="CUDA C (.cu) or PTX")
        made.add_argument("--kernel", metavar="NAME", help="where the file has several")
        made.add_argument("--grid", metavar="X,Y,Z", help="blocks")
        made.add_argument("--block", metavar="X,Y,Z", help="threads of a block")
        made.add_argument("--cluster", metavar="X,Y,Z", help="blocks of a cluster")
        made.add_argument("--shared", type=int, default=0, metavar="BYTES", help="dynamic shared memory")
        made.add_argument(
            "--arg",
            action="append",
            default=[],
            metavar="ARG",
            help="an argument: name:type[shape]=random, zeros, ones, arange, FILE.npy or a number; a number; null",
        )
        made.add_argument("--arch", default="sm_90", metavar="SM", help="the chip to compile for (sm_90)")
        made.add_argument("--option", action="append", default=[], metavar="OPT", help="an option for the compiler")
        made.add_argument("--stage", metavar="LESSON/STAGE", help="a stage of the ladder instead of a file")
        made.add_argument("--shape", metavar="ROWSxCOLS", help="of the stage's array, such as 1024x1024")
        made.add_argument("--dtype", default="float32", help="of the stage's array (float32)")

    command("info", "what gpumem found on this machine and chose", "gpumem info\ngpumem info --json | jq .isa")

    stages = command("stages", "the stage table", "gpumem stages\ngpumem stages transpose --device cpu --json")
    stages.add_argument("lesson", nargs="?", help="one lesson only")
    stages.add_argument("--device", metavar="NAME", help="stages for this device only")

    ladder = command(
        "ladder",
        "verify and time every stage of a lesson, next to a copy of the same bytes",
        "gpumem ladder\n"
        "gpumem ladder transpose --shape 4095x4097 --dtype uint8\n"
        "gpumem ladder reduce --dtype float16 --plot reduce.png\n"
        "GPUMEM_NUM_THREADS=1 gpumem ladder copy --json\n"
        "gpumem ladder banks --device cuda --counters\n"
        "gpumem ladder banks --device sim",
    )
    ladder.add_argument(
        "lesson", nargs="?", default="transpose", help="transpose (default), copy or reduce; cuda: any lesson"
    )
    ladder.add_argument("--shape", metavar="ROWSxCOLS", help="lengths of the axes, such as 8192x8192 or 1000000,3")
    ladder.add_argument("--dtype", default="float32", help="any type of fixed size: float32 (default), uint8, ...")
    ladder.add_argument(
        "--counters",
        action="store_true",
        help="also sectors per request and bank conflicts, by Nsight Compute (cuda; needs ncu)",
    )
    measuring(ladder)

    bench = command(
        "bench",
        "the benchmark: the shapes of the field, as fractions of a copy, next to peers",
        "gpumem bench transpose --quick\n"
        "gpumem bench transpose --filter ttc57 --rows -o ttc57.json\n"
        "gpumem bench transpose --filter '2d*8192x8192*' --filter tiny\n"
        "gpumem bench sum --peers numpy --json > sum.json\n"
        "gpumem bench transpose --device cuda --peers torch,cublas -o h200.json\n"
        "gpumem bench --from ttc57.json --rows",
    )
    bench.add_argument("op", nargs="?", help="transpose (default), copy or sum")
    bench.add_argument("--filter", action="append", default=[], metavar="TEXT", help="rows that contain or match this")
    bench.add_argument("--quick", action="store_true", help="fewer rows, 5 rounds")
    bench.add_argument("--rows", action="store_true", help="print every row, not only the groups")
    bench.add_argument("--list", action="store_true", help="print the names of the rows, and measure nothing")
    bench.add_argument("--from", type=Path, dest="recorded", metavar="FILE", help="show a recorded result instead")
    measuring(bench)

    trace = command(
        "trace",
        "execute a kernel on the CPU and count what its memory instructions cost, line by line",
        "gpumem trace tile.cu --kernel tile --grid 32,32 --block 32,8 "
        "--arg out:f32[1024,1024] --arg in:f32[1024,1024]=random --arg 1024\n"
        "gpumem trace triton.ptx --grid 128 --block 128 --shared 16 --arg x:f32[128000]=x.npy --arg out:f32[128000] "
        "--save out=out.npy\n"
        "gpumem trace --stage transpose/padded --shape 1024,1024 --json | jq .counters\n"
        "gpumem trace --stage transpose/tiled --json > tiled.json; gpumem trace tiled.json --html tiled.html",
    )
    launched(trace)
    trace.add_argument(
        "--opt-in",
        action=argparse.BooleanOptionalAction,
        help="whether the program asks for more than 48 KiB of shared memory; without it such a launch is refused",
    )
    trace.add_argument("--sample", type=float, metavar="PART", help="execute this fraction of the blocks")
    trace.add_argument(
        "--watch", default="shared,registers", metavar="A,B", help="hazards: shared, registers, global, or none"
    )
    trace.add_argument("--threads", type=int, metavar="N", help="threads of this machine to use")
    trace.add_argument("--seconds", type=float, metavar="S", help="give up after so long")
    trace.add_argument("--save", action="append", default=[], metavar="NAME=FILE", help="write an array to a .npy file")
    trace.add_argument("--html", type=Path, metavar="FILE", help="also write the report as a page")

    advise_command.register(command, launched)
    compare_command.register(command)
    explain_command.register(command)
    figure_commands.register(command, measuring, launched)
    exercise_command.register(command)

    profile = command(
        "profile",
        "the same for a GPU, counted by Nsight Compute (ncu)",
        "gpumem profile --stage transpose/padded --shape 8192,8192\n"
        "gpumem profile tile.cu --kernel tile --grid 32,32 --block 32,8 --arg out:f32[1024,1024] "
        "--arg in:f32[1024,1024]=random --arg 1024 --compare\n"
        "gpumem profile report.ncu-rep --explain",
    )
    launched(profile)
    profile.set_defaults(save=[])
    profile.add_argument("--explain", action="store_true", help="what each counter says, its value here and its ideal")
    profile.add_argument("--compare", action="store_true", help="next to what the lens counts of the same launch")
    profile.add_argument("--html", type=Path, metavar="FILE", help="also write the report as a page")

    demo = command(
        "demo",
        "a photograph into colour planes and back, and the transpose ladder",
        "gpumem demo\ngpumem demo --json | jq .photograph.times_faster",
    )
    demo.add_argument("--quiet", "-q", action="store_true", help="no progress on stderr")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    prepare_streams()
    top = parser()
    options = top.parse_args(arguments)
    status = 0
    try:
        if options.version:
            from .machine import version

            print(f"gpumem {version()}")
        elif options.command is None:
            top.print_help()
        else:
            status = COMMANDS[options.command](options) or 0
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough. Python would complain once more when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (UsageError, MemoryError, OSError) as error:
        return failed(options.command, error, USAGE)
    except WrongResultError as error:
        return failed(options.command, error, WRONG)
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted\n")
        return INTERRUPTED
    return status


def prepare_streams() -> None:
    """What an output's encoding has no letter for becomes a question mark; an output that is closed takes all."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - to the end
        elif isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


def failed(command: str | None, error: Exception, status: int) -> int:
    """Says what went wrong in one line."""
    said = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.strerror:  # without its number
        said = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    sys.stderr.write(f"gpumem {command}: {said}\n")
    return status


def put(result: Shown, options: argparse.Namespace, json: str) -> None:
    """Prints a result as asked for."""
    from .console import show

    if options.json:
        print(json)
    else:
        show(result)


def check_files(options: argparse.Namespace) -> None:
    """Raises UsageError, before minutes are spent on measuring, where the files asked for could not be written."""
    for path in (options.output, options.plot):
        if path and (path.is_dir() or not os.access(path if path.exists() else path.absolute().parent, os.W_OK)):
            raise UsageError(f"cannot write {path}")
    if options.plot:
        from .plot import check_format

        check_format(options.plot)


def write_files(result: Measured, options: argparse.Namespace) -> None:
    """Writes what --output and --plot asked for."""
    if options.output:
        options.output.write_text(result.to_json() + "\n")
    write_plot(result, options)


def write_plot(result: Measured, options: argparse.Namespace) -> None:
    """Writes what --plot asked for."""
    if options.plot:
        from .plot import save

        save(result.plot(), options.plot)


def parse_shape(text: str | None) -> list[int] | None:
    """A shape such as 8192x8192 or 1000000,3."""
    try:
        return [int(part) for part in re.split("[x,]", text)] if text else None
    except ValueError:
        raise UsageError(f"shape {text!r}: lengths with x or commas between them, such as 8192x8192") from None


def parse_peers(text: str | None, otherwise: list[str] | None) -> list[str] | None:
    """Names of peers with commas between them, or none."""
    if text is None:
        return otherwise
    return [] if text == "none" else text.split(",")


def run_info(options: argparse.Namespace) -> None:
    """What the machine offers."""
    from .info import info

    found = info()
    put(found, options, found.to_json())


def run_stages(options: argparse.Namespace) -> None:
    """The stage table."""
    import json

    from .stage_table import stages

    found = stages(options.lesson, options.device)
    put(found, options, json.dumps([stage.to_dict() for stage in found], indent=1))


def counted_ladder(options: argparse.Namespace) -> None:
    """One lesson, all stages, executed by the lens."""
    from .counted import trace_ladder

    if options.plot or options.repeat or options.peers:
        raise UsageError("device 'sim': its kernels are counted, not timed: nothing to repeat, to compare or to plot")
    shape = parse_shape(options.shape)
    result = trace_ladder(options.lesson, shape, options.dtype)
    if options.output:
        options.output.write_text(result.to_json() + "\n")
    put(result, options, result.to_json())


def run_ladder(options: argparse.Namespace) -> None:
    """One lesson, all stages."""
    from .ladder import ladder
    from .timing import ROUNDS

    check_files(options)
    if options.device == "sim":
        counted_ladder(options)
        return
    result = ladder(
        options.lesson,
        parse_shape(options.shape),
        options.dtype,
        options.device,
        repeat=ROUNDS if options.repeat is None else options.repeat,
        peers=parse_peers(options.peers, ["numpy"]),
        counters=options.counters,
        progress=not options.quiet,
    )
    write_files(result, options)
    put(result, options, result.to_json())


def run_bench(options: argparse.Namespace) -> None:
    """The benchmark, its list of rows, or a recorded result."""
    import json

    from .bench import bench
    from .cases import cases
    from .result import Result

    op = options.op or "transpose"
    if options.list:
        names = [
            case.label for case in cases(op, quick=options.quick, only=options.filter, device=options.device or "cpu")
        ]
        print(json.dumps(names, indent=1) if options.json else "\n".join(names))
        return
    check_files(options)
    if options.recorded:
        result = Result.read(options.recorded)
    else:
        result = bench(
            op,
            device=options.device,
            only=options.filter,
            quick=options.quick,
            repeat=options.repeat,
            peers=parse_peers(options.peers, None),
            progress=not options.quiet,
        )
    write_files(result, options)
    put(result.every_row() if options.rows else result, options, result.to_json())


def run_trace(options: argparse.Namespace) -> None:
    """A kernel, or a stage, in the lens."""
    from .trace_command import run

    result = run(options)
    put(result, options, result.to_json())
    if result.findings:
        kinds = ", ".join(dict.fromkeys(finding.kind for finding in result.findings))
        raise WrongResultError(f"hazards in {result.kernel}: {kinds}; see the report")


def run_profile(options: argparse.Namespace) -> None:
    """A kernel, or a stage, on a GPU under Nsight Compute."""
    from .trace_command import profiled

    result = profiled(options)
    put(result, options, result.to_json())


def run_demo(options: argparse.Namespace) -> None:
    """The photograph, then the ladder; both as one JSON document with --json."""
    import json

    from .console import show
    from .demo import demo
    from .ladder import ladder

    photo = demo(progress=not options.quiet)
    if not options.json:
        show(photo)
        print(flush=True)
    rungs = ladder("transpose", progress=not options.quiet)
    if options.json:
        print(json.dumps({"photograph": photo.to_dict(), "ladder": rungs.to_dict()}, indent=1))
    else:
        show(rungs)


COMMANDS: dict[str, Callable[[argparse.Namespace], int | None]] = {
    "info": run_info,
    "stages": run_stages,
    "ladder": run_ladder,
    "bench": run_bench,
    "trace": run_trace,
    "advise": advise_command.run,
    "compare": compare_command.run,
    "metrics": explain_command.run,
    "sweep": figure_commands.run_sweep,
    "plot": figure_commands.run_plot,
    "roofline": figure_commands.run_roofline,
    "exercises": exercise_command.run_exercises,
    "check": exercise_command.run_check,
    "profile": run_profile,
    "demo": run_demo,
}
