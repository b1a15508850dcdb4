"""Machine code read without nvdisasm (gpumem/cubin.py): the same accesses, on the same lines, as nvdisasm tells.

tests/data/sass/instructions.tsv holds one instruction of each form, by chip, and what nvdisasm 13.5 calls it; they are
from this package's kernels, the measured ones, and a kernel with each form of access that ptxas 13.0 takes. Beside it
lie cubins and nvdisasm's listings of them.
"""

import contextlib
import re
from pathlib import Path

import pytest

from gpumem import binding, cubin, ptxas
from gpumem.errors import UsageError
from gpumem.sass import UnknownInstructionError, sass_access, sass_accesses, sass_instructions

DATA = Path(__file__).parent / "data"
ROWS = [row.split("\t") for row in (DATA / "sass" / "instructions.tsv").read_text().splitlines()]
CUBINS = sorted((DATA / "sass").glob("*.cubin"))
CHIPS = ("75", "80", "86", "89", "90", "100", "120")
PTX = sorted((DATA / "ptx").glob("*.ptx"))
has_ptxas = pytest.mark.skipif(not ptxas.tool("ptxas"), reason="needs ptxas: pip's, or a toolkit's")
has_both = pytest.mark.skipif(
    not (ptxas.tool("ptxas") and ptxas.tool("nvdisasm")), reason="needs ptxas and nvdisasm: pip's, or a toolkit's"
)


def accessed(instruction: str) -> str | None:
    try:
        return sass_access(instruction)
    except UnknownInstructionError:
        return "one that is not known"


@pytest.mark.parametrize("chip", ["75", "80", "90", "100", "120"])
def test_each_form_is_read_as_nvdisasm_calls_it(chip):
    rows = [(int(word, 16), text) for number, word, text in ROWS if number == chip]
    assert len(rows) > 300
    wrong = {text: words for word, text in rows if accessed(words := cubin.words(word, int(chip))) != accessed(text)}
    assert not wrong


@pytest.mark.parametrize("name", ["VOTE", "VOTEU", "MATCH", "FLO", "UFLO", "DEPBAR", "LDGDEPBAR"])
def test_what_the_binding_looks_for_has_its_name(name):
    rows = [row for row in ROWS if row[2].split(".")[0] == name]
    assert rows
    assert {cubin.words(int(word, 16), int(chip)) for chip, word, _ in rows} == {name}


def test_no_form_of_memory_instruction_is_passed_over():
    for code in range(0x160, 0x1C0):
        words = cubin.words(code | 0x800 | 7 << 12, 90)
        assert words.split(".")[0].split("_0")[0] in {
            *("LD", "LDG", "LDL", "LDS", "ST", "STG", "STL", "STS", "ATOM", "ATOMG", "ATOMS", "RED", "LDGSTS"),
            *("UTMALDG", "UTMASTG", "LDC", "SHFL", "CCTL", "MEMBAR", "SYNCS", "QSPC", "ERRBAR", "LDCU", "LDGDEPBAR"),
            *("ARRIVES", "UTMACMDFLUSH", "UTMAPF", "UBLKPF", "TXQ", "MATCH", "LD_OR_ST"),
        }
    with pytest.raises(UnknownInstructionError):
        sass_access(cubin.words(0x999, 90))


@pytest.mark.parametrize("path", CUBINS, ids=lambda path: path.stem)
def test_a_cubin_is_read_as_nvdisasm_lists_it(path):
    arch = path.stem.rpartition(".")[2]
    ours, theirs = cubin.functions(path.read_bytes(), arch), sass_instructions(path.with_suffix(".sass").read_text())
    assert ours.keys() == theirs.keys()
    for name, listed in theirs.items():
        assert [each.line for each in ours[name]] == [each.line for each in listed]
        assert sass_accesses(ours[name]) == sass_accesses(listed)
    assert any(each.line for each in next(iter(ours.values())))


@pytest.mark.parametrize("path", CUBINS, ids=lambda path: path.stem)
def test_damaged_cubins_are_refused(path):
    whole, arch = path.read_bytes(), path.stem.rpartition(".")[2]
    for data in [b"", b"\x7fELF\x01" + whole[5:], b"\x7fELF\x02"]:
        said = "it is damaged" if data.startswith(b"\x7fELF\x02") else "this is no cubin: it does not begin as an ELF"
        with pytest.raises(UsageError, match=said):
            cubin.functions(data, arch)
    for size in range(0, len(whole) // 2, 97):
        with pytest.raises(UsageError, match=r"this is no cubin|it is damaged"):
            cubin.functions(whole[:size], arch)
    for at in range(0, len(whole), 41):  # wherever a byte is wrong it ends, with an answer or with this error
        with contextlib.suppress(UsageError):
            cubin.functions(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :], arch)


def test_chips_with_instructions_of_eight_bytes_are_refused():
    with pytest.raises(UsageError, match="only that of sm_70 and later"):
        cubin.functions(CUBINS[0].read_bytes(), "sm_61")


@pytest.mark.parametrize(
    "path, kernel, wanted",
    [
        ("36_cp_async.sm_90", "k36_ok", 16),
        ("36_cp_async.sm_90", "k36_wait_one", 32),  # two copies of 16 bytes, then the wait
        ("44_vector_tail.sm_120", "k44_ok", 96),  # six loads of 16 bytes, then a store of the first
        ("41_misaligned_vectors.sm_75", "k41_f4", 16),
    ],
)
def test_bytes_under_way_end_where_they_are_waited_for(path, kernel, wanted):
    got = cubin.bytes_in_flight((DATA / "sass" / f"{path}.cubin").read_bytes(), path.partition(".")[2], kernel)
    assert got == wanted


# with the tools


@has_both
@pytest.mark.parametrize("number", range(0, len(PTX), 3), ids=lambda n: f"{PTX[n].stem}-{CHIPS[n % len(CHIPS)]}")
def test_kernels_are_read_as_by_nvdisasm(number):
    """A third of the files, for one chip each, in turn; tools/compare_readers.py has all files for all chips."""
    arch = f"sm_{CHIPS[number % len(CHIPS)]}"
    text = re.sub(r"^\.target .*", f".target {arch}", PTX[number].read_text(), flags=re.MULTILINE)
    try:
        code = ptxas.assemble(text, arch)
    except UsageError as error:
        pytest.skip(f"not for this chip: {str(error).splitlines()[-1]}")
    ours, theirs = cubin.functions(code.cubin, arch), sass_instructions(ptxas.disassemble(code.cubin))
    assert ours.keys() == theirs.keys()
    for name, listed in theirs.items():
        assert [each.line for each in ours[name]] == [each.line for each in listed]
        assert [accessed(each.text) for each in ours[name]] == [accessed(each.text) for each in listed]


@has_ptxas
@pytest.mark.parametrize("file", ["fused", "truth_36_cp_async", "truth_lesson_kernels"])
def test_without_nvdisasm_kernels_are_bound_alike(file, monkeypatch):
    text = (DATA / "ptx" / f"{file}.ptx").read_text()
    monkeypatch.setenv("GPUMEM_NVDISASM", "/nowhere")
    names = re.findall(r"\.entry\s+([\w$]+)", text)
    without = {name: binding.bind(text, name) for name in names}
    assert file == "fused" or all(each.exact for each in without.values())
    monkeypatch.delenv("GPUMEM_NVDISASM")
    if ptxas.tool("nvdisasm"):
        assert without == {name: binding.bind(text, name) for name in names}
