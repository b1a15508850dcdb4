"""The counters, explained: values are those that an H200 counted, and every counter of the lens has its sentence."""

import json

import pytest
from test_advice import CASES, case
from truth import GLOBAL

from gpumem.cli import main
from gpumem.errors import UsageError
from gpumem.explain import EXPLAINED, Explanation, explained
from gpumem.metrics import METRICS

BYTES = "smsp__sass_average_data_bytes_per_sector_mem_global_op_{}.ratio"
SECTORS = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{}.ratio"


@pytest.mark.parametrize("row", CASES, ids=lambda row: "-".join([row["kernel"], *map(str, row["scalars"])]))
def test_values_are_those_of_the_hardware(row):
    values = {each["name"]: each["value"] for each in Explanation(case(row)).to_dict()["counters"]}
    for op in ("ld", "st"):
        wanted = row["counters"][BYTES.format(op)]
        got = values[BYTES.format(op)]
        assert (0 if got is None else got) == pytest.approx(wanted, abs=0.0051)
        requests, sectors = (row["counters"][GLOBAL.format(what, op)] for what in ("requests", "sectors"))
        assert values[GLOBAL.format("sectors", op)] == sectors
        assert values[GLOBAL.format("requests", op)] == requests
        assert (values[SECTORS.format(op)] or 0) == pytest.approx(sectors / requests if requests else 0)


def test_each_row_says_all_that_it_should():
    assert len({row.name for row in EXPLAINED}) == len(EXPLAINED)
    assert len({row.nvprof for row in EXPLAINED}) == len(EXPLAINED)
    for row in EXPLAINED:
        assert row.meaning.endswith(".")
        assert row.meaning[0].isupper()
        assert all((row.formula, row.ideal, row.nvprof))
    # every kind of traffic that the lens counts, but for atomics, ldmatrix and instruction counts, which say it by name
    said = {row.name for row in EXPLAINED}
    for metric in METRICS:
        if metric.kinds[0] in ("load", "store") and metric.counter in ("sectors", "wavefronts"):
            assert metric.name in said


def test_old_names_lead_to_new_ones():
    assert explained("gld_transactions_per_request").name == SECTORS.format("ld")
    assert explained(BYTES.format("st")).nvprof.startswith("gst_efficiency")
    with pytest.raises(UsageError, match="no counter 'gld_eficiency'"):
        explained("gld_eficiency")


def test_the_command(capsys, tmp_path):
    assert main(["metrics"]) == 0
    out = capsys.readouterr().out
    assert all(row.name in out for row in EXPLAINED)
    assert main(["metrics", "gld_efficiency", "--json"]) == 0
    assert [row["ideal"] for row in json.loads(capsys.readouterr().out)["counters"]] == ["32"]
    path = tmp_path / "trace.json"
    path.write_text(case(CASES[0]).to_json())
    assert main(["metrics", str(path)]) == 0
    assert "ideal" in capsys.readouterr().out
    assert main(["metrics", "nothing"]) == 2
    assert main(["metrics", str(tmp_path / "none.json")]) == 2
