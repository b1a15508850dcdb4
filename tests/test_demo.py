"""The demonstration: a real photograph to planes and back, every byte checked, both sides timed in turns."""

import json
import sys

import numpy as np
import pytest

import gpumem
from gpumem import _core
from gpumem.cli import main
from gpumem.demo import demo, photograph

pytest.importorskip("matplotlib")
pytest.importorskip("PIL")


def test_the_photograph_is_one():
    photo = photograph()
    assert photo.shape == (600, 512, 3)
    assert photo.dtype == np.uint8
    assert photo.std() > 30


def test_both_directions_are_checked_and_timed():
    result = demo(size=3_000_000, progress=False)
    assert np.prod(result.shape) >= 3_000_000
    assert set(result.seconds) == {"copy", *(f"{w} to {d}" for w in ("gpumem", "NumPy") for d in ("planes", "pixels"))}
    assert {len(taken) for taken in result.seconds.values()} == {5}
    data = json.loads(result.to_json())
    assert data["times_faster"]["to planes"]["median"] == pytest.approx(result.faster("to planes").median, rel=1e-3)
    assert "permute_dims(photo, (2, 0, 1))" in str(result)


@pytest.mark.parametrize("axes, said", [((2, 0, 1), "photograph to planes"), ((1, 2, 0), "planes to photograph")])
def test_a_wrong_byte_stops_it(axes, said, monkeypatch):
    right = _core.permute_dims

    def wrong(x, given, *, out):
        right(x, given, out=out)
        if given == axes:
            out[-1, -1, -1] ^= 1

    monkeypatch.setattr(_core, "permute_dims", wrong)
    with pytest.raises(gpumem.WrongResultError, match=f"{said} is wrong at"):
        demo(size=1, progress=False)


def test_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ValueError, match=r"pip install 'gpumem\[demo\]'"):
        demo(progress=False)


def test_the_command_shows_the_photograph_and_then_the_ladder(monkeypatch, capsys):
    monkeypatch.setattr("gpumem.machine.memory_free", lambda: 1 << 26)  # so that everything is small
    assert main(["demo", "-q"]) == 0
    out, err = capsys.readouterr()
    assert out.index("A photograph") < out.index("transpose: ")
    assert err == ""
    assert main(["demo", "--json"]) == 0
    out, err = capsys.readouterr()
    data = json.loads(out)
    assert data["photograph"]["shape"][2] == 3
    assert data["ladder"]["lesson"] == "transpose"
    assert "demo:" in err
