"""What kinds of instructions a kernel executed, and how many arithmetic operations these are.

The lens counts how often each stretch of instructions was executed, by how many warps and by how many lanes together;
a stretch holds a known number of instructions of each kind. So a mix costs a run next to nothing. Lanes that a guard
keeps out of a single instruction count as if they took part. Divisions, roots and the functions that hardware
approximates count as one operation, a fused multiply-add as two, a matrix product 2 m n k.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

Mix = dict[str, dict[str, int]]

# Kinds of instructions, in the order in which they are shown.
KINDS = {
    "fp16": "half-precision arithmetic",
    "bf16": "bfloat16 arithmetic",
    "fp32": "single-precision arithmetic",
    "fp64": "double-precision arithmetic",
    "tensor fp8": "matrix products of 8-bit floats",
    "tensor fp16": "matrix products of half-precision floats",
    "tensor bf16": "matrix products of bfloat16",
    "tensor tf32": "matrix products of single-precision floats, rounded to 10 bits",
    "tensor fp64": "matrix products of double-precision floats",
    "tensor int": "matrix products of integers",
    "int": "integer arithmetic, addresses included",
    "load": "loads",
    "store": "stores",
    "atomic": "atomics",
    "copy": "asynchronous copies",
    "convert": "conversions",
    "move": "moves and constants",
    "compare": "comparisons and predicates",
    "control": "branches, barriers, fences",
    "warp": "shuffles and votes",
}
FLOATS = tuple(kind for kind in KINDS if kind not in ("int", "tensor int") and re.search(r"fp|bf|tf", kind))

_ARITHMETIC = {
    **dict.fromkeys(("add", "addc", "sub", "subc", "mul", "mul24", "div", "rem"), 1),
    **dict.fromkeys(("fma", "mad", "madc", "mad24"), 2),
    **dict.fromkeys(("sqrt", "rcp", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh"), 1),
    **dict.fromkeys(("min", "max", "abs", "neg", "copysign"), 0),  # counted by no roofline
    **dict.fromkeys(("and", "or", "xor", "not", "cnot", "shl", "shr", "shf", "lop3", "prmt"), 0),
    **dict.fromkeys(("bfe", "bfi", "bfind", "fns", "bmsk", "szext", "popc", "clz", "brev", "sad"), 0),
    "dp4a": 8,
    "dp2a": 4,
    "vabsdiff2": 0,
    "vabsdiff4": 0,
}
_OTHERS = {
    **dict.fromkeys(("ld", "ldu", "ldmatrix", "tex", "tld4"), "load"),
    **dict.fromkeys(("st", "stmatrix"), "store"),
    **dict.fromkeys(("atom", "red"), "atomic"),
    **dict.fromkeys(("cp", "prefetch", "prefetchu", "applypriority", "discard"), "copy"),
    **dict.fromkeys(("cvt", "cvta"), "convert"),
    **dict.fromkeys(("mov", "mapa", "getctarank", "isspacep"), "move"),
    **dict.fromkeys(("setp", "set", "selp", "slct", "testp"), "compare"),
    **dict.fromkeys(("shfl", "vote", "match", "redux", "activemask", "elect"), "warp"),
}
_FLOAT_TYPES = {"f16": "fp16", "f16x2": "fp16", "bf16": "bf16", "bf16x2": "bf16", "f32": "fp32", "f32x2": "fp32"}
_FLOAT_TYPES["f64"] = "fp64"
_TYPE = re.compile(r"[fbsu]\d+(x2)?|bf16(x2)?|tf32|e[45]m[23]|pred")
_MATRIX_TYPES = {"f16": "fp16", "bf16": "bf16", "tf32": "tf32", "f64": "fp64", "e4m3": "fp8", "e5m2": "fp8"}


@cache
def kind_of(opcode: str) -> tuple[str, int, int]:
    """The kind of an instruction, the operations of one of its lanes, and those of its warp as a whole.

    >>> kind_of("fma.rn.f32"), kind_of("add.f16x2"), kind_of("ld.global.v4.f32")
    (('fp32', 2, 0), ('fp16', 2, 0), ('load', 0, 0))
    >>> kind_of("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    ('tensor fp16', 0, 4096)
    """
    name, *words = opcode.split(".")
    shape = re.search(r"\.m(\d+)n(\d+)k(\d+)", opcode)
    if shape and (name in ("mma", "wgmma") or words[0] == "mma"):
        m, n, k = map(int, shape.groups())
        warps = 4 if name == "wgmma" else 1
        return f"tensor {_matrix_type(words)}", 0, 2 * m * n * k // warps
    if shape and name == "wmma":
        return ("load" if words[0] == "load" else "store"), 0, 0
    kind = next((word for word in words if _TYPE.fullmatch(word)), "")
    if name in _OTHERS:
        return _OTHERS[name], 0, 0
    if name in _ARITHMETIC:
        pair = 2 if kind.endswith("x2") else 1
        if kind == "pred":
            return "compare", 0, 0
        return _FLOAT_TYPES.get(kind, "int"), _ARITHMETIC[name] * pair, 0
    return "control", 0, 0


def _matrix_type(words: Sequence[str]) -> str:
    """The type of the factors of a matrix product: its second type; the first is that of the result."""
    types = [word for word in words if _TYPE.fullmatch(word)]
    factor = types[1] if len(types) > 1 else types[0] if types else ""
    return _MATRIX_TYPES.get(factor, "int")


def mix_of(stretches: Sequence[Sequence[str]], ran: Iterable[Sequence[int]]) -> Mix:
    """How many instructions of each kind were executed: by warps, by threads, and the operations of all of them.

    `stretches` are the opcodes of each stretch, `ran` for each of them how many warps and how many lanes executed it.

    >>> mix_of([("ld.global.f32", "ld.global.f32", "add.f32", "st.global.f32")], [(2, 64)])["fp32"]
    {'warps': 2, 'threads': 64, 'operations': 64}
    """
    total: Mix = {}
    for opcodes, (warps, lanes) in zip(stretches, ran, strict=True):
        if not warps:
            continue
        for opcode, count in Counter(opcodes).items():
            kind, of_lane, of_warp = kind_of(opcode)
            row = total.setdefault(kind, {"warps": 0, "threads": 0, "operations": 0})
            row["warps"] += count * int(warps)
            row["threads"] += count * int(lanes)
            row["operations"] += count * (of_lane * int(lanes) + of_warp * int(warps))
    return {kind: total[kind] for kind in KINDS if kind in total}


def added(mixes: Iterable[Mapping[str, Mapping[str, int]]]) -> Mix:
    """Several mixes together.

    >>> one = {"int": {"warps": 1, "threads": 32, "operations": 32}}
    >>> added([one, one])
    {'int': {'warps': 2, 'threads': 64, 'operations': 64}}
    """
    total: Mix = {}
    for mix in mixes:
        for kind, row in mix.items():
            into = total.setdefault(kind, dict.fromkeys(row, 0))
            for name, value in row.items():
                into[name] += value
    return {kind: total[kind] for kind in KINDS if kind in total}
