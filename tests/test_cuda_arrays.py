"""CUDA arrays behind the same calls: on a GPU, and without one on a driver that runs on the CPU."""

import os
import subprocess
import sys
import threading

import fake_cuda
import numpy as np
import pytest
from sizes import not_small, sized

import gpumem
from gpumem import _core, device_peers

BUILT = bool(_core._cuda()["chips"])


# without a GPU


def test_on_a_driver_without_a_device(fake_driver):
    fake_cuda.run_checks(fake_driver, "fake_cuda_checks.py", "fake_cuda_sums.py")


@pytest.mark.skipif(BUILT, reason="this gpumem was built with CUDA")
@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_a_build_without_cuda_says_so(device):
    with pytest.raises(RuntimeError, match=r"no CUDA kernels: this gpumem was built without CUDA \(GPUMEM_CUDA=0"):
        gpumem.copy(np.zeros(3), device=device)


# on a GPU


def bits(torch, *shape, dtype=None, seed=0):
    """Random bytes as that type."""
    dtype = dtype or torch.float32
    generator = torch.Generator("cuda").manual_seed(seed)
    size = torch.empty(0, dtype=dtype).element_size()
    made = torch.randint(0, 256, (*shape, size), dtype=torch.uint8, device="cuda", generator=generator)
    return made.view(dtype).reshape(shape)


def same(torch, a, b):
    """Whether two tensors hold the same bytes."""
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return False
    # A fresh copy: the strides of axes of length 1 may be anything, and view() minds them.
    a, b = (torch.empty(each.shape, dtype=each.dtype, device="cuda").copy_(each) for each in (a, b))
    a, b = (each.reshape(-1).view(torch.uint8) for each in (a, b))
    return torch.equal(a, b)


TYPES = ["bool", "uint8", "int8", "int16", "float16", "bfloat16", "int32", "float32", "int64", "float64"]
TYPES += ["complex64", "complex128", "float8_e4m3fn", "float8_e5m2"]
SHAPES = [
    (1,),
    (7,),
    (3, 4),
    (64, 64),
    (63, 65),
    (100, 200),
    (1025, 7),
    (5, 6, 7),
    (33, 1, 31),
    (2, 3, 4, 5, 6),
    (0, 3),
]


@pytest.mark.gpu
@pytest.mark.parametrize("name", TYPES)
def test_every_type_comes_back_as_a_tensor(torch, name):
    dtype = getattr(torch, name)
    for shape in SHAPES:
        x = bits(torch, *shape, dtype=torch.uint8).bool() if name == "bool" else bits(torch, *shape, dtype=dtype)
        result = gpumem.transpose(x)
        assert type(result) is torch.Tensor
        assert (result.device, result.is_contiguous()) == (x.device, True)
        assert same(torch, result, x.permute(*reversed(range(x.dim()))))
        assert same(torch, gpumem.copy(x[..., ::2]), x[..., ::2])
        if x.dim() > 1:
            assert same(torch, gpumem.matrix_transpose(x), x.mT)
            assert same(torch, gpumem.to_aos(gpumem.to_soa(x)), x)
            assert same(torch, gpumem.to_aos([x[..., i] for i in range(x.shape[-1])]), x)


@pytest.mark.gpu
def test_views_of_every_kind(torch):
    x = bits(torch, 40, 60, 18)
    for view in [x[::2], x[:, 3:], x[..., ::3], x.permute(2, 0, 1), x[:1].expand(40, 60, 18), x[3:3], x[0, 0, 0]]:
        assert same(torch, gpumem.copy(view), view)
        back = tuple(reversed(range(view.dim())))
        assert same(torch, gpumem.permute_dims(view, back), view.permute(back))


@pytest.mark.gpu
def test_lazy_tensors_are_refused(torch):
    x = torch.ones(3, 3, device="cuda")
    with pytest.raises(BufferError, match=r"x.detach\(\)"):
        gpumem.copy(x.requires_grad_())
    with pytest.raises(BufferError, match=r"x.resolve_conj\(\)"):
        gpumem.copy(torch.ones(3, dtype=torch.complex64, device="cuda").conj())


@pytest.mark.gpu
def test_out(torch):
    x = bits(torch, 300, 200)
    memory = torch.full((200, 2, 300), 7.0, device="cuda")
    out = memory[:, 1]
    assert gpumem.transpose(x, out=out) is out
    assert same(torch, out, x.T)
    assert (memory[:, 0] == 7).all()
    with pytest.raises(ValueError, match="out is in host memory and the result is in CUDA device 0"):
        gpumem.transpose(x, out=torch.empty(200, 300))
    with pytest.raises(ValueError, match="out is in CUDA device 0 and the result is in host memory"):
        gpumem.transpose(x.cpu(), out=out)
    with pytest.raises(ValueError, match="share memory"):
        gpumem.copy(x, out=x[:1].expand(300, 200))
    with pytest.raises(ValueError, match="device 'cpu': x is in the memory of CUDA device 0"):
        gpumem.copy(x, device="cpu")
    assert same(torch, gpumem.copy(x, device=x.device), x)


@pytest.mark.gpu
def test_shifts_inside_one_buffer(torch):
    """See pytorch 197829: up to 46,000 wrong items, other ones in each run."""
    for turn in range(sized(20, 1)):
        x = bits(torch, sized(1024, 64), 2048, seed=turn)
        expected = x[:-1].clone()
        gpumem.copy(x[:-1], out=x[1:])
        assert same(torch, x[1:], expected)


@pytest.mark.gpu
@pytest.mark.parametrize(
    "shape",
    sized(
        [(80000, 5, 5), (4096, 4096), (4097, 4097), (3, 1000, 1000)],
        [(800, 5, 5), (256, 256), (257, 257), (3, 100, 100)],
    ),
    ids=str,
)
@pytest.mark.parametrize("name", ["uint8", "float16", "float32", "complex128"])
def test_squares_in_place(torch, shape, name):
    """See pytorch 198280."""
    x = bits(torch, *shape, dtype=getattr(torch, name))
    expected = x.mT.contiguous()
    assert gpumem.matrix_transpose(x, out=x) is x
    assert same(torch, x, expected)


@not_small("a hundred megabytes each")
@pytest.mark.gpu
@pytest.mark.parametrize("name", ["uint8", "int16", "float32", "complex128"])
@pytest.mark.parametrize("shape, axes", [((7_000_001, 4, 4), (0, 2, 1)), ((3, 9001, 61, 61), (0, 1, 3, 2)),
                                         ((16, 400_001, 16), (2, 1, 0))], ids=str)  # fmt: skip
def test_small_squares_in_place_piece_by_piece(torch, shape, axes, name):
    dtype = getattr(torch, name)
    count = min(1, 1.2e8 / (np.prod(shape) * dtype.itemsize))
    longest = shape.index(max(shape))
    shape = tuple(int(n * count) if axis == longest else n for axis, n in enumerate(shape))
    x = torch.randint(0, 100, shape, device="cuda").to(dtype)
    expected = x.permute(axes).clone()
    assert gpumem.permute_dims(x, axes, out=x) is x
    assert torch.equal(x, expected)


@not_small("a gigabyte, ten times")
@pytest.mark.gpu
def test_a_gigabyte_filled_on_another_stream(torch):
    """See data-apis/array-api 974: what is under way on the current stream is waited for, on the device."""
    side, n = torch.cuda.Stream(), 1 << 28
    x = torch.empty(n // 4096, 4096, device="cuda")
    for turn in range(10):
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            x.fill_(turn)
            result = gpumem.transpose(x)
            x.fill_(-1)
            assert bool((result == turn).all())


@not_small("gigabytes, which are there to keep a stream busy")
@pytest.mark.gpu
@pytest.mark.parametrize("as_handle", [True, False])
def test_a_stream_of_one_s_own(torch, as_handle):
    """Input from the current stream, work on another, and the current one goes on as if nothing were."""
    side = torch.cuda.Stream()
    if not as_handle and not hasattr(side, "__cuda_stream__"):
        pytest.skip("this PyTorch's streams have no __cuda_stream__")
    x = torch.empty(1 << 14, 1 << 14, device="cuda")
    for turn in range(5):
        x.fill_(turn)
        result = gpumem.transpose(x, stream=side.cuda_stream if as_handle else side)
        x.fill_(-1)
        assert bool((result == turn).all())
        del result  # its memory is used again at once
        torch.full((1 << 14, 1 << 14), 9.0, device="cuda")


@not_small("PyTorch captures no graph without its cache of memory")
@pytest.mark.gpu
def test_a_graph(torch):
    x, square = bits(torch, 1000, 777), bits(torch, 512, 512)
    gpumem.transpose(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = gpumem.transpose(x)
        gpumem.transpose(square, out=square)
        shifted = gpumem.copy(x[:-1], out=x[1:])  # through a temporary array
        z = gpumem.transpose(y, stream=torch.cuda.Stream().cuda_stream)
    for turn in range(3):
        fresh, other = bits(torch, 1000, 777, seed=turn), bits(torch, 512, 512, seed=turn)
        x.copy_(fresh)
        square.copy_(other)
        graph.replay()
        assert same(torch, y, fresh.T)
        assert same(torch, z, fresh)
        assert same(torch, square, other.T)
        assert same(torch, shifted, fresh[:-1])


@not_small("PyTorch captures no graph without its cache of memory")
@pytest.mark.gpu
@pytest.mark.usefixtures("cuda_device")
def test_first_calls_inside_a_graph():
    """Kernels are loaded there."""
    pytest.importorskip("torch")
    code = """
import torch, gpumem
x = torch.arange(12.0, device="cuda").reshape(3, 4)
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = gpumem.transpose(x)
graph.replay()
assert torch.equal(y, x.T)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@not_small("1,600 calls")
@pytest.mark.gpu
def test_eight_threads(torch):
    wrong = []

    def work(seed):
        with torch.cuda.stream(torch.cuda.Stream()):
            x = bits(torch, 500 + seed, 300, seed=seed)
            for _ in range(200):
                if not same(torch, gpumem.transpose(x), x.T):
                    wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.gpu
def test_a_device_that_is_not_the_current_one(torch):
    if torch.cuda.device_count() < 2:
        pytest.skip("one device")
    x = bits(torch, 300, 200).to("cuda:1")
    with torch.cuda.device(0):
        result = gpumem.transpose(x)
        assert torch.cuda.current_device() == 0
    assert result.device == x.device
    assert same(torch, result, x.T)
    with pytest.raises(ValueError, match="out is in CUDA device 0"):
        gpumem.transpose(x, out=torch.empty(200, 300, device="cuda:0"))


@not_small("all the memory")
@pytest.mark.gpu
def test_no_memory_left(torch):
    x = torch.empty(1, device="cuda").expand(1 << 20, 1 << 20)
    for _ in range(3):
        with pytest.raises((MemoryError, RuntimeError)):
            gpumem.copy(x)
        small = bits(torch, 64, 64)
        assert same(torch, gpumem.transpose(small), small.T)
    with pytest.raises(MemoryError, match="not enough memory on the CUDA device"):
        gpumem.copy(Interface(x))
    assert same(torch, gpumem.transpose(small), small.T)


class Interface:
    """What Numba's arrays have, and nothing else."""

    def __init__(self, array, **lies):
        self.array, self.lies = array, lies

    @property
    def __cuda_array_interface__(self):
        return {**self.array.__cuda_array_interface__, **self.lies}


@not_small("ten thousand calls")
@pytest.mark.gpu
def test_ten_thousand_calls_take_no_memory(torch):
    x, plain = bits(torch, 64, 64), Interface(bits(torch, 64, 64))

    def free():
        torch.cuda.synchronize()
        _core._kept()
        torch.cuda.empty_cache()
        return torch.cuda.mem_get_info()[0]

    def calls(count):
        for _ in range(count):
            gpumem.transpose(x)
            gpumem.transpose(plain)

    calls(1000)
    before = free()
    calls(10_000)
    assert before - free() <= 32 << 20
    assert _core._kept() == 0


@not_small("4 GB")
@pytest.mark.gpu
def test_more_than_2_31_items(torch):
    """See cupy 9187, pytorch 20888."""
    x = torch.randint(0, 256, (65537, 65536), dtype=torch.uint8, device="cuda")
    result = gpumem.transpose(x)
    assert torch.equal(result, x.T)
    assert torch.equal(gpumem.copy(x), x)
    del result
    assert torch.equal(gpumem.copy(x[:, 1:]), x[:, 1:])
    assert torch.equal(gpumem.copy(x.view(-1)[3:]), x.view(-1)[3:])
    assert torch.equal(gpumem.copy(x.view(torch.int16)[1:].view(-1)[::2]), x.view(torch.int16)[1:].view(-1)[::2])
    back = device_peers.Reversed(x, (slice(None), slice(None, None, -1)))
    assert torch.equal(gpumem.copy(back, out=torch.empty_like(x)), x.flip(1))
    torch.cuda.empty_cache()


@pytest.mark.gpu
def test_no_error_is_left_behind_by_empty_arrays(torch):
    for shape in [(0,), (0, 3), (3, 0), (1, 8, 0, 128), (0, 0, 0)]:
        x = torch.empty(shape, device="cuda")
        assert gpumem.transpose(x).shape == x.permute(*reversed(range(x.dim()))).shape
        torch.cuda.synchronize()


@pytest.mark.gpu
def test_cupy(cupy):
    x = cupy.random.default_rng(0).random((300, 200), dtype=cupy.float32)
    result = gpumem.transpose(x)
    assert type(result) is cupy.ndarray
    assert (result == x.T).all()
    assert (gpumem.copy(x[::2, ::-3]) == x[::2, ::-3]).all()
    assert type(gpumem.transpose(x[:0])) is cupy.ndarray
    out = cupy.zeros((200, 300), "f4")
    assert gpumem.transpose(x, out=out) is out
    assert (out == x.T).all()
    square = x[:200, :200].copy()
    expected = square.T.copy()
    gpumem.transpose(square, out=square)
    assert (square == expected).all()
    with pytest.raises((BufferError, ValueError)):
        gpumem.copy(x, stream=0)


@not_small("gigabytes, which are there to keep a stream busy")
@pytest.mark.gpu
@pytest.mark.parametrize("named", [True, False])
def test_cupy_s_streams(cupy, named):
    """A current stream that is not the default one; ours is the legacy default stream unless it is named."""
    with cupy.cuda.Stream(non_blocking=True) as side:
        x = cupy.empty((1 << 14, 1 << 14), "f4")
        for turn in range(5):
            x.fill(turn)
            result = gpumem.transpose(x, stream=side.ptr if named else None)
            if named:
                x.fill(-1)
            assert bool((result == turn).all())


@not_small("gigabytes, which are there to keep a stream busy")
@pytest.mark.gpu
def test_a_cupy_temporary_lives_until_the_work_is_done(cupy):
    for turn in range(5):
        result = gpumem.transpose(cupy.full((1 << 14, 1 << 14), turn, "f4"))
        cupy.full((1 << 14, 1 << 14), -1, "f4")
        assert bool((result == turn).all())


@pytest.mark.gpu
@pytest.mark.usefixtures("cuda_device")
def test_numba():
    cuda = pytest.importorskip("numba.cuda")
    x = np.random.default_rng(0).random((300, 200), np.float32)
    array = cuda.to_device(x)
    result = gpumem.transpose(array)
    assert type(result) is type(array)
    assert (result.copy_to_host() == x.T).all()
    assert (gpumem.copy(array[::2]).copy_to_host() == x[::2]).all()


@not_small("a process of its own")
@pytest.mark.gpu
@pytest.mark.usefixtures("cuda_device")
def test_jax():
    code = """
import jax, jax.numpy as jnp, gpumem
if jax.default_backend() != "gpu":
    raise SystemExit(77)
x = jax.random.uniform(jax.random.key(0), (300, 200))
result = gpumem.transpose(x)
assert isinstance(result, jax.Array), type(result)
assert bool((result == x.T).all())
assert bool((gpumem.transpose(jnp.cumsum(x, axis=1)) == jnp.cumsum(x, axis=1).T).all())
"""
    env = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    if done.returncode == 77 or "No module named 'jax'" in done.stderr:
        pytest.skip("no JAX for this device")
    assert done.returncode == 0, done.stderr[-3000:]


@not_small("gigabytes, which are there to keep a stream busy")
@pytest.mark.gpu
def test_the_interface_s_stream(torch):
    side = torch.cuda.Stream()
    x = torch.empty(1 << 14, 1 << 14, device="cuda")
    torch.cuda.synchronize()
    for turn in range(3):
        with torch.cuda.stream(side):
            x.fill_(turn)
        result = gpumem.transpose(Interface(x, stream=side.cuda_stream))
        with torch.cuda.stream(side):
            x.fill_(-1)
            assert bool((torch.from_dlpack(result) == turn).all())
    with pytest.raises(ValueError, match="stream 0"):
        gpumem.copy(Interface(x, stream=0))


@pytest.mark.gpu
@pytest.mark.parametrize(
    "shape",
    sized(
        [(5000, 6000, 3), (3, 5000, 6000), (9001, 8999), (1,), (0, 5)],
        [(50, 60, 3), (3, 50, 60), (91, 89), (1,), (0, 5)],
    ),
    ids=str,
)
@pytest.mark.usefixtures("cuda_device")
def test_host_arrays_through_the_device(shape):
    x = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    for axes in {tuple(range(x.ndim)), tuple(reversed(range(x.ndim))), (*range(1, x.ndim), 0)}:
        result = gpumem.permute_dims(x, axes, device="cuda")
        assert type(result) is np.ndarray
        assert np.array_equal(result, x.transpose(axes))
    out = np.zeros(shape[::-1], np.uint8)
    assert gpumem.transpose(x, out=out, device="cuda") is out
    assert np.array_equal(out, x.T)
    assert np.array_equal(gpumem.copy(x[::-1], device="cuda"), x[::-1])


@not_small("a process of its own")
@pytest.mark.gpu
@pytest.mark.usefixtures("cuda_device")
def test_a_fork_before_the_first_use():
    code = """
import os, numpy as np, gpumem
if pid := os.fork():
    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
x = np.arange(12).reshape(3, 4)
assert (gpumem.transpose(x, device="cuda") == x.T).all()
"""
    subprocess.run([sys.executable, "-c", code], check=True)
