"""Figures: what each must show is there, colours are a stage's own, and files are drawn as their schema says."""

import json
import re
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import gpumem
from gpumem import style
from gpumem.devices import device
from gpumem.plot import plot_file, plot_sweep
from gpumem.sweep_result import Sweep

mpl = pytest.importorskip("matplotlib")
Text = pytest.importorskip("matplotlib.text").Text
DATA = Path(__file__).parent.parent / "notebooks" / "data"
RECORDED = sorted(path for path in DATA.glob("*/*.json") if path.parent.name != "tests")


def texts(ax):
    return [text.get_text() for text in ax.texts]


def sweep_of(name):
    return Sweep.read(DATA / name)


@pytest.fixture(scope="module")
def transpose():
    return plot_sweep(sweep_of("h200/sweep-transpose-float32.json"))


def test_sizes_are_on_a_log_2_axis_with_powers_of_two_in_words(transpose):
    assert transpose.get_xscale() == "log"
    assert transpose.xaxis.get_transform().base == 2
    labels = [tick.get_text() for tick in transpose.get_xticklabels()]
    assert labels == ["256 KiB", "1 MiB", "4 MiB", "16 MiB", "64 MiB", "256 MiB", "1 GiB", "4 GiB"]


def test_gigabytes_start_at_zero(transpose):
    assert transpose.get_ylim()[0] == 0


def test_the_peak_and_the_measured_copy_are_dashed_lines_with_names(transpose):
    sweep = sweep_of("h200/sweep-transpose-float32.json")
    copy = sweep.best[max(sweep.best)].gb_per_s.median
    dashed = {round(line.get_ydata()[0]): line for line in transpose.lines if len(set(line.get_ydata())) == 1}
    assert set(dashed) == {round(copy), 4800}
    assert all(line.is_dashed() for line in dashed.values())
    assert {f"measured copy {copy:,.0f} GB/s", "theoretical peak 4,800 GB/s"} <= set(texts(transpose))


def test_caches_are_shaded_up_to_their_capacity(transpose):
    shades = {patch.get_gid(): patch for patch in transpose.patches if patch.get_gid()}
    assert list(shades) == ["cache L2"]
    box = shades["cache L2"]
    assert box.get_x() + box.get_width() == device("H200").l2_bytes
    ax = plot_sweep(sweep_of("cpu/sweep-copy-float32.json"))
    assert [patch.get_gid() for patch in ax.patches if patch.get_gid()] == ["cache L1", "cache L2", "cache L3"]


def test_quartiles_are_bands(transpose):
    sweep = sweep_of("h200/sweep-transpose-float32.json")
    curves = len({point.name for point in sweep.points if point.kind != "reference"}) + 1
    assert len(transpose.collections) == curves
    band = transpose.collections[0].get_paths()[0].vertices
    points = [p for p in sweep.points if p.name == sweep.points[0].name]
    assert band[:, 1].max() == pytest.approx(max(p.gb_per_s.high for p in points))


def test_every_curve_is_named_at_its_end_in_its_colour(transpose):
    named = {text.get_text(): text.get_color() for text in transpose.texts}
    for name in ("naive", "tiled", "padded", "swizzled", "bulk", "vectorised", "tuned", "torch"):
        assert named[name] == style.look(name).colour


def test_the_caption_says_device_driver_and_commit(transpose):
    said = transpose.figure._supxlabel.get_text().replace("\n", " ")
    for part in ("NVIDIA H200", "CUDA 13.0", "driver 580.", "gpumem at 6d7732a", "2026-", "5 rounds", "cold cache"):
        assert part in said


def test_a_counted_sweep_shows_loads_and_stores_over_the_bytes_they_move():
    sizes = [4096, 65536]
    ax = plot_sweep(gpumem.sweep("transpose", "size", sizes, stages=["naive", "padded"], device="sim", progress=False))
    drawn = {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in ax.lines}
    assert drawn == {"naive": ([8192, 131072], [4 + 32, 4 + 32]), "padded": ([8192, 131072], [8, 8])}
    assert ax.get_xlim()[0] < 8192
    assert not any(patch.get_gid() for patch in ax.patches)  # this machine's caches have no part in it


def test_names_at_the_ends_do_not_overlap():
    ax = plot_sweep(sweep_of("h200/sweep-cache-float32.json"))
    ax.figure.draw_without_rendering()
    named = [text for text in ax.texts if text.get_text().startswith(("load", "store", "no "))]
    boxes = [Text.get_window_extent(text) for text in named]  # without the lines that lead there
    assert len(boxes) == 11
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))


KINDS = ("sweep-stride", "ladder-transpose-float32", "reduce", "estimates")  # one of each
DRAWN = [path for path in RECORDED if "probe" not in path.read_text()[:60]]


@pytest.mark.parametrize("path", DRAWN, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_recorded_file_is_drawn_the_same_way_each_time(path, tmp_path):
    to = tmp_path / "a.svg"
    plot_file(path, to)
    text = to.read_text()
    assert text.startswith("<?xml")
    assert ("measured on this machine" if path.stem.startswith("roofline") else "gpumem") in text  # its origin
    assert re.search(r"<text[^>]*>", text)  # it can be searched
    if path.stem in KINDS:
        plot_file(path, to)
        assert to.read_text() == text
        plot_file(path, tmp_path / "a.png")
        assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_nothing_outside_the_figure_is_cut_off(tmp_path):
    for path in RECORDED:
        data = json.loads(path.read_text())
        if data["schema"] not in ("gpumem.sweep/1", "gpumem.ladder/1"):
            continue
        made = Sweep if data["schema"] == "gpumem.sweep/1" else gpumem.Ladder
        ax = made.from_dict(data).plot()
        figure = ax.figure
        figure.draw_without_rendering()
        width, height = figure.bbox.width, figure.bbox.height
        for text in [*ax.texts, ax.title, ax.xaxis.label, figure._supxlabel]:
            box = text.get_window_extent()
            inside = box.x0 > -1 and box.x1 < width + 1 and box.y0 > -1 and box.y1 < height + 1
            assert inside, (path.name, text.get_text(), box)


# --- how things look -------------------------------------------------------------------------------------------------


def test_every_stage_has_a_look():
    for stage in gpumem.stages():
        assert stage.name in style.LOOKS, stage


@pytest.mark.parametrize("device_name", ["cpu", "cuda"])
def test_stages_that_meet_in_a_figure_differ_in_colour_and_in_marker(device_name):
    for lesson in {stage.lesson for stage in gpumem.stages(device=device_name)}:
        names = [stage.name for stage in gpumem.stages(lesson, device_name)]
        if lesson == "cache":  # loads and stores are two groups of the same hints
            names = [name for name in names if name.startswith(("load", "no"))]
        if lesson == "layout":
            names = [name for name in names if name.startswith("aos")]
        looks = [style.look(name) for name in names]
        assert len({look.colour for look in looks}) == len(looks), lesson
        assert len({look.marker for look in looks}) == len(looks), lesson


def lightness_and_hue(colour, matrix):
    """CIE Lab of a colour as somebody sees it whose eyes map linear RGB by `matrix`."""
    rgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(matrix @ linear, 0, 1)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = (to_xyz @ seen) / (0.9505, 1.0, 1.089)
    f = [t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z)]
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


# Machado, Oliveira and Fernandes: A Physiologically-based Model for Simulation of Color Vision Deficiency, 2009.
EYES = {
    "usual": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
    ),
}


@pytest.mark.parametrize("eyes", EYES)
@pytest.mark.parametrize("lesson", ["transpose", "copy", "reduce"])
def test_colours_of_a_ladder_can_be_told_apart(lesson, eyes):
    for place in ("cpu", "cuda"):
        names = [stage.name for stage in gpumem.stages(lesson, place)]
        labs = {name: lightness_and_hue(style.look(name).colour, EYES[eyes]) for name in names}
        for a, b in combinations(names, 2):
            assert np.linalg.norm(labs[a] - labs[b]) > 8, (a, b)


def test_settings_of_matplotlib_are_left_alone(tmp_path):
    before = dict(mpl.rcParams)
    plot_file(DATA / "h200" / "sweep-banks.json", tmp_path / "a.svg")
    assert dict(mpl.rcParams) == before


def test_a_plot_can_be_drawn_into_axes_that_are_there():
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert sweep_of("h200/sweep-banks.json").plot(ax) is ax


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, said",
    [("no", "is no JSON"), ("[]", "schema None"), ('{"schema": "x/1"}', "schema 'x/1' cannot be drawn")],
)
def test_files_that_hold_nothing_to_draw(tmp_path, text, said):
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(gpumem.UsageError, match=said):
        plot_file(path, tmp_path / "a.svg")
    path.write_text('{"schema": "gpumem.sweep/1"}')
    with pytest.raises(gpumem.UsageError, match=r"no whole gpumem\.sweep/1"):
        plot_file(path, tmp_path / "a.svg")
    with pytest.raises(gpumem.UsageError, match="cannot read"):
        plot_file(tmp_path / "b.json", tmp_path / "a.svg")


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(gpumem.UsageError, match="pip install"):
        sweep_of("h200/sweep-banks.json").plot()
