"""`gpumem compare` and `gpumem plot` of traces: files in, a table, a page or pictures out, and a status for CI."""

import json
import xml.etree.ElementTree as ET

import pytest

from gpumem.cli import main
from gpumem.simulate import trace_stage
from gpumem.trace import Trace

LOADS = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("traces")
    for stage in ("tiled", "padded"):
        trace = trace_stage("transpose", stage, (128, 128), machine_code=False)
        (folder / f"{stage}.json").write_text(trace.to_json())
    (folder / "bench.json").write_text('{"schema": "gpumem.bench/1"}')
    (folder / "broken.json").write_text('{"schema": "gpumem.trace/1", "sites": 3}')
    (folder / "text.json").write_text("no JSON")
    return folder


@pytest.fixture
def compare(files, capsys):
    def compare(first, second, *options):
        status = main(["compare", str(files / f"{first}.json"), str(files / f"{second}.json"), *options])
        return status, *capsys.readouterr()

    return compare


def test_the_table_shows_what_changed(compare):
    status, out, _ = compare("tiled", "padded")
    assert status == 0
    row = next(line.split() for line in out.splitlines() if line.startswith(LOADS))
    assert row[1:] == ["16,384", "512", "-96.9", "%"]


@pytest.mark.parametrize(
    "first, second, fail_on, status",
    [
        ("tiled", "tiled", "different", 0),
        ("tiled", "padded", "different", 3),
        ("tiled", "padded", "worse", 0),
        ("padded", "tiled", "worse", 3),
    ],
)
def test_the_status_says_whether_it_is_worse(compare, first, second, fail_on, status):
    assert compare(first, second, "--fail-on", fail_on)[0] == status


def test_json_holds_both(compare):
    data = json.loads(compare("tiled", "padded", "--json")[1])
    assert data["changed"][LOADS] == [16384, 512]
    assert Trace.from_dict(data["second"]).counters[LOADS] == 512


def test_the_page_shows_both(compare, tmp_path):
    assert compare("tiled", "padded", "--html", str(tmp_path / "page.html"))[0] == 0
    text = (tmp_path / "page.html").read_text()
    assert "32 wavefronts, 1 would do" in text
    assert "1 wavefront, none too many" in text


@pytest.mark.parametrize(
    "first, second, said",
    [
        ("tiled", "missing", "cannot read"),
        ("tiled", "bench", "nothing to compare: schema 'gpumem.bench/1'; there are gpumem.trace/1, gpumem.sweep/"),
        ("tiled", "broken", "is no whole gpumem.trace/1"),
        ("tiled", "text", "is no JSON"),
    ],
)
def test_what_cannot_be_compared_is_named(compare, first, second, said):
    status, _, error = compare(first, second)
    assert status == 2
    assert said in error


def test_a_page_of_an_earlier_trace(files, tmp_path, capsys):
    assert main(["trace", str(files / "tiled.json"), "--html", str(tmp_path / "page.html")]) == 0
    assert LOADS in capsys.readouterr().out
    assert "32 wavefronts, 1 would do" in (tmp_path / "page.html").read_text()
    assert main(["trace", str(files / "broken.json")]) == 2


def test_traces_are_plotted_from_their_files(files, tmp_path, capsys):
    assert main(["plot", str(files / "tiled.json"), "--to", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'tiled.svg'}\n"
    root = ET.parse(tmp_path / "tiled.svg").getroot()
    costs = [int(element.get("data-cost")) for element in root.iter() if element.get("data-cost")]
    assert sorted(set(costs)) == [1, 4, 32]
