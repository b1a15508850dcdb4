"""Every instruction that works lane by lane, on every ISA variant, against NumPy or Python's integers.

A row is the instruction, the types of its operands and of its result, and what it should give. Operands are random,
with the values that matter (zeros, extremes, infinities, NaN, subnormal numbers) among them. The block has 83 threads,
so that results go to whole registers and are blended into others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from lens_run import HEAD, ISAS, run

N = 4 * 83
DTYPES = {
    **{
        f"{kind}{8 * size}": np.dtype(f"{letter}{size}")
        for kind, letter in (("u", "u"), ("s", "i"))
        for size in (1, 2, 4, 8)
    },
    **{f"f{8 * size}": np.dtype(f"f{size}") for size in (2, 4, 8)},
}
INTEGERS = ["u16", "s16", "u32", "s32", "u64", "s64"]
ROUNDINGS = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


class Row(NamedTuple):
    text: str  # {0} the result, {1} ... the operands
    operands: list[str]
    result: str
    expected: Callable[..., Any]
    finite: bool = False  # only where all operands are, and the result is not zero


def size(kind: str) -> int:
    return DTYPES[kind].itemsize


def operand(kind: str, rng: np.random.Generator) -> np.ndarray:
    dtype = DTYPES[kind]
    if dtype.kind == "f":
        plain = np.dtype(f"u{dtype.itemsize}")
        x = rng.integers(0, 256**dtype.itemsize - 1, N, dtype=plain, endpoint=True).view(dtype)
        x[: N // 2] = (rng.standard_normal(N // 2) * 10.0 ** rng.integers(-3, 4, N // 2)).astype(dtype)
        info = np.finfo(dtype)
        special = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal, 0.5, -2.5]
        x[-len(special) :] = rng.permutation(np.array(special, dtype))
        return x
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, N, dtype=dtype, endpoint=True)
    x[: N // 4] = rng.integers(max(info.min, -40), 40, N // 4).astype(dtype)
    x[-5:] = [0, 1, info.max, info.min, info.max // 2]
    return rng.permutation(x)


def kernel(row: Row) -> str:
    register = {1: "%h", 2: "%h", 4: "%r", 8: "%d"}
    kinds = [row.result, *row.operands]
    names = [f"{register[size(kind)]}{1 + i}" for i, kind in enumerate(kinds)]
    lines = [
        HEAD + f".visible .entry k({', '.join(f'.param .u64 p{i}' for i in range(len(kinds)))}) {{",
        ".reg .b16 %h<20>; .reg .b32 %r<20>; .reg .b64 %d<40>; .reg .pred %p<9>;",
        "mov.u32 %r19, %ctaid.x; mov.u32 %r18, %ntid.x; mov.u32 %r17, %tid.x; mad.lo.s32 %r19, %r19, %r18, %r17;",
    ]
    for i, kind in enumerate(kinds):
        lines.append(f"ld.param.u64 %d{20 + i}, [p{i}]; mul.wide.u32 %d{30 + i}, %r19, {size(kind)};")
        lines.append(f"add.s64 %d{20 + i}, %d{20 + i}, %d{30 + i};")
        if i:
            lines.append(f"ld.global.{letter(kind)} {names[i]}, [%d{20 + i}];")
    lines += [row.text.format(*names), f"st.global.{letter(row.result)} [%d20], {names[0]};", "ret; }"]
    return "\n".join(lines)


def letter(kind: str) -> str:
    return "u8" if size(kind) == 1 else f"b{8 * size(kind)}"


# --- references ------------------------------------------------------------------------------------------------------


def wrapped(value: int, kind: str) -> int:
    width = 8 * size(kind)
    value &= (1 << width) - 1
    return value - (1 << width) if DTYPES[kind].kind == "i" and value >> (width - 1) else value


def each(function: Callable[..., int], result: str) -> Callable[..., np.ndarray]:
    """A function of Python's integers, for arrays; its result is taken modulo the type's range."""

    def for_arrays(*arrays: np.ndarray) -> np.ndarray:
        rows = zip(*(array.tolist() for array in arrays), strict=True)
        return np.array([wrapped(int(function(*row)), result) for row in rows], DTYPES[result])

    return for_arrays


def quotient(a: int, b: int) -> int:
    if b == 0:
        return -1
    return -(abs(a) // abs(b)) if (a < 0) != (b < 0) else abs(a) // abs(b)


def remainder(a: int, b: int) -> int:
    return a if b == 0 else a - quotient(a, b) * b


def signed(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def part(value: int, at: int, width: int, kind: str) -> int:
    """The number of `width` bits at bit `at`."""
    value = value >> at & ((1 << width) - 1)
    return signed(value, width) if kind == "s" else value


def extract_signed(a: int, at: int, count: int, width: int) -> int:
    """bfe.s as the PTX manual writes it, bit by bit."""
    at, count, a = at & 255, count & 255, a & ((1 << width) - 1)
    sign = a >> min(at + count - 1, width - 1) & 1 if count else 0
    return sum((a >> at + i & 1 if i < count and at + i <= width - 1 else sign) << i for i in range(width))


def insert(a: int, b: int, at: int, count: int, width: int) -> int:
    at, count = at & 255, count & 255
    for i in range(count):
        if at + i < width:
            b = b & ~(1 << at + i) | (a >> i & 1 if i < width else 0) << at + i
    return b


def permute(a: int, b: int, selector: int) -> int:
    result = 0
    for i in range(4):
        each_byte = selector >> 4 * i
        byte = (a | b << 32) >> 8 * (each_byte & 7) & 255
        result |= ((255 if byte & 128 else 0) if each_byte & 8 else byte) << 8 * i
    return result


def permute_mode(mode: str, a: int, b: int, c: int) -> int:
    c &= 3
    byte = lambda i: (a | b << 32) >> 8 * (i % 8) & 255  # noqa: E731
    chosen = {
        "f4e": [c, c + 1, c + 2, c + 3],
        "b4e": [c, c - 1, c - 2, c - 3],
        "rc8": [c] * 4,
        "ecl": [max(i, c) for i in range(4)],
        "ecr": [min(i, c) for i in range(4)],
        "rc16": [2 * (c & 1) + i % 2 for i in range(4)],
    }[mode]
    return sum(byte(i) << 8 * k for k, i in enumerate(chosen))


def one_nan(x: np.ndarray) -> np.ndarray:
    """Single precision has one NaN."""
    x = np.array(x, np.float32)
    x.view("u4")[np.isnan(x)] = 0x7FFFFFFF
    return x


def flushed(x: np.ndarray) -> np.ndarray:
    x = np.array(x, np.float32)
    bits = x.view("u4")
    bits[bits & 0x7F800000 == 0] &= 0x80000000
    return x


def rounded(value: Fraction, mode: str) -> float:
    """An exact number as float32, in any rounding."""
    if value == 0:
        return 0.0
    size_of, exponent = (
        abs(value),
        math.frexp(abs(value.numerator) / value.denominator if abs(value) < 2**1000 else 1.0)[1],
    )
    while Fraction(2) ** exponent > size_of:
        exponent -= 1
    while Fraction(2) ** (exponent + 1) <= size_of:
        exponent += 1
    step = Fraction(2) ** max(exponent - 23, -149)
    count, rest = divmod(size_of, step)
    up = {
        "rn": rest * 2 > step or (rest * 2 == step and count % 2 == 1),
        "rz": False,
        "rp": rest > 0 and value > 0,
        "rm": rest > 0 and value < 0,
    }[mode]
    result = (count + up) * step
    if result >= Fraction(2) ** 128:
        away = mode == "rn" or (mode == "rp" and value > 0) or (mode == "rm" and value < 0)
        return math.copysign(math.inf if away else float(np.finfo("f4").max), value)
    return math.copysign(float(result), value)


def exactly(function: Callable[..., Fraction], mode: str) -> Callable[..., np.ndarray]:
    def for_arrays(*arrays: np.ndarray) -> np.ndarray:
        result = np.zeros(N, np.float32)
        for i, row in enumerate(zip(*(array.tolist() for array in arrays), strict=True)):
            if all(map(math.isfinite, row)):
                result[i] = rounded(function(*map(Fraction, row)), mode)
        return result

    return for_arrays


def to_integer(kind: str, mode: str) -> Callable[[np.ndarray], np.ndarray]:
    """Out of range: the nearest; NaN: 0, but the top bit alone where 64 bits are on one side."""
    info = np.iinfo(DTYPES[kind])

    def for_array(x: np.ndarray) -> np.ndarray:
        wide = x.dtype.itemsize == 8 or size(kind) == 8
        result = []
        for value in ROUNDINGS[mode](x.astype("f8")).tolist():
            if math.isnan(value):
                result.append(wrapped(1 << 8 * size(kind) - 1 if wide else 0, kind))
            else:
                limit = info.max if value > 0 else info.min
                result.append(int(limit) if math.isinf(value) else max(int(info.min), min(int(info.max), int(value))))
        return np.array(result, DTYPES[kind])

    return for_array


def smaller(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """-0 before 0, and numbers before NaN."""
    chosen = np.where((a < b) | ((a == b) & np.signbit(a)), a, b)
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, chosen))


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
FLOAT_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    **COMPARISONS,
    "ne": lambda a, b: (a < b) | (a > b),
    "equ": lambda a, b: ~((a < b) | (a > b)),
    "neu": lambda a, b: a != b,
    "ltu": lambda a, b: ~(a >= b),
    "leu": lambda a, b: ~(a > b),
    "gtu": lambda a, b: ~(a <= b),
    "geu": lambda a, b: ~(a < b),
    "num": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "nan": lambda a, b: np.isnan(a) | np.isnan(b),
}

# --- rows ------------------------------------------------------------------------------------------------------------


def integer_rows() -> list[Row]:
    rows = []
    for t in INTEGERS:
        width = 8 * size(t)
        two = {
            "add": lambda a, b: a + b,
            "sub": lambda a, b: a - b,
            "mul.lo": lambda a, b: a * b,
            "mul.hi": lambda a, b, width=width: a * b >> width,
            "div": quotient,
            "rem": remainder,
            "min": min,
            "max": max,
        }
        rows += [Row(f"{name}.{t} {{0}}, {{1}}, {{2}};", [t, t], t, each(f, t)) for name, f in two.items()]
        three = {
            "mad.lo": lambda a, b, c: a * b + c,
            "mad.hi": lambda a, b, c, width=width: (a * b >> width) + c,
            "sad": lambda a, b, c: abs(a - b) + c,
        }
        rows += [Row(f"{name}.{t} {{0}}, {{1}}, {{2}}, {{3}};", [t] * 3, t, each(f, t)) for name, f in three.items()]
        if t[0] == "s":
            rows.append(Row(f"neg.{t} {{0}}, {{1}};", [t], t, each(lambda a: -a, t)))
            rows.append(Row(f"abs.{t} {{0}}, {{1}};", [t], t, each(abs, t)))
        rows.append(Row(f"shr.{t} {{0}}, {{1}}, {{2}};", [t, "u32"], t, each(lambda a, b: a >> min(b, 64), t)))
        rows.append(Row(f"shl.b{width} {{0}}, {{1}}, {{2}};", [t, "u32"], t, each(lambda a, b: a << min(b, 64), t)))
        if width < 64:
            wide = f"{t[0]}{2 * width}"
            rows.append(Row(f"mul.wide.{t} {{0}}, {{1}}, {{2}};", [t, t], wide, each(lambda a, b: a * b, wide)))
            rows.append(
                Row(
                    f"mad.wide.{t} {{0}}, {{1}}, {{2}}, {{3}};",
                    [t, t, wide],
                    wide,
                    each(lambda a, b, c: a * b + c, wide),
                )
            )
        for name, f in COMPARISONS.items():
            choose = each(lambda a, b, f=f: 7 if f(a, b) else 3, "u32")
            rows.append(Row(f"setp.{name}.{t} %p1, {{1}}, {{2}}; selp.u32 {{0}}, 7, 3, %p1;", [t, t], "u32", choose))
            rows.append(
                Row(f"set.{name}.u32.{t} {{0}}, {{1}}, {{2}};", [t, t], "u32", each(lambda a, b, f=f: -f(a, b), "u32"))
            )
    clamp = lambda value: max(-(2**31), min(2**31 - 1, value))  # noqa: E731
    rows += [
        Row("add.sat.s32 {0}, {1}, {2};", ["s32"] * 2, "s32", each(lambda a, b: clamp(a + b), "s32")),
        Row("sub.sat.s32 {0}, {1}, {2};", ["s32"] * 2, "s32", each(lambda a, b: clamp(a - b), "s32")),
        Row("mul24.lo.s32 {0}, {1}, {2};", ["s32"] * 2, "s32", each(lambda a, b: signed(a, 24) * signed(b, 24), "s32")),
        Row(
            "add.cc.u32 {0}, {1}, {2}; addc.u32 {0}, {3}, 0;",
            ["u32"] * 3,
            "u32",
            each(lambda a, b, c: c + (a + b >> 32), "u32"),
        ),
        Row(
            "sub.cc.u32 {0}, {1}, {2}; subc.u32 {0}, {3}, 0;",
            ["u32"] * 3,
            "u32",
            each(lambda a, b, c: c - (a < b), "u32"),
        ),
        Row(
            "add.cc.u64 {0}, {1}, {2}; addc.u64 {0}, {3}, {1};",
            ["u64"] * 3,
            "u64",
            each(lambda a, b, c: a + c + (a + b >> 64), "u64"),
        ),
        Row(
            "mad.lo.cc.u32 {0}, {1}, {2}, {3}; madc.hi.u32 {0}, {1}, {2}, {3};",
            ["u32"] * 3,
            "u32",
            each(lambda a, b, c: (a * b >> 32) + c + ((a * b & 0xFFFFFFFF) + c >> 32), "u32"),
        ),
    ]
    return rows


def bit_rows() -> list[Row]:
    rows = []
    for width in (16, 32, 64):
        t = f"u{width}"
        for name, f in {"and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b}.items():
            rows.append(Row(f"{name}.b{width} {{0}}, {{1}}, {{2}};", [t, t], t, each(f, t)))
        rows.append(Row(f"not.b{width} {{0}}, {{1}};", [t], t, each(lambda a: ~a, t)))
        rows.append(Row(f"cnot.b{width} {{0}}, {{1}};", [t], t, each(lambda a: a == 0, t)))
    for width in (32, 64):
        t, s = f"u{width}", f"s{width}"
        one = {
            f"popc.b{width}": ("u32", lambda a: a.bit_count()),
            f"clz.b{width}": ("u32", lambda a, width=width: width - a.bit_length()),
            f"brev.b{width}": (t, lambda a, width=width: int(f"{a:0{width}b}"[::-1], 2)),
            f"bfind.u{width}": ("u32", lambda a: a.bit_length() - 1),
            f"bfind.shiftamt.u{width}": ("u32", lambda a, width=width: width - a.bit_length() if a else -1),
        }
        rows += [Row(f"{name} {{0}}, {{1}};", [t], to, each(f, to)) for name, (to, f) in one.items()]
        rows.append(
            Row(
                f"bfind.s{width} {{0}}, {{1}};",
                [s],
                "u32",
                each(lambda a: (~a if a < 0 else a).bit_length() - 1, "u32"),
            )
        )
        field = [t, "u32", "u32"]
        rows.append(
            Row(
                f"bfe.u{width} {{0}}, {{1}}, {{2}}, {{3}};",
                field,
                t,
                each(lambda a, b, c: a >> (b & 255) & (1 << (c & 255)) - 1, t),
            )
        )
        rows.append(
            Row(
                f"bfe.s{width} {{0}}, {{1}}, {{2}}, {{3}};",
                [s, "u32", "u32"],
                s,
                each(lambda a, b, c, width=width: extract_signed(a, b, c, width), s),
            )
        )
        rows.append(
            Row(
                f"bfi.b{width} {{0}}, {{1}}, {{2}}, {{3}}, {{4}};",
                [t, t, "u32", "u32"],
                t,
                each(lambda a, b, c, d, width=width: insert(a, b, c, d, width), t),
            )
        )
    three = ["u32"] * 3
    for table in (0xE8, 0x96, 0x1B, 0x80, 0xFE, 0x6A):
        looked_up = lambda a, b, c, table=table: sum(  # noqa: E731
            (table >> (a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1) & 1) << i for i in range(32)
        )
        rows.append(Row(f"lop3.b32 {{0}}, {{1}}, {{2}}, {{3}}, {table};", three, "u32", each(looked_up, "u32")))
    rows.append(Row("prmt.b32 {0}, {1}, {2}, {3};", three, "u32", each(permute, "u32")))
    for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"):
        permuted = each(lambda a, b, c, mode=mode: permute_mode(mode, a, b, c), "u32")
        rows.append(Row(f"prmt.b32.{mode} {{0}}, {{1}}, {{2}}, {{3}};", three, "u32", permuted))
    for mode in ("wrap", "clamp"):
        amount = lambda c, mode=mode: c & 31 if mode == "wrap" else min(c, 32)  # noqa: E731
        left = each(lambda a, b, c, amount=amount: (a | b << 32) << amount(c) >> 32, "u32")
        right = each(lambda a, b, c, amount=amount: (a | b << 32) >> amount(c), "u32")
        rows.append(Row(f"shf.l.{mode}.b32 {{0}}, {{1}}, {{2}}, {{3}};", three, "u32", left))
        rows.append(Row(f"shf.r.{mode}.b32 {{0}}, {{1}}, {{2}}, {{3}};", three, "u32", right))
    for x in "us":
        for y in "us":
            for count, width in ((2, 16), (4, 8)):
                total = each(
                    lambda a, b, c, x=x, y=y, n=count, w=width: (
                        c + sum(abs(part(a, w * i, w, x) - part(b, w * i, w, y)) for i in range(n))
                    ),
                    "u32",
                )
                rows.append(
                    Row(f"vabsdiff{count}.u32.{x}32.{y}32.add {{0}}, {{1}}, {{2}}, {{3}};", three, "u32", total)
                )
            dot4 = each(
                lambda a, b, c, x=x, y=y: c + sum(part(a, 8 * i, 8, x) * part(b, 8 * i, 8, y) for i in range(4)), "u32"
            )
            rows.append(Row(f"dp4a.{x}32.{y}32 {{0}}, {{1}}, {{2}}, {{3}};", three, "u32", dot4))
            for half, at in (("lo", 0), ("hi", 16)):
                dot2 = each(
                    lambda a, b, c, x=x, y=y, at=at: (
                        c + sum(part(a, 16 * i, 16, x) * part(b, at + 8 * i, 8, y) for i in range(2))
                    ),
                    "u32",
                )
                rows.append(Row(f"dp2a.{half}.{x}32.{y}32 {{0}}, {{1}}, {{2}}, {{3}};", three, "u32", dot2))
    return rows


def conversion_rows() -> list[Row]:
    rows = []
    integers = ["u8", "s8", *INTEGERS]
    for source in integers:
        for to in integers:
            info = np.iinfo(DTYPES[to])
            clamp = each(lambda a, info=info: max(int(info.min), min(int(info.max), a)), to)
            rows.append(Row(f"cvt.{to}.{source} {{0}}, {{1}};", [source], to, each(lambda a: a, to)))
            rows.append(Row(f"cvt.sat.{to}.{source} {{0}}, {{1}};", [source], to, clamp))
    for source in ("f32", "f64"):
        for mode, whole in ROUNDINGS.items():
            for to in INTEGERS:
                rows.append(Row(f"cvt.{mode}.{to}.{source} {{0}}, {{1}};", [source], to, to_integer(to, mode)))
            rows.append(Row(f"cvt.{mode}.{source}.{source} {{0}}, {{1}};", [source], source, whole))
    for mode in ("rn", "rz", "rm", "rp"):
        for source in ("u32", "s32", "u64", "s64", "f64"):
            same = exactly(lambda a: a, mode)
            rows.append(Row(f"cvt.{mode}.f32.{source} {{0}}, {{1}};", [source], "f32", same, finite=True))
    rows += [
        Row("cvt.f64.f32 {0}, {1};", ["f32"], "f64", lambda a: a.astype("f8")),
        Row("cvt.f32.f16 {0}, {1};", ["f16"], "f32", lambda a: a.astype("f4")),
        Row("cvt.rn.f16.f32 {0}, {1};", ["f32"], "f16", lambda a: a.astype("f2")),
    ]
    return rows


def float_rows() -> list[Row]:
    rows = []
    arithmetic = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
    for name, f in arithmetic.items():
        flush = lambda a, b, f=f: one_nan(flushed(f(flushed(a), flushed(b))))  # noqa: E731
        rows += [
            Row(f"{name}.f32 {{0}}, {{1}}, {{2}};", ["f32"] * 2, "f32", lambda a, b, f=f: one_nan(f(a, b))),
            Row(f"{name}.rn.ftz.f32 {{0}}, {{1}}, {{2}};", ["f32"] * 2, "f32", flush),
            Row(f"{name}.f64 {{0}}, {{1}}, {{2}};", ["f64"] * 2, "f64", f),
            Row(f"{name}.f16 {{0}}, {{1}}, {{2}};", ["f16"] * 2, "f16", f),
        ]
    exact: dict[str, Callable[..., Fraction]] = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "fma": lambda a, b, c: a * b + c,
    }
    for mode in ("rn", "rz", "rm", "rp"):
        for name, g in exact.items():
            count = 3 if name == "fma" else 2
            operands = ", ".join(f"{{{1 + i}}}" for i in range(count))
            rows.append(
                Row(f"{name}.{mode}.f32 {{0}}, {operands};", ["f32"] * count, "f32", exactly(g, mode), finite=True)
            )
    for t in ("f32", "f64"):
        fix = one_nan if t == "f32" else np.asarray
        rows += [
            Row(f"div.rn.{t} {{0}}, {{1}}, {{2}};", [t, t], t, lambda a, b, fix=fix: fix(a / b)),
            Row(f"sqrt.rn.{t} {{0}}, {{1}};", [t], t, lambda a, fix=fix: fix(np.sqrt(a))),
            Row(f"rcp.rn.{t} {{0}}, {{1}};", [t], t, lambda a, fix=fix: fix(a.dtype.type(1) / a)),
            Row(f"min.{t} {{0}}, {{1}}, {{2}};", [t, t], t, smaller),
            Row(f"max.{t} {{0}}, {{1}}, {{2}};", [t, t], t, lambda a, b: -smaller(-a, -b)),
            Row(f"neg.{t} {{0}}, {{1}};", [t], t, np.negative),
            Row(f"abs.{t} {{0}}, {{1}};", [t], t, np.abs),
        ]
    for t in ("f16", "f32", "f64"):
        for name, compare in FLOAT_COMPARISONS.items():
            choose = lambda a, b, compare=compare: np.where(compare(a, b), 7, 3).astype("u4")  # noqa: E731
            rows.append(Row(f"setp.{name}.{t} %p1, {{1}}, {{2}}; selp.u32 {{0}}, 7, 3, %p1;", [t, t], "u32", choose))
    return rows


ROWS = [*integer_rows(), *bit_rows(), *conversion_rows(), *float_rows()]


@pytest.mark.parametrize("row", ROWS, ids=[row.text.partition(" {0}")[0].partition(" %p")[0] for row in ROWS])
def test_every_lane(row):
    rng = np.random.default_rng(len(row.text))
    operands = [operand(kind, rng) for kind in row.operands]
    with np.errstate(all="ignore"):
        expected = np.asarray(row.expected(*operands))
    assert expected.dtype == DTYPES[row.result]
    for isa in ISAS:
        result = np.zeros(N, DTYPES[row.result])
        run(kernel(row), N // 83, 83, result, *operands, isa=isa)
        same = result == expected
        if result.dtype.kind == "f":
            both_nan = np.isnan(result) & np.isnan(expected)
            same = both_nan | (same & (np.signbit(result) == np.signbit(expected)))
        if row.finite:
            same |= ~np.all([np.isfinite(x) for x in operands], axis=0) | (expected == 0)
        wrong = np.flatnonzero(~same)
        assert wrong.size == 0, (isa, [x[wrong[0]] for x in operands], result[wrong[0]], expected[wrong[0]])
