"""The assembler keeps every access of the ladder's kernels: what is counted from PTX is what the hardware does.

ptxas may merge two scalar accesses into one, drop one, or copy a loop's body; then the counts of the lens, which
executes PTX, would not be the machine's. So the memory instructions of each kernel are compared: kind, space, bytes and
cache hints, as often as they occur.
"""

import functools
import importlib.util
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import gpumem
from gpumem import cubin
from gpumem.sass import (
    UnknownInstructionError,
    differences,
    ptx_access,
    ptx_kernels,
    sass_access,
    sass_accesses,
    sass_kernels,
)

ROOT = Path(__file__).parent.parent
KERNELS = ROOT / "csrc" / "kernels"
sys.path.insert(0, str(ROOT / "tools" / "build"))
import cuda_toolkit  # noqa: E402

ARCHS = ["80", "90", "120"]
# A lesson's kernels are in a file of its name. With those that do an operation as fast as they can ptxas may do what it
# likes.
LESSONS = sorted({stage.lesson for stage in gpumem.stages(device="cuda")})


def missing(what: str) -> None:
    """Skips, or fails where GPUMEM_CUDA=1 says that CUDA has to be there."""
    (pytest.fail if cuda_toolkit.wanted() else pytest.skip)(f"needs {what}")


@functools.cache
def disassembler() -> Path | None:
    """The nvdisasm of the toolkit, or of the package nvidia-cuda-nvdisasm."""
    if found := shutil.which("nvdisasm"):
        return Path(found)
    spec = importlib.util.find_spec("nvidia")
    folders = [Path(folder) / "cu13" / "bin" for folder in (spec.submodule_search_locations or [] if spec else [])]
    if toolkit := cuda_toolkit.find():
        folders.append(toolkit.nvcc.resolve().parent)
    return next((path for folder in folders if (path := folder / "nvdisasm").exists()), None)


def compiled(source: Path, arch: str, folder: Path) -> dict[str, tuple[Counter[str], Counter[str]]]:
    """The accesses of each kernel of a file, in PTX and in the machine code that the build's flags make of it."""
    toolkit, tool = cuda_toolkit.find(), disassembler()
    if toolkit is None or not shutil.which("gcc"):
        missing("nvcc and gcc")
    if tool is None:
        missing("nvdisasm: pip install nvidia-cuda-nvdisasm")
    ptx, code = folder / "kernels.ptx", folder / "kernels.cubin"
    flags = ["-O3", "-std=c++17", "-lineinfo", f"-arch=compute_{arch}"]
    subprocess.run([toolkit.nvcc, *flags, "-ptx", source, "-o", ptx], check=True)
    ptxas = toolkit.nvcc.resolve().parent / "ptxas"
    subprocess.run([ptxas, f"-arch=sm_{arch}", ptx, "-o", code], check=True)
    sass = subprocess.run([tool, "-c", code], capture_output=True, text=True, check=True).stdout
    of_ptx, of_sass = ptx_kernels(ptx.read_text()), sass_kernels(sass)
    without = cubin.functions(code.read_bytes(), f"sm_{arch}")
    assert {name: Counter(each.what for each in sass_accesses(found)) for name, found in without.items()} == of_sass
    assert of_ptx.keys() == of_sass.keys()
    return {name: (of_ptx[name], of_sass[name]) for name in of_ptx}


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("lesson", LESSONS)
def test_the_assembler_keeps_every_access_of_a_lesson(lesson, arch, tmp_path):
    kernels = compiled(KERNELS / f"{lesson}.cu", arch, tmp_path)
    assert kernels
    assert all(ptx for ptx, _ in kernels.values()), "a kernel without an access"
    changed = {name: differences(ptx, sass) for name, (ptx, sass) in kernels.items() if ptx != sass}
    assert not changed


@pytest.mark.parametrize("stage", [s for s in gpumem.stages(device="cuda") if s.name != "tuned"], ids=str)
def test_every_stage_of_the_table_is_among_them(stage):
    """But for `tuned`, which is an operation's kernel."""
    assert stage.lesson in LESSONS
    assert stage.kernel in (KERNELS / f"{stage.lesson}.cu").read_text()


# that the comparison can fail

MERGED = """
extern "C" __global__ void two(float *out, const float *in)
{
    __shared__ %s float tile[64];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[2 * threadIdx.x] + tile[2 * threadIdx.x + 1];
}
"""


@pytest.mark.parametrize(
    "qualifier, said",
    [("", "2 x ld.shared 4 in PTX alone; 1 x ld.shared 8 in machine code alone"), ("volatile", "")],
)
def test_two_shared_loads_that_ptxas_merges_are_reported(qualifier, said, tmp_path):
    source = tmp_path / "two.cu"
    source.write_text(MERGED % qualifier)
    assert differences(*compiled(source, "90", tmp_path)["two"]) == said


# the two readers


@pytest.mark.parametrize(
    "statement, wanted",
    [
        ("ld.global.f32 %f1, [%rd6];", "ld.global 4"),
        ("ld.global.nc.v4.u32 {%r1, %r2, %r3, %r4}, [%rd6+16];", "ld.global 16 CONSTANT"),
        ("ld.global.nc.L1::no_allocate.u8 %rs1, [%rd1];", "ld.global 1 CONSTANT NA"),
        ("ld.global.cv.f64 %fd1, [%rd1];", "ld.global 8 STRONG.SYS"),
        ("ld.volatile.global.u32 %r1, [%rd1];", "ld.global 4 STRONG.SYS"),
        ("ld.volatile.shared.f32 %f2, [%r6+4];", "ld.shared 4"),
        ("ld.acquire.gpu.u64 %rd1, [%rd2];", "ld.generic 8 STRONG.GPU"),
        ("st.global.cs.v2.b64 [%rd1], {%rd2, %rd3};", "st.global 16 EF"),
        ("st.shared::cta.u16 [%r1], %rs1;", "st.shared 2"),
        ("atom.global.add.u32 %r1, [%rd1], 3;", "atom.global.add 4"),
        ("atom.acq_rel.gpu.global.inc.u32 %r1, [%rd1], %r2;", "atom.global.inc 4"),
        ("red.shared.add.u64 [%r1], %rd1;", "red.shared.add 8"),
        ("cp.async.ca.shared.global [%r1], [%rd1], 8;", "cp.async 8"),
        ("cp.async.cg.shared.global.L2::128B [%r1], [%rd1], 16, %r2;", "cp.async 16 BYPASS LTC128B"),
        (
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 128, [%r2];",
            "bulk shared<global",
        ),
        ("cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 128;", "bulk global<shared"),
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2}], [%r3];",
            "tensor.load 2D",
        ),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r5];", "ldmatrix x4"),
        ("cp.async.commit_group;", None),
        ("cp.async.bulk.wait_group 0;", None),
        ("ld.param.u64 %rd1, [k_param_0];", None),
        ("add.s32 %r1, %r2, %r3;", None),
        ("setp.lt.s32 %p1, %r1, %r2;", None),
    ],
)
def test_ptx_is_read(statement, wanted):
    assert ptx_access(statement.rstrip(";")) == wanted
    body = f"\t.reg .b32 %r<9>;\n\n$L_1:\n\t@%p1 {statement}\n\tret;\n\n"
    text = f".visible .entry k(\n\t.param .u64 k_param_0\n)\n{{\n{body}}}\n"
    assert ptx_kernels(text) == {"k": Counter([wanted] if wanted else [])}


@pytest.mark.parametrize(
    "instruction, wanted",
    [
        ("LDG.E R7, desc[UR4][R6.64]", "ld.global 4"),
        ("@!P0 LDG.E.128.CONSTANT.SYS R12, [R6]", "ld.global 16 CONSTANT"),
        ("LDG.E.NA.CONSTANT R9, desc[UR4][R2.64+0x1c]", "ld.global 4 CONSTANT NA"),
        ("LDG.E.64.STRONG.SYS R2, [R2.64]", "ld.global 8 STRONG.SYS"),
        ("@UP1 LDS.U.128 R8, [R4.X16]", "ld.shared 16"),
        ("LDS.S8 R8, [R4]", "ld.shared 1"),
        ("STG.E.EF desc[UR4][R4.64+0xc], R11", "st.global 4 EF"),
        ("STS.U16 [R4], R1", "st.shared 2"),
        ("LDL.64 R2, [R1]", "ld.local 8"),
        ("ATOMG.E.ADD.64.STRONG.GPU PT, R16, desc[UR8][R8.64], R16", "atom.global.add 8"),
        ("REDG.E.ADD.F32.FTZ.RN.STRONG.GPU desc[UR8][R12.64], R21", "red.global.add 4"),
        ("ATOMS.POPC.INC.32 RZ, [R5+URZ]", "atom.shared.add 4"),
        ("ATOMS.CAS R23, [R5+0x18], R14, R15", "atom.shared.cas 4"),
        ("ATOMG.E.MIN.S64.STRONG.GPU PT, R2, desc[UR4][R2.64], R4", "atom.global.min 8"),
        ("REDG.E.ADD.F32x4.FTZ.RN.STRONG.GPU desc[UR4][R4.64], R8", "red.global.add 16"),
        ("REDG.E.ADD.F16x2.RN.STRONG.GPU desc[UR4][R4.64], R8", "red.global.add 4"),
        ("LDGSTS.E.BYPASS.LTC128B.128 [R5], desc[UR8][R2.64]", "cp.async 16 BYPASS LTC128B"),
        ("LDSM.16.M88.4 R8, [R5]", "ldmatrix x4"),
        ("LDSM.16.MT88 R11, [R5]", "ldmatrix x1"),
        ("UBLKCP.S.G [UR8], [UR4], UR6", "bulk shared<global"),
        ("UTMALDG.2D [UR8], [UR6]", "tensor.load 2D"),
        ("@!PT LDS RZ, [RZ]", None),
        ("LDC.64 R2, c[0x0][0x210]", None),
        ("ULDC.64 UR6, c[0x0][0x208]", None),
        ("LDGDEPBAR", None),
        ("BAR.SYNC.DEFER_BLOCKING 0x0", None),
        ("IADD3 R2, R2, 0x1, RZ", None),
    ],
)
def test_machine_code_is_read(instruction, wanted):
    assert sass_access(instruction) == wanted
    text = f".text.k:\n.L_x_0:\n        /*0010*/                   {instruction} ;\n        /*0020*/  EXIT ;\n"
    assert sass_kernels(text) == {"k": Counter([wanted] if wanted else [])}


def test_an_instruction_that_is_not_known_is_an_error():
    with pytest.raises(UnknownInstructionError, match="LDNEW"):
        sass_access("LDNEW.E R1, [R2]")
    with pytest.raises(UnknownInstructionError, match="what"):
        ptx_access("ld.global.what %r1, [%rd1]")


def test_differences_name_both_sides():
    assert differences(Counter({"ld.global 4": 2}), Counter({"ld.global 8": 1})) == (
        "2 x ld.global 4 in PTX alone; 1 x ld.global 8 in machine code alone"
    )
    assert differences(Counter("aab"), Counter("baa")) == ""
