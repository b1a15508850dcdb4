"""Sums of CUDA arrays on a GPU, against NumPy in a wider type. Without one, fake_cuda_sums.py runs the same kernels."""

import itertools
import math
import threading

import numpy as np
import pytest
from sizes import not_small, sized
from test_cuda_arrays import Interface

import gpumem

pytestmark = pytest.mark.gpu


TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
TYPES += ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53, "complex64": 24, "complex128": 53}
# Flat, rows of every length up to a block's, columns, narrow matrices, long rows in slices, several axes.
SHAPES = [(1,), (7,), (1000,), (70001,), (3_000_001,), (3, 4), (100_000, 3), (3, 100_000), (50_001, 4), (999, 5)]
SHAPES += [(513, 64), (512, 512), (300, 1025), (1025, 300), (2, 1_000_000), (20, 30, 40), (7, 1, 33, 65), (64, 3, 5, 7)]
SMALL_SHAPES = [
    (7,),
    (1000,),
    (70001,),
    (3, 4),
    (20_001, 3),
    (3, 20_001),
    (999, 5),
    (129, 64),
    (33, 1025),
    (5, 1, 9, 33),
]


def result_type(name):
    return "int64" if name == "bool" or name.startswith("int") else "uint64" if name.startswith("u") else name


def some(torch, name, shape, seed=0):
    """Any integers; floats of different sizes, whose sums cancel."""
    rng = np.random.default_rng(seed)
    if name == "bool":
        return torch.from_numpy(rng.integers(0, 2, shape, "u1")).cuda().bool()
    if "float" not in name and "complex" not in name:
        limits = np.iinfo(name)
        return torch.from_numpy(rng.integers(limits.min, limits.max, shape, name, endpoint=True)).cuda()
    x = rng.standard_normal(shape) * np.exp2(rng.integers(-6, 6, shape))
    if "complex" in name:
        x = x + 1j * rng.standard_normal(shape)
    return torch.from_numpy(np.asarray(x)).cuda().to(getattr(torch, name))


def wide(torch, x):
    """The same numbers on the host, in a type that holds their sums."""
    if x.dtype == torch.uint64 or x.dtype in (torch.uint16, torch.uint32):
        return x.cpu().numpy().astype("u8")
    if x.dtype.is_complex:
        return x.to(torch.complex128).cpu().numpy()
    return x.to(torch.float64 if x.dtype.is_floating_point else torch.int64).cpu().numpy()


def check(torch, result, x, axis, keepdims=False):
    """Whether it is NumPy's sum: to the bit for integers, rounded once for floats but for the errors of adding."""
    name = str(x.dtype).removeprefix("torch.")
    numbers = wide(torch, x)
    if name.startswith("uint"):
        numbers = numbers.astype("u8")
    expected = numbers.sum(axis=axis, keepdims=keepdims)
    assert str(result.dtype) == f"torch.{result_type(name)}"
    assert (tuple(result.shape), result.device) == (expected.shape, x.device)
    got = wide(torch, result)
    if name not in DIGITS:
        assert np.array_equal(got.view("u8"), expected.astype("u8") if name[0] == "u" else expected.view("u8"))
        return
    count = max(x.numel() // max(result.numel(), 1), 1)
    magnitude = np.abs(numbers).sum(axis=axis, keepdims=keepdims)
    error = magnitude * ((64 + math.log2(count)) * 2.0**-52 + (2.0**-23 if "16" in name else 0))
    rounding = np.abs(expected) * 2.0 ** -DIGITS[name] + 2.0**-24 * (name == "float16")
    assert (np.abs(got - expected) <= error + rounding).all()


def views(torch, x):
    """Views with gaps, from odd places, in other orders."""
    yield x
    yield x.permute(*reversed(range(x.dim())))
    yield x[1:] if x.shape[0] > 1 else x
    yield x[..., 1:] if x.shape[-1] > 1 else x
    yield x[::2, ...]
    yield x[..., ::3]
    if x.dim() > 2:
        yield x.permute(1, 0, *range(2, x.dim()))[:, 1:, ..., :-1]


@pytest.mark.parametrize("name", TYPES)
def test_every_shape_and_axis(torch, name):
    for shape in sized(SHAPES, SMALL_SHAPES):
        x = some(torch, name, shape)
        axes = [None, *range(len(shape)), *([(0, -1)] if len(shape) > 2 else []), ()]
        for axis in axes:
            check(torch, gpumem.sum(x, axis=axis), x, axis)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize(
    "shape", sized([(70001,), (1000, 33), (33, 4096), (12, 17, 260)], [(5001,), (100, 33), (5, 7, 130)]), ids=str
)
def test_every_view(torch, name, shape):
    for x in views(torch, some(torch, name, shape)):
        for axis in [None, 0, -1, *([(0, 2)] if x.dim() > 2 else [])]:
            check(torch, gpumem.sum(x, axis=axis), x, axis)
            check(torch, gpumem.sum(x, axis=axis, keepdims=True), x, axis, keepdims=True)


@pytest.mark.parametrize("name", ["int8", "float16", "float32", "float64"])
def test_every_start_and_length(torch, name):
    memory = some(torch, name, 300_000)
    lengths = sized([1, 2, 15, 16, 17, 255, 1000, 4097, 65536, 250_001], [1, 17, 4097])
    for start, length in itertools.product(sized(range(17), (0, 1, 7, 15)), lengths):
        x = memory[start : start + length]
        check(torch, gpumem.sum(x), x, None)
    every = sized([*range(1, 40), 64, 100, 127, 200, 513, 2049], [1, 2, 3, 4, 5, 8, 17, 33, 100, 513])
    for start, columns in itertools.product(sized(range(5), (0, 3)), every):
        x = memory[start : start + 60 * columns].view(60, columns)
        check(torch, gpumem.sum(x, axis=1), x, 1)
        check(torch, gpumem.sum(x, axis=0), x, 0)


def test_any_address_and_reversed_axes(torch):
    """What PyTorch cannot make: misaligned items, negative strides."""
    memory = torch.empty(4 * 3000 + 16, dtype=torch.uint8, device="cuda")
    numbers = np.arange(3000, dtype="f4")
    for start in sized(range(9), (0, 1, 6)):
        memory[start : start + 12000] = torch.from_numpy(numbers.view("u1")).cuda()
        data = (memory.data_ptr() + start, False)
        lies = {"typestr": "<f4", "shape": (30, 100), "data": data, "strides": None}
        for axis in (None, 0, 1):
            got = torch.from_dlpack(gpumem.sum(Interface(memory, **lies), axis=axis)).cpu().numpy()
            assert np.array_equal(got, numbers.reshape(30, 100).sum(axis))
        last = (data[0] + 4 * 2999, False)
        lies |= {"data": last, "strides": (-400, -4)}
        got = torch.from_dlpack(gpumem.sum(Interface(memory, **lies), axis=1)).cpu().numpy()
        assert np.array_equal(got, numbers.reshape(30, 100)[::-1].sum(1))


@not_small("sums of tens of millions")
def test_more_ones_than_float32_counts(torch):
    for n, total in [(2**24 + 10, 16777226.0), (2 * 10**7, 2e7)]:
        ones = torch.ones(n, 2, device="cuda")
        assert gpumem.sum(ones[:, 0].contiguous()).item() == total
        assert gpumem.sum(ones, axis=0).tolist() == [total, total]
        assert gpumem.sum(ones.T, axis=1).tolist() == [total, total]
        assert gpumem.sum(torch.ones(1, device="cuda").expand(n)).item() == total


@not_small("2 GB")
def test_more_than_2_31_items(torch):
    x = torch.full((2**31 + 77,), -3, dtype=torch.int8, device="cuda")
    assert gpumem.sum(x).item() == -3 * (2**31 + 77)
    columns = x[: 2**31].view(2**30, 2)
    assert gpumem.sum(columns, axis=0).tolist() == [-3 * 2**30] * 2
    del x, columns
    torch.cuda.empty_cache()


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_values(torch, name):
    dtype = getattr(torch, name)
    for items in [[math.nan, -1, 0, 1], [3, 1, 7, math.nan], [-math.inf, math.nan], [math.inf, -math.inf, 1]]:
        assert math.isnan(gpumem.sum(torch.tensor(items, dtype=dtype, device="cuda")).item())
    assert gpumem.sum(torch.tensor([1, math.inf, 2], dtype=dtype, device="cuda")).item() == math.inf
    most = torch.finfo(dtype).max
    if name != "float64":  # what is added in a wider type overflows at the end only
        for n in (16, 100, 100_000):
            x = torch.full((n,), most, dtype=dtype, device="cuda")
            x[1::2] = -most
            x = x.reshape(-1, 2).T.contiguous().reshape(-1)  # the large ones first
            assert gpumem.sum(x).item() == 0
        assert gpumem.sum(torch.full((64,), most, dtype=dtype, device="cuda")).item() == math.inf
    for shape in [(1,), (3,), (8,), (100_003,), (3, 5), (50, 700)]:
        zeros = torch.full(shape, -0.0, dtype=dtype, device="cuda")
        assert torch.signbit(gpumem.sum(zeros, axis=-1)).all()
        assert torch.signbit(gpumem.sum(zeros, axis=0)).all()
    x = torch.ones(200, 100, dtype=dtype, device="cuda")
    x[7, 9], x[150, 99] = math.nan, -math.inf
    rows, columns = gpumem.sum(x, axis=1), gpumem.sum(x, axis=0)
    assert (rows.isnan().nonzero().tolist(), columns.isnan().nonzero().tolist()) == ([[7]], [[9]])
    assert (rows[150].item(), columns[99].item()) == (-math.inf, -math.inf)


@pytest.mark.parametrize("name", TYPES)
def test_result_types(torch, name):
    """Any type that is no lesser a kind; the rest is refused."""
    rank = {"b": 0, "i": 0, "u": 0, "f": 1, "c": 2}
    x = (torch.arange(100, device="cuda") % 10).to(getattr(torch, name)).reshape(10, 10)
    kind = "f" if name == "bfloat16" else name[0]
    for other in TYPES:
        to = "f" if other == "bfloat16" else other[0]
        if rank[to] < rank[kind] or (other == "bool" and name != "bool"):
            with pytest.raises(TypeError, match="cannot be given as"):
                gpumem.sum(x, axis=0, dtype=other)
        else:
            result = gpumem.sum(x, axis=0, dtype=getattr(torch, other))
            assert str(result.dtype) == f"torch.{other}"
            expected = wide(torch, gpumem.sum(x, axis=0)).astype("c16")
            kept = expected if other != "bool" else expected.astype(bool)
            assert np.array_equal(wide(torch, result).astype("c16"), kept)


def test_nothing_to_add(torch):
    for name in TYPES:
        x = torch.empty(5, 0, dtype=getattr(torch, name), device="cuda")
        assert gpumem.sum(x, axis=1).tolist() == [0] * 5
        assert gpumem.sum(x, axis=0).shape == (0,)
        assert gpumem.sum(x).item() == 0


@not_small("the same kernels six times each")
def test_the_same_bits_every_time(torch):
    for shape in [(5_000_000,), (3000, 1000), (300_000, 10), (10, 300_000), (40, 75, 1000), (100_000, 3)]:
        x = some(torch, "float32", shape)
        for axis in [None, *range(len(shape))]:
            first = gpumem.sum(x, axis=axis, dtype="float64")
            for _ in range(5):
                torch.randn(1 << 20, device="cuda")  # other work on the device, other memory
                again = gpumem.sum(x.clone(), axis=axis, dtype="float64")
                assert torch.equal(first.reshape(-1).view(torch.int64), again.reshape(-1).view(torch.int64))


def test_out(torch):
    x = some(torch, "float32", (300, 200))
    memory = torch.full((200, 2), 7.0, device="cuda")
    out = memory[:, 1]
    assert gpumem.sum(x, axis=0, out=out) is out
    check(torch, out, x, 0)
    assert (memory[:, 0] == 7).all()
    wanted = gpumem.sum(x, axis=1)
    assert gpumem.sum(x, axis=1, out=x[:, 3]).data_ptr() == x[:, 3].data_ptr()
    assert torch.equal(x[:, 3], wanted)
    with pytest.raises(ValueError, match="out has dtype"):
        gpumem.sum(x, axis=0, out=out.double())
    with pytest.raises(ValueError, match="out is in host memory"):
        gpumem.sum(x, axis=0, out=torch.empty(200))
    with pytest.raises(ValueError, match="stage"):
        gpumem.sum(x, stage="unrolled")


@not_small("half a gigabyte, twenty times")
def test_streams(torch):
    side, n = torch.cuda.Stream(), 1 << 27
    x = torch.empty(n, device="cuda")
    for turn in range(10):
        with torch.cuda.stream(side):
            x.fill_(turn)
            total = gpumem.sum(x)
            x.fill_(-1)
            assert total.item() == turn * n
        x.fill_(turn)
        total = gpumem.sum(x, stream=side.cuda_stream)
        x.fill_(-1)
        assert total.item() == turn * n
        torch.cuda.synchronize()


@not_small("PyTorch captures no graph without its cache of memory")
def test_a_graph(torch):
    """Every replay finds the marks of the one before wiped."""
    x = torch.zeros(3000, 2000, device="cuda")
    gpumem.sum(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = [gpumem.sum(x), gpumem.sum(x, axis=0), gpumem.sum(x, axis=1), gpumem.sum(x[:, 1:3], axis=0)]
    for turn in range(20):
        x.fill_(turn)
        graph.replay()
        assert results[0].item() == turn * 6e6
        assert (results[1] == turn * 3000).all()
        assert (results[2] == turn * 2000).all()
        assert (results[3] == turn * 3000).all()


@not_small("3,200 calls")
def test_eight_threads(torch):
    wrong = []

    def work(seed):
        with torch.cuda.stream(torch.cuda.Stream()):
            x = torch.full((1000 + seed, 700), float(seed), device="cuda")
            for _ in range(200):
                if gpumem.sum(x).item() != seed * x.numel() or not (gpumem.sum(x, axis=0) == seed * len(x)).all():
                    wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@not_small("all the memory")
def test_no_memory_left(torch):
    x = torch.ones(1, device="cuda").expand(1 << 20, 1 << 20, 2)
    for _ in range(3):
        with pytest.raises((MemoryError, RuntimeError)):
            gpumem.sum(x, axis=2)
        assert gpumem.sum(x[:1000, :1000]).item() == 2e6


@not_small("ten thousand calls")
def test_ten_thousand_calls_take_no_memory(torch):
    x = torch.ones(100_000, device="cuda")

    def free():
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        return torch.cuda.mem_get_info()[0]

    for _ in range(1000):
        gpumem.sum(x)
    before = free()
    for _ in range(10_000):
        gpumem.sum(x)
    assert before - free() <= 32 << 20


def test_cupy_s_arrays(cupy):
    x = cupy.random.default_rng(0).integers(0, 100, (300, 200), dtype=cupy.int32)
    for axis in (None, 0, 1):
        result = gpumem.sum(x, axis=axis)
        assert type(result) is cupy.ndarray
        assert (result == x.sum(axis=axis, dtype="i8")).all()
    assert (gpumem.sum(x[::-1, ::-2], axis=0) == x[::-1, ::-2].sum(axis=0)).all()


@pytest.mark.usefixtures("cuda_device")
def test_host_arrays_through_the_device():
    rng = np.random.default_rng(0)
    for shape in sized([(5000, 6001), (3,), (70, 80, 90)], [(50, 601), (3,), (7, 8, 9)]):
        x = rng.integers(-100, 100, shape, "i2")
        for axis in [None, *range(len(shape))]:
            result = gpumem.sum(x, axis=axis, device="cuda")
            assert np.array_equal(result, x.sum(axis=axis))
            assert np.array_equal(gpumem.sum(x[::-1, ...], axis=axis, device="cuda"), x[::-1].sum(axis=axis))
    with pytest.raises(ValueError, match="stage"):
        gpumem.sum(x, stage="naive", device="cuda")
