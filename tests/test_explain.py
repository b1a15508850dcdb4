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


# From "Nvprof Transition Guide" of NVIDIA's manual, Nsight Compute CLI 2022.3: tables "Metrics Mapping Table from CUPTI
# to PerfWorks" and "Events Mapping Table from CUPTI Events to PerfWorks Metrics" for compute capability 7.0 and newer.
NVIDIAS = {
    "gld_transactions_per_request": "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
    "gst_transactions_per_request": "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",
    "gld_efficiency": "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct",
    "gst_efficiency": "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct",
    "gld_transactions": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "gst_transactions": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "global_load_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "global_store_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "shared_load_transactions": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared_store_transactions": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "shared_ld_bank_conflict": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "shared_st_bank_conflict": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "local_load_transactions": "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
    "local_store_transactions": "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
    "warp_execution_efficiency": "smsp__thread_inst_executed_per_inst_executed.ratio",
    "tex_cache_hit_rate": "l1tex__t_sector_hit_rate.pct",
    "l2_read_transactions": "lts__t_sectors_op_read.sum + lts__t_sectors_op_atom.sum + lts__t_sectors_op_red.sum",
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_utilization": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "achieved_occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "stall_memory_dependency": "smsp__warp_issue_stalled_long_scoreboard_per_warp_active.pct",
    "stall_memory_throttle": "smsp__warp_issue_stalled_drain_per_warp_active.pct + "
    "smsp__warp_issue_stalled_lg_throttle_per_warp_active.pct",
}


def stem(name):
    """What is counted, without how it is summed: a share, a ratio or a total of the same."""
    name = name.partition(".")[0].replace("smsp__sass_l1tex_", "l1tex__")
    return name.replace("average_warps_issue", "warp_issue").replace("_per_issue_active", "_per_warp_active")


@pytest.mark.parametrize("row", EXPLAINED, ids=lambda row: row.name)
def test_old_names_are_those_of_nvidias_table(row):
    old, _, differs = row.nvprof.partition(", ")
    theirs = NVIDIAS[old].split(" + ")
    assert stem(row.name) in {stem(each) for each in theirs}
    if len(theirs) > 1 or theirs[0].endswith(".pct") != row.name.endswith(".pct"):
        assert differs  # and says how
