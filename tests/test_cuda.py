"""CUDA: a machine without a driver, or with an unfit one, is told why; on a device, movement gives NumPy's bytes."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from sizes import sized

from gpumem import _core

BUILT = bool(_core._cuda()["chips"])
needs_build = pytest.mark.skipif(not BUILT, reason="this gpumem was built without CUDA")

DRIVER = """
int cuDriverGetVersion(int *version) { *version = %(version)d; return 0; }
int cuInit(unsigned flags) { (void)flags; return %(init)d; }
"""


def cuda_of_a_process(library_path: str) -> dict[str, object]:
    code = "import json; from gpumem import _core; print(json.dumps(_core._cuda()))"
    env = {**os.environ, "LD_LIBRARY_PATH": library_path, "PYTHONSAFEPATH": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@needs_build
@pytest.mark.parametrize(
    "version, init, said",
    [
        (13000, 100, "the driver finds none"),
        (13000, 34, "the toolkit's stub, not the driver"),
        (13000, 999, "cuInit of the CUDA driver failed with error 999"),
        (12040, 0, "it serves CUDA 12.4 and this build needs 13.0: update to driver 580 or newer"),
        (13000, 0, "it has no cuCtxGetCurrent of CUDA 4.0"),
    ],
)
def test_an_unfit_driver_is_named_with_the_remedy(version, init, said, tmp_path):
    gcc = shutil.which("gcc")
    if not gcc:
        pytest.skip("no gcc to make a driver with")
    source = tmp_path / "driver.c"
    source.write_text(DRIVER % {"version": version, "init": init})
    subprocess.run([gcc, "-shared", "-fPIC", source, "-o", tmp_path / "libcuda.so.1"], check=True)
    cuda = cuda_of_a_process(str(tmp_path))
    assert said in cuda["reason"]
    assert cuda["devices"] == []


@needs_build
def test_a_library_that_is_no_driver_is_told_from_one(tmp_path):
    (tmp_path / "libcuda.so.1").write_bytes(b"not a library")
    assert "install NVIDIA's driver 580 or newer" in cuda_of_a_process(str(tmp_path))["reason"]


@pytest.mark.skipif(BUILT, reason="this gpumem was built with CUDA")
def test_a_build_without_nvcc_says_so():
    assert "built without CUDA (GPUMEM_CUDA=0, or no nvcc was found)" in _core._cuda()["reason"]


SHAPES = [(1,), (37,), (33, 65), (64, 64), (129, 3), (3, 1027), (255, 257), (5, 17, 33), (2, 3, 5, 7), (40, 1, 24, 48)]


@pytest.mark.gpu
@pytest.mark.parametrize("itemsize", [1, 2, 3, 4, 8, 12, 16, 24])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reversed_axes_at_every_offset_give_numpys_bytes(torch, itemsize, shape):
    rng = np.random.default_rng(len(shape) * itemsize)
    count = int(np.prod(shape))
    room = 64
    offsets = [(0, 0), (1, 0), (0, 3), (5, 2), (8, 4), (16, 12), (7, 9)]
    for src_offset, dst_offset in sized(offsets, offsets[::3]):
        x = rng.integers(0, 256, (*shape, itemsize), np.uint8)
        source = torch.empty(count * itemsize + room, dtype=torch.uint8, device="cuda")
        source[src_offset : src_offset + x.size] = torch.from_numpy(x.reshape(-1)).cuda()
        out = torch.full((count * itemsize + room,), 0xA5, dtype=torch.uint8, device="cuda")
        strides = [int(s) for s in np.empty(shape, f"V{itemsize}").strides]
        wanted_shape = shape[::-1]
        wanted_strides = [int(s) for s in np.empty(wanted_shape, f"V{itemsize}").strides]
        _core._cuda_move(
            0,
            torch.cuda.current_stream().cuda_stream,
            itemsize,
            wanted_shape,
            strides[::-1],
            wanted_strides,
            source.data_ptr() + src_offset,
            out.data_ptr() + dst_offset,
        )
        got = out.cpu().numpy()
        wanted = np.full(count * itemsize + room, 0xA5, np.uint8)
        wanted[dst_offset : dst_offset + x.size] = x.transpose(*range(len(shape))[::-1], len(shape)).reshape(-1)
        assert np.array_equal(got, wanted)


@pytest.mark.gpu
@pytest.mark.parametrize("itemsize", [1, 2, 4, 8])
def test_strided_and_broadcast_views_give_numpys_bytes(torch, itemsize):
    dtype = f"u{itemsize}"
    x = np.random.default_rng(3).integers(0, 200, (40, 60, 18)).astype(dtype)
    source = torch.from_numpy(x.view(np.uint8).reshape(-1)).cuda()
    views = [x[::2], x[:, ::-1], x[:, :, ::3], x[::-1, ::-1, ::-1], x[:, 5:7], x[..., 0]]
    views.append(np.broadcast_to(x[:1], x.shape))
    for view in views:
        out = torch.full((view.size * itemsize + 32,), 0x5A, dtype=torch.uint8, device="cuda")
        start = view.__array_interface__["data"][0] - x.__array_interface__["data"][0]
        dense = np.empty(view.shape, dtype).strides
        stream = torch.cuda.current_stream().cuda_stream
        _core._cuda_move(
            0, stream, itemsize, view.shape, view.strides, dense, source.data_ptr() + start, out.data_ptr()
        )
        got = out.cpu().numpy()
        assert got[: view.size * itemsize].tobytes() == np.ascontiguousarray(view).tobytes()
        assert (got[view.size * itemsize :] == 0x5A).all()


@pytest.mark.gpu
def test_a_device_that_is_not_there_is_named(torch):
    with pytest.raises(RuntimeError, match=r"no such CUDA device: 77; there are \d+, counted from 0"):
        _core._cuda_move(77, 0, 4, (4,), (4,), (4,), 0, 0)
