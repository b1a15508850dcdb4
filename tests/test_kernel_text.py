"""Reports of the ladder's stages show their CUDA source, line by line, and where each function of it is called."""

import re
from pathlib import Path

import pytest

import gpumem
from gpumem import _core, listing
from gpumem.kernel_text import text_of, texts, texts_in
from gpumem.report import page

KERNELS = Path(__file__).parent.parent / "csrc" / "kernels"
built = pytest.mark.skipif(not _core._cuda()["chips"], reason="this gpumem was built without CUDA")


@pytest.mark.parametrize(
    "path", sorted(KERNELS.glob("*.[ch]u*")) + sorted(KERNELS.glob("*.h")), ids=lambda path: path.name
)
def test_every_file_of_the_kernels_is_there_as_it_is_here(path):
    assert text_of(path.name) == path.read_text()


def test_other_files_are_none_of_them():
    assert text_of("nowhere.cu") is None
    assert texts(["include/transpose.cu", "csrc/kernels/nowhere.cu", "csrc/kernels/read.cu"]).keys() == {"read.cu"}
    assert texts_in('.file 1 "k.cu"\n\t.file\t2 "csrc/kernels/access.cuh"').keys() == {"access.cuh"}


@built
def test_a_stages_report_shows_its_source_and_no_ptx():
    trace = gpumem.trace_stage("transpose", "tiled")
    assert listing.lines_of(trace).keys() == {"transpose.cu", "access.cuh"}
    shown = page(trace)
    assert "tile" in shown
    assert ">PTX</summary>" not in shown
    assert gpumem.Trace.from_dict(trace.to_dict()).source.keys() >= {"transpose.cu", "access.cuh"}


@built
def test_a_line_that_calls_has_the_cost_of_what_it_calls():
    trace = gpumem.trace_stage("transpose", "tiled")
    by_line = listing.lines_of(trace)
    loads = [site for site in trace.sites if site.kind == "load" and site.shared]
    (line,) = {int(call.rpartition(":")[2]) for site in loads for call in site.calls[:1]}
    assert set(loads) <= set(by_line["transpose.cu"][line])
    text = text_of("transpose.cu").splitlines()[line - 1]
    assert re.search(r"tile\w*[\[(]", text)
    assert "load 32 wavefronts" in listing.costs(by_line["transpose.cu"][line])


@built
def test_all_stages_lines_are_in_their_texts():
    for stage in gpumem.stages(device="cuda"):
        trace = gpumem.trace_stage(stage.lesson, stage.name, machine_code=False)
        for name, by_line in listing.lines_of(trace).items():
            if name != listing.PTX:
                assert max(by_line) <= len(text_of(name).splitlines()), (str(stage), name)
