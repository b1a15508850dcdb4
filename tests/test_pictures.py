"""Pictures of accesses: as many rows as the hardware counted, no byte or bank twice in a row, SVG that stands alone."""

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gpumem
from gpumem import _core
from gpumem.pattern import LANES, Pattern
from gpumem.pictures import BANKS, Drawing, draw, grid_of, ideal, in_cell, lane_words, served, svg
from gpumem.simulate import trace_stage
from gpumem.trace import together

TRUTH = Path(__file__).parent / "data" / "truth"


def pattern(addresses, rule, width, cost=0):
    lanes = tuple(None if address < 0 else int(address) for address in addresses)
    lanes += (None,) * (LANES - len(lanes))
    return Pattern(
        cost,
        1,
        (0, 0, 0),
        0,
        None,
        lanes,
        rule.split()[0].replace("matrix", "shared").replace("copy", "shared"),
        width,
        rule,
    )


def banks():
    held = json.loads((TRUTH / "bank_patterns.json").read_text())
    return [dict(zip(held["fields"], row, strict=True)) for row in held["rows"]]


def once_a_row(grid):
    """No column of a row is given to two cells."""
    seen = set()
    for cell in grid.cells:
        for i in range(cell.span):
            place = cell.row, cell.column + i
            assert place not in seen
            assert cell.column + i < BANKS
            seen.add(place)


def test_every_measured_bank_pattern_has_a_row_for_each_wavefront():
    checked = 0
    for row in banks():
        rule = "shared load" if row["op"] == "ld" else "shared store"
        addresses = [word * 4 if word >= 0 else -1 for word in row["word"]]
        shown = pattern(addresses, rule, row["bytes"], row["wavefronts"])
        if not shown.lanes:
            continue
        grid = grid_of(shown)
        assert len(grid.labels) == row["wavefronts"], row
        assert {cell.row for cell in grid.cells} == set(range(row["wavefronts"]))
        assert sorted(lane for cell in grid.cells for lane in cell.lanes) == list(shown.lanes)
        assert ideal(shown) == row["wavefronts"] - row["conflicts"]
        once_a_row(grid)
        checked += 1
    assert checked > 700


@pytest.mark.parametrize("rule", ["shared atom", "shared cas", "shared inc", "copy shared", "shared load"])
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_rows_are_what_the_counters_count(rule, width):
    rng = np.random.default_rng(width)
    for span in (1, 4, 32, 200):
        shown = pattern(rng.integers(0, span, LANES) * width, rule, width)
        count, turns = served(shown)
        at = np.array([shown.addresses], np.uint64)
        active = np.array([0xFFFFFFFF], np.uint32)
        counts = np.frombuffer(_core._count(rule, at, at.astype(np.uint32), active, width), np.uint32)
        assert len(grid_of(shown).labels) == count == counts[1]
        assert max(turns) == count - (2 if rule == "shared cas" else 1)
        if rule != "copy shared" and width >= 4:
            once_a_row(grid_of(shown))


@pytest.mark.parametrize("rule", ["global load", "global store", "global atom", "global cas"])
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_sectors_are_what_the_counters_count(rule, width):
    rng = np.random.default_rng(width)
    for span in (1, 3, 32, 1000):
        for _ in range(10):
            at = rng.integers(0, span, LANES) * width
            at[rng.random(LANES) < 0.2] = -1
            shown = pattern(at, rule, width)
            if not shown.lanes:
                continue
            active = np.array([sum(1 << lane for lane in shown.lanes)], np.uint32)
            wide = np.array([[address or 0 for address in shown.addresses]], np.uint64)
            counts = np.frombuffer(_core._count(rule, wide, wide.astype(np.uint32), active, width), np.uint32)
            grid = grid_of(shown)
            assert len(grid.labels) == counts[1]
            assert sorted(lane for cell in grid.cells for lane in cell.lanes) == list(shown.lanes)
            once_a_row(grid)


def test_copies_past_the_first_cache_have_a_row_for_each_counted_sector():
    rng = np.random.default_rng(3)
    for span in (2, 16, 32, 500):
        for _ in range(20):
            source, target = (rng.integers(0, span, LANES) * 16 for _ in range(2))
            plain = pattern(source, "copy", 16)
            shown = replace(plain, space="global", targets=tuple(map(int, target)))
            active = np.array([0xFFFFFFFF], np.uint32)
            wide, narrow = source.astype(np.uint64)[None], target.astype(np.uint32)[None]
            counts = np.frombuffer(_core._count("copy", wide, narrow, active, 16), np.uint32)
            assert len(grid_of(shown).labels) == counts[1]
            once_a_row(grid_of(shown))


def test_matrices_are_served_eight_rows_at_a_time():
    shown = pattern(range(0, LANES * 64, 64), "matrix x4", 16)
    grid = grid_of(shown)
    assert len(grid.labels) == 16
    assert grid.breaks == {4, 8, 12}
    assert {cell.span for cell in grid.cells} == {4}


def test_local_memory_lies_a_word_of_each_lane_side_by_side():
    shown = pattern([0] * LANES, "local", 16)
    assert len(grid_of(shown).labels) == ideal(shown) == 16
    assert len(grid_of(pattern(range(0, LANES * 4, 4), "local", 4)).labels) == LANES


@pytest.mark.parametrize(
    "stage, space, rows",
    [
        ("transpose/tiled", "shared", {32}),
        ("transpose/padded", "shared", {1}),
        ("transpose/swizzled", "shared", {1}),
        ("transpose/naive", "global", {4, 32}),
    ],
)
def test_padding_and_swizzle_can_be_seen_to_work(stage, space, rows):
    trace = trace_stage(*stage.split("/"), (128, 128))
    worst = [site.worst(space) for site in trace.sites if space in site.spaces()]
    assert {len(grid_of(shown).labels) for shown in worst} >= rows
    assert max(len(grid_of(shown).labels) for shown in worst) == max(rows)


def elements(text):
    return list(ET.fromstring(text).iter())


def test_a_file_stands_alone_and_is_well_formed(tmp_path):
    trace = trace_stage("transpose", "tiled", (128, 128))
    for site in trace.sites:
        trace.plot(site.where, "both").save(tmp_path / "picture.svg")
        text = (tmp_path / "picture.svg").read_text()
        assert all(element.tag.startswith("{http://www.w3.org/2000/svg}") for element in elements(text))
        assert not re.search(r"(href|src)=|url\((?!#gm-hatch)|@import|http://(?!www\.w3\.org/2000/svg)", text)
        assert all(part in text for part in ("<title", "<desc", "prefers-color-scheme:dark"))


def test_names_are_escaped():
    drawing = draw(pattern(range(0, 128, 4), "global load", 4, 4), 'a<b>&"c"')
    assert isinstance(drawing, Drawing)
    text = svg([drawing])
    assert ET.fromstring(text).find("{http://www.w3.org/2000/svg}title").text == 'a<b>&"c"'


def test_a_picture_speaks_for_itself():
    trace = trace_stage("transpose", "tiled", (128, 128))
    picture = trace.plot()
    assert "32 wavefronts, 1 would do" in repr(picture)
    assert picture._repr_svg_() in picture._repr_html_()
    site = max((site for site, _ in together(trace.sites)), key=trace.share)
    (drawn,) = re.findall(r'data-rows="(\d+)" data-cost="(\d+)" data-times="(\d+)"', picture._repr_svg_())
    assert drawn == ("32", "32", str(site.worst().times))


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda trace: trace.plot(1), "nothing to draw at line 1: there are accesses at"),
        (lambda trace: trace.plot(which="best"), "no execution 'best': there are 'worst', 'median' and 'both'"),
        (lambda trace: trace.plot().save("x.png"), r"cannot write x\.png: .* must end in \.svg"),
        (lambda trace: trace.with_sites(()).plot(), "no access patterns were recorded"),
    ],
)
def test_what_is_wrong_is_named(make, said):
    with pytest.raises(gpumem.UsageError, match=said):
        make(trace_stage("copy", "scalar", (1000,)))


def test_lanes_in_few_letters():
    assert lane_words(range(32)) == "0–31"
    assert [in_cell(range(32), span) for span in (1, 2, 4)] == ["+", "0–31", "0–31"]
    assert in_cell((3,), 1) == "3"
    assert in_cell((31,), 1) == "31"
    assert in_cell((0, 2, 4, 6, 8, 10), 4) == "×6"
