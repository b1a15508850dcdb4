"""`gpumem trace`: a kernel from a file, or a stage of the ladder, executed by the lens."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import UsageError
from .kernel import Kernel
from .ladder import checked_dtype, checked_shape
from .specs import Argument, parse
from .timing import ROUNDS
from .trace import Comparison, Trace

if TYPE_CHECKING:
    from .explain import Explanation
    from .measured import Measured
    from .ncu_file import Report

# What the lens raises for a kernel, a launch or arguments that cannot be meant.
LENS_ERRORS = (NotImplementedError, ValueError, TypeError, OverflowError, RuntimeError)


def run(options: argparse.Namespace) -> Trace:
    """The trace that the options ask for, or that a file of an earlier one holds; arrays and the page are written."""
    if options.file and options.file.suffix == ".json":
        from .advise_command import saved_trace

        saved = saved_trace(options.file)
        write_page(saved, options)
        return saved
    check(options)
    limits = {
        "sample": options.sample,
        "watch": watched(options),
        "threads": options.threads,
        "seconds": options.seconds,
    }
    try:
        trace = traced_stage(options, limits) if options.stage else traced_file(options, limits)
    except LENS_ERRORS as error:
        raise UsageError(str(error)) from error
    write_page(trace, options)
    return trace


def profiled(options: argparse.Namespace) -> Trace | Comparison | Report | Explanation:
    """What the hardware counts of the launch, or has counted in a report that was written.

    With --compare next to what the lens counts, with --explain what each metric says.
    """
    from .explain import EXPLAINED, Explanation
    from .ncu_file import SUFFIX, Report, read
    from .profile import profile, profile_stage

    if options.file and options.file.suffix == SUFFIX:
        traces = read(options.file)
        if options.explain:
            return Explanation(traces[0])
        return traces[0] if len(traces) == 1 else Report(tuple(traces))
    check(options)
    more = [row.name for row in EXPLAINED] if options.explain else []
    try:
        if options.stage:
            lesson, stage = stage_of(options)
            counted = profile_stage(lesson, stage, shape_of(options), checked_dtype(options.dtype).name, more=more)
        else:
            if options.cluster:
                raise UsageError("--cluster: a profile takes the clusters that the kernel itself declares")
            kernel, arguments = kernel_of(options), [parse(text) for text in options.arg]
            values = (argument.value for argument in arguments)
            counted = profile(kernel, *launch_of(options), *values, shared=options.shared, more=more)
        if not options.compare:
            write_page(counted, options)
            return Explanation(counted) if options.explain else counted
        traced = traced_stage(options, {}) if options.stage else traced_file(options, {})
    except LENS_ERRORS as error:
        raise UsageError(str(error)) from error
    compared = traced.compare(counted)
    write_page(compared, options)
    return compared


def measured(options: argparse.Namespace) -> Measured:
    """The launch in the lens and on this machine's GPU."""
    from .measured import measure_stage

    check(options)
    if options.sample:
        raise UsageError("--sample: what the GPU is given is executed whole before; with --on NAME it is only counted")
    if options.cluster:
        raise UsageError("--cluster: a launch takes the clusters that the kernel itself declares")
    repeat = ROUNDS if options.repeat is None else options.repeat
    try:
        if options.stage:
            lesson, stage = stage_of(options)
            return measure_stage(lesson, stage, shape_of(options), checked_dtype(options.dtype), repeat=repeat)
        arguments = [parse(text) for text in options.arg]
        return kernel_of(options).measure(
            *launch_of(options),
            *(argument.value for argument in arguments),
            shared=options.shared,
            repeat=repeat,
            names=names_of(arguments),
            watch=watched(options),
        )
    except LENS_ERRORS as error:
        raise UsageError(str(error)) from error


def watched(options: argparse.Namespace) -> list[str]:
    """What --watch names."""
    return [] if options.watch == "none" else options.watch.split(",")


def names_of(arguments: list[Argument]) -> list[str]:
    """What reports call the arguments."""
    return [argument.name or f"argument {i}" for i, argument in enumerate(arguments)]


def check(options: argparse.Namespace) -> None:
    """Raises UsageError where the options do not say what is to be launched."""
    if bool(options.file) == bool(options.stage):
        raise UsageError("give a FILE, or --stage LESSON/STAGE")
    if options.file and not (options.grid and options.block):
        raise UsageError("give --grid and --block: the blocks, and the threads of a block")


def kernel_of(options: argparse.Namespace) -> Kernel:
    """The kernel of the file."""
    try:
        text = options.file.read_text()
    except UnicodeDecodeError:
        raise UsageError(f"{options.file} is no text: give CUDA C or PTX") from None
    except OSError as error:
        raise UsageError(f"cannot read {options.file}: {error.strerror}") from None
    return Kernel(text, options.kernel, options.arch, file=str(options.file), options=options.option)


def launch_of(options: argparse.Namespace) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The grid and the block."""
    return dim("--grid", options.grid), dim("--block", options.block)


def traced_file(options: argparse.Namespace, limits: Mapping[str, Any]) -> Trace:
    """A kernel of the file in the lens."""
    arguments = [parse(text) for text in options.arg]
    save = targets(options.save, arguments)
    trace = kernel_of(options).trace(
        *launch_of(options),
        *(argument.value for argument in arguments),
        shared=options.shared,
        opt_in=getattr(options, "opt_in", None),
        cluster=dim("--cluster", options.cluster) if options.cluster else None,
        names=names_of(arguments),
        **limits,
    )
    for path, argument in save:
        np.save(path, argument.value)
    return trace


def traced_stage(options: argparse.Namespace, limits: Mapping[str, Any]) -> Trace:
    """A stage of the ladder in the lens."""
    from .simulate import trace_stage

    lesson, stage = stage_of(options)
    return trace_stage(lesson, stage, shape_of(options), checked_dtype(options.dtype), **limits)


def stage_of(options: argparse.Namespace) -> tuple[str, str]:
    """The lesson and the stage of --stage."""
    lesson, slash, stage = options.stage.partition("/")
    if not slash:
        raise UsageError(f"--stage {options.stage!r}: such as transpose/padded")
    return lesson, stage


def shape_of(options: argparse.Namespace) -> tuple[int, ...] | None:
    """The shape of --shape."""
    from .cli import parse_shape

    shape = parse_shape(options.shape)
    return None if shape is None else checked_shape(shape)


def write_page(result: Trace | Comparison, options: argparse.Namespace) -> None:
    """Writes what --html asks for."""
    if options.html:
        from .report import comparison_page, page

        text = comparison_page(result) if isinstance(result, Comparison) else page(result)
        options.html.write_text(text, encoding="utf-8")


def dim(option: str, text: str) -> tuple[int, ...]:
    """Lengths with commas, or x, between them."""
    try:
        return tuple(int(part) for part in text.replace("x", ",").split(","))
    except ValueError:
        raise UsageError(f"{option} {text!r}: one to three lengths, such as 32,8") from None


def targets(texts: list[str], arguments: list[Argument]) -> list[tuple[Path, Argument]]:
    """What --save asks for. Raises UsageError, before anything is executed, for names that there are not."""
    named = {argument.name: argument for argument in arguments if isinstance(argument.value, np.ndarray)}
    found = []
    for text in texts:
        name, _, path = text.partition("=")
        if name not in named or not path:
            raise UsageError(
                f"--save {text!r}: NAME=FILE.npy with the name of an array: {', '.join(filter(None, named))}"
            )
        if not Path(path).absolute().parent.is_dir():
            raise UsageError(f"cannot write {path}")
        found.append((Path(path), named[name]))
    return found
