"""The reader of PTX (csrc/simt/ptx.h) through `_core._ptx`: what it understands, what it refuses, how it says so."""

import contextlib
import locale
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ptx_table import FORMS, GROUPS, MODS, TYPES, Form, module, samples

from gpumem import _core

DATA = Path(__file__).parent / "data" / "ptx"
FEATURES = (DATA / "reader_features.ptx").read_text()
HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"


def read(text: str | bytes, name: str = "k.ptx") -> dict[str, Any]:
    return _core._ptx(text.encode() if isinstance(text, str) else text, name)


def kernel(
    *lines: str, registers: str = ".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .pred %p<9>;"
) -> str:
    """A module whose entry holds these lines, the first in line 7."""
    return "\n".join([HEAD + ".visible .entry k()", "{", registers, *lines, "ret;", "}"])


def instructions(text: str, function: str = "k") -> list[str]:
    (found,) = [f for f in read(text)["functions"] if f["name"] == function]
    return [printed for _, _, printed, _ in found["instructions"]]


def by_name(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in rows}


# ---- one text with everything in it ----


@pytest.fixture(scope="module")
def features() -> dict[str, Any]:
    return read(FEATURES)


def test_functions(features: dict[str, Any]) -> None:
    functions = by_name(features["functions"])
    assert (features["version"], features["target"]) == (87, 90)
    assert list(functions) == ["vprintf", "twice", "plus", "features"]
    assert [f["body"] for f in functions.values()] == [0, 1, 1, 1]
    assert [f["results"] for f in functions.values()] == [1, 1, 1, 0]
    entry = functions["features"]
    assert (entry["entry"], entry["maxntid"], entry["minnctapersm"], entry["reqntid"]) == (1, (256, 1, 1), 2, (0, 0, 0))
    assert [(p["name"], p["offset"], p["size"], p["align"]) for p in entry["parameters"]] == [
        ("out", 0, 8, 8),
        ("record", 8, 24, 8),
        ("scale", 32, 4, 4),
        ("flag", 36, 1, 1),
    ]
    assert entry["parameter_bytes"] == 37


def test_registers(features: dict[str, Any]) -> None:
    registers = by_name(features["functions"])["features"]["registers"]
    assert registers[:5] == [
        ("%p", 0, "pred"),
        ("%p", 1, "pred"),
        ("%p", 2, "pred"),
        ("%p", 3, "pred"),
        ("quit", -1, "pred"),
    ]
    assert [r for r in registers if r[0] == "four"] == [("four", -1, "f32")] * 4
    assert registers[-3:] == [("quit", -1, "pred"), ("%r", 0, "b32"), ("%r", 1, "b32")], "the inner scope's own"


@pytest.mark.parametrize(
    "name, space, size, data",
    [
        ("counter", "global", 4, struct.pack("<I", 5)),
        ("pointers", "global", 24, bytes(24)),
        ("text", "global", 6, b"hello\0"),
        ("matrix", "global", 24, struct.pack("<5fI", 1, -2.5, 1, 1000, 2, 0x7FC00000)),
        ("table", "const", 16, struct.pack("<2d", 1, 2.5)),
        ("formula", "const", 20, struct.pack("<5i", 12, 7 % 4 - 9 // 2, 15, 1 << 5 | 1, 5)),
        ("soft", "global", 4, None),
        ("tile", "shared", 128, None),
        ("dynamic", "shared", 0, None),
        ("stack", "local", 64, None),
    ],
)
def test_variables(features: dict[str, Any], name: str, space: str, size: int, data: bytes | None) -> None:
    found = by_name(features["variables"])[name]
    assert (found["space"], found["size"], found["data"]) == (space, size, data)


def test_addresses_in_initialisers(features: dict[str, Any]) -> None:
    variables = by_name(features["variables"])
    assert [variables[name]["fixups"] for name in ("pointers", "address_bytes", "counter")] == [3, 4, 0]


def test_instructions_keep_their_source(features: dict[str, Any]) -> None:
    lines = FEATURES.splitlines()
    for function in features["functions"]:
        for line, column, printed, _ in function["instructions"]:
            opcode = re.sub(r"^@!?%?\w+ ", "", printed).split(".")[0].split(" ")[0]
            assert lines[line - 1][column - 1 :].startswith(opcode)
    locations = {printed: loc for _, _, printed, loc in features["functions"][3]["instructions"]}
    assert locations["ld.param.u64 %rd1, [out]"] == ("first.cu", 10, 5, None)
    assert locations["cvta.to.global.u64 %rd3, %rd1"] == ("second.h", 20, 7, ("first.cu", 12, 9, None))


def test_operands(features: dict[str, Any]) -> None:
    printed = [text for _, _, text, _ in features["functions"][3]["instructions"]]
    for expected in (
        "ld.param.v2.u32 {%r1, %r2}, [record+8]",
        "mov.u32 %r4, tile+16",
        "mov.b32 %r10, %envreg3",
        "setp.lt.and.s32 %p1|%p2, %r3, -7, !%p3",
        "mov.f32 four.w, 0f40400000",
        "st.global.v4.f32 [%rd3-16], {four.x, four.y, four.z, four.w}",
        "mov.b32 {%h1, %h2}, %r1",
        "setp.eq.u32 quit, 32, 32",
        "atom.shared.add.u32 _, [tile], 1",
        "call.uni (got), twice, (given)",
        "call (%r7), plus, (%r6, 3)",
        "call (got), %rd5, (given), prototype",
        "ld.global.nc.L1::no_allocate.L2::128B.v2.b32 {%r1, _}, [%rd3]",
        "shfl.sync.bfly.b32 %r9|%p3, %r1, 16, 31, 4294967295",
        "add.s32 %r11, %r1, -20",
    ):
        assert expected in printed


def test_labels_have_scopes(features: dict[str, Any]) -> None:
    """DONE is there twice, each in braces; $L_end is reached from within and from a table."""
    printed = [text for _, _, text, _ in features["functions"][3]["instructions"]]
    place = {text: i for i, text in enumerate(printed)}
    assert f"@quit bra $L{place['mov.u32 %r0, %r1']}" in printed
    assert f"@%p1 bra $L{place['ld.shared.u32 %r5, [%r4]']}" in printed
    end, other = len(printed) - 1, place["ld.global.nc.L1::no_allocate.L2::128B.v2.b32 {%r1, _}, [%rd3]"]
    assert f"@!%p1 bra $L{end}" in printed
    assert ("choices", 0, [end, other]) in features["functions"][3]["tables"]


# ---- the table ----


@pytest.mark.parametrize("op", sorted({form.op for form in FORMS} - {"CALL"}))
def test_every_form_is_read_and_printed_as_written(op: str) -> None:
    texts = [text for form in FORMS if form.op == op for text in samples(form)]
    printed = instructions(module(texts, "sm_100a"), "kernel")[:-1]
    # A vector of one is the value itself, and a number that a sample has is never negative.
    labels = re.compile(r"\bEND\b")
    assert printed == [labels.sub(f"$L{len(texts)}", text) for text in texts]


def test_forms_of_one_opcode_differ() -> None:
    seen: dict[str, Form] = {}
    for form in FORMS:
        for text in samples(form):
            other = seen.setdefault(re.sub(r"[0-9]+(?=[,}\]| ]|$)", "", text), form)
            assert other is form or other.op == form.op


def test_the_table_names_only_what_there_is() -> None:
    names = {word for form in FORMS for word in form.name.split(".")}
    assert not names & set(GROUPS), "a group named like a word of an opcode would take its place"
    for form in FORMS:
        for word in form.words:
            assert word.field == "NONE" or set(word.choices) <= {*MODS, *TYPES}, str(form)
            assert not (word.braces and word.field == "NONE" and len(word.choices) > 1)


def test_modifiers_may_come_in_another_order() -> None:
    mixed = kernel("ld.v2.nc.global.u32 {%r1, %r2}, [%rd1];", "add.ftz.rn.f32 %f1, %f1, %f2;")
    assert instructions(mixed)[:2] == ["ld.global.nc.v2.u32 {%r1, %r2}, [%rd1]", "add.rn.ftz.f32 %f1, %f1, %f2"]


# ---- what compilers wrote ----

CORPUS = sorted(DATA.glob("*.ptx"))


OPCODE = re.compile(r"(?:@!?%?\w+\s+)?[a-z][a-z0-9_]*(?:\.[\w:]+)*(?:\s+[^:\s]|(?<!\d)$)")


def statements(text: str) -> int:
    """Instructions of a text, counted without the reader: pieces of lines that begin as only instructions do."""
    pieces = (piece.strip() for line in text.splitlines() for piece in line.split("//")[0].split(";"))
    return sum(OPCODE.match(re.sub(r"^[{}\s]+|^\w+:\s", "", piece)) is not None for piece in pieces)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_corpus(path: Path) -> None:
    text = path.read_text()
    found = read(text, path.name)
    assert any(f["entry"] for f in found["functions"])
    count = sum(len(f["instructions"]) for f in found["functions"])
    assert count > 0
    if path.stem != "reader_features":
        assert count == statements(text)
    lines = text.splitlines()
    for function in found["functions"]:
        for line, column, printed, _ in function["instructions"]:
            assert printed.removeprefix("@").lstrip("!")[:1]
            assert lines[line - 1][column - 1] in "abcdefghijklmnopqrstuvwxyz"


# ---- what is refused ----


def refusal(text: str | bytes) -> tuple[type[Exception], str]:
    with pytest.raises((ValueError, NotImplementedError, MemoryError)) as caught:
        read(text)
    return caught.type, str(caught.value)


@pytest.mark.parametrize(
    "line, place, reason",
    [
        ("tex.2d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%rd1, {%r1,%r2}];", (7, 1), "no instruction tex"),
        ("add.u32.funny %r1, %r1, %r1;", (7, 9), "no form of add with this .funny"),
        ("  ld.global.nc.L3::128B.u32 %r1, [%rd1];", (7, 16), "no form of ld with this .L3::128B"),
        ("shfl.idx.b32 %r1, %r2, 0, 31;", (7, 1), "no form of shfl"),
        ("vadd.u32.u32.u32 %r1, %r2, %r3;", (7, 1), "no instruction vadd"),
        (".funny;", (7, 2), "a directive that no body has"),
    ],
)
def test_what_the_table_lacks(line: str, place: tuple[int, int], reason: str) -> None:
    kind, message = refusal(kernel(line))
    assert kind is NotImplementedError
    where, quoted, caret = message.split("\n")
    assert where.startswith(f"PTX that the lens does not know: k.ptx:{place[0]}:{place[1]}: ")
    assert reason in where
    assert quoted == "    " + line
    assert caret.index("^") == 4 + place[1] - 1


MALFORMED = [
    ("add.u32 %r1, %r2;", 14, "add does not take these operands"),
    ("add.u32 %r1, %r2, %r3, %r4;", 24, "add does not take these operands"),
    ("add.u32 %r1, %r2, %r9;", 19, "%r9 is not declared"),
    ("add.u32 %r1, %r2, %r02;", 19, "%r02 is not declared"),
    ("add.u32 %r1, %r2, %rd3;", 19, "a .b64 where add.u32 needs a .u32"),
    ("add.f32 %f1, %f2, 1;", 19, "this number cannot be a .f32"),
    ("add.u32 %r1, %r2, 1.5;", 19, "this number cannot be a .u32"),
    ("add.u32 5, %r2, %r3;", 9, "a register is needed"),
    ("add.u32 %r1, %tid.x, %r3;", 14, "%tid.x is read by mov alone"),
    ("mov.u32 %r1, %tid.w;", 14, "%tid is not declared"),
    ("mov.u32 %r1, %tid.xyz;", 19, "%tid has no part .xyz"),
    ("add.u32 %r1, _, %r3;", 14, "_ is for results"),
    ("add.u32 %r1, !%r2, %r3;", 14, "! has no place here"),
    ("ld.global.u32 %r1, %rd1;", 20, "ld does not take these operands"),
    ("ld.global.u32 %r1, [%f1];", 20, "an address is in a register of 32 or 64 bits"),
    ("ld.global.v2.u32 %r1, [%rd1];", 18, "a vector of 2 is needed"),
    ("ld.global.v4.b64 {%rd1,%rd2,%rd3,%rd4}, [%rd1];", 1, "32 bytes are more than one access may have"),
    ("ld.shared.nc.u32 %r1, [%r1];", 1, ".nc is for .global"),
    ("ld.relaxed.global.u32 %r1, [%rd1];", 1, "a scope is missing"),
    ("ld.gpu.global.u32 %r1, [%rd1];", 1, "a scope needs"),
    ("st.const.u32 [%rd1], %r1;", 1, ".const cannot be written"),
    ("st.acquire.gpu.u32 [%rd1], %r1;", 1, "st has no .acquire"),
    ("cp.async.cg.shared.global [%r1], [%rd1], 8;", 1, "cp.async copies 4, 8 or 16 bytes"),
    ("cp.async.ca.shared.global [%r1], [%rd1], 12;", 1, "cp.async copies 4, 8 or 16 bytes"),
    ("bar.sync 99;", 1, "a barrier's number is 0 to 15, not 99"),
    ("@%p1 barrier.sync 16, 64;", 6, "a barrier's number is 0 to 15, not 16"),
    ("bar.red.popc.u32 %r1, 16, %p1;", 1, "a barrier's number is 0 to 15, not 16"),
    ("barrier.cta.red.or.pred %p1, 1, 33, %p2;", 1, "a barrier is for a multiple of 32 threads, not 33"),
    ("bar.sync 15, 48;", 1, "a barrier is for a multiple of 32 threads, not 48"),
    ("bar.arrive 1, 0;", 1, "a barrier is for a multiple of 32 threads that is not 0, not 0"),
    ("setp.lt.and.s32 %p1, %r1, %r2;", 1, "one more predicate is missing"),
    ("setp.lt.s32 %p1, %r1, %r2, %p2;", 1, ".and, .or or .xor is missing"),
    ("@%r1 bra X;", 2, "%r1 is no predicate"),
    ("@ bra X;", 3, "bra is no predicate"),
    ("bra X;", 5, "no label X in this function"),
    ("brx.idx %r1, X;", 14, "X is no table of targets"),
    ("call nothing;", 6, "nothing is not declared"),
    ("X: X: ret;", 4, "X is declared twice"),
    ("mov.u32 %r1, 0x1g;", 14, "no number that PTX knows"),
    ("mov.u32 %r1, 08;", 14, "no number that PTX knows"),
    ("mov.u32 %r1, 99999999999999999999;", 14, "no number that PTX knows"),
    ("mov.u32 %r1, 1 / 0;", 16, "a division by zero"),
    ("mov.u32 %r1, (1 + 2;", 20, "')' is missing here"),
    ("mov.b64 {%r1, %r2, %r3}, %rd1;", 9, "a .b64 is not made of 3 parts"),
    ("mov.u32 %r1, \x01;", 14, "byte 0x01 outside of a comment"),
    ("mov.u32 %r1 %r2;", 13, "';' is missing here"),
    (".reg .b32 %r<2>;", 11, "%r is declared twice"),
    (".pragma nounroll;", 9, "a pragma is a string"),
    ('.pragma "nounroll;', 9, "this string has no end"),
    ("/* comment", 1, "this comment has no end"),
    (".shared .align 3 .b8 x[4];", 10, "an alignment is a power of two"),
    (".shared .b8 x[];", 13, "x has no length"),
    (".local .u32 x = 5;", 13, "only .global and .const have initial values"),
    (".shared .pred x;", 10, "no variable has type .pred"),
]


@pytest.mark.parametrize("line, column, reason", MALFORMED)
def test_malformed(line: str, column: int, reason: str) -> None:
    kind, message = refusal(kernel(line))
    where, quoted, caret = message.split("\n")
    assert kind is ValueError
    assert where.startswith(f"malformed PTX: k.ptx:7:{column}: "), where
    assert reason in where
    assert quoted == "    " + line.replace("\x01", " ")
    assert caret.index("^") == 4 + column - 1


@pytest.mark.parametrize(
    "text, kind, reason",
    [
        ("", ValueError, "1:1: PTX begins with .version"),
        (".target sm_90", ValueError, "PTX begins with .version"),
        (".version 9.9\n.target sm_90", NotImplementedError, "version 9.9 is too new: up to 9.0 is read"),
        (".version 9", ValueError, "a version is two numbers"),
        (".version 9.0\n.entry k() { }", ValueError, "2:2: the .target is missing"),
        (".version 9.0\n.target sm_9000", NotImplementedError, "a target that is not known"),
        (".version 9.0\n.target sm_90\n.address_size 32", NotImplementedError, "only those of 64 are read"),
        (HEAD + ".entry k() { ", ValueError, "the text ends inside of a function"),
        (HEAD + ".entry k(.param .u32 a, .param .u32 a) { }", ValueError, "a is declared twice"),
        (HEAD + ".entry k() { }\n.entry k() { }", ValueError, "k has two bodies"),
        (HEAD + ".func f(.param .b32 a);\n.func f(.param .b64 a) { }", ValueError, "takes something else"),
        (HEAD + ".func f(.param .b32 a) { }\n.entry k() { call f; }", ValueError, "0 arguments where"),
        (HEAD + ".global .u32 x = {1, 2};", ValueError, "more initial values than the variable has elements"),
        (HEAD + ".global .u8 x = y;", ValueError, "y is no variable and no function"),
        (HEAD + ".global .u32 x;\n.global .u32 x;", ValueError, "x is declared twice"),
        (HEAD + ".shared .u32 s;\n.entry k() { .reg .b32 r; ld.global.u32 r, [s]; }", ValueError, "s is in .shared"),
        (HEAD + ".section .debug_str { .b8 1", ValueError, "this section has no end"),
        (HEAD + "int main() { }", ValueError, "a directive of a module is needed here"),
        (".version 6.0\n.target sm_70\n.entry k() { cp.async.wait_all; }", ValueError, "needs .version 7.0"),
        (".version 9.0\n.target sm_75\n.entry k() { cp.async.wait_all; }", ValueError, "needs .target sm_80"),
    ],
)  # fmt: skip
def test_malformed_modules(text: str, kind: type[Exception], reason: str) -> None:
    assert refusal(text)[0] is kind
    assert reason in refusal(text)[1]


def test_long_lines_are_quoted_around_the_place() -> None:
    _, message = refusal(kernel("add.u32 " + "%r1, " * 400 + "%r2;"))
    where, quoted, caret = message.split("\n")
    assert len(quoted) < 200
    assert quoted[caret.index("^") :].startswith("%r1")
    assert "more operands" in where


# ---- limits: hostile texts end soon, in an error ----


@pytest.mark.parametrize(
    "text",
    [
        kernel(registers=".reg .b32 %r<2000000000>;"),
        kernel(registers="".join(f".reg .b32 %r{c}<1000000>;" for c in "abcdefghij")),
        kernel("{" * 100000),
        kernel("mov.u32 %r1, " + "(" * 100000 + "1" + ")" * 100000 + ";"),
        kernel("mov.u32 %r1, " + "-" * 100000 + "1;"),
        kernel("mov.u32 %r1, " + "1 ? " * 100000 + "1;"),
        kernel("call k, (" + "%r1, " * 100000 + "%r1);"),
        kernel("mov" + ".u32" * 100000 + " %r1, %r2;"),
        kernel(".shared .b8 x[0x7fffffffffffffff];"),
        kernel(".shared .b64 x" + "[65536]" * 5 + ";"),
        HEAD + ".global .u32 x[1] = " + "{" * 100000,
        HEAD + ".global .u32 x[] = {" + "1," * 3000000 + "y};",
        HEAD + "".join(f".entry k{i}() {{ .reg .b32 %r<1000000>; }}\n" for i in range(50)),
    ],
    ids=lambda text: f"{len(text)}",
)
def test_limits(text: str) -> None:
    began = time.process_time()
    kind, message = refusal(text)
    assert time.process_time() - began < 10
    assert kind is ValueError
    assert len(message) < 1200


def test_a_huge_array_takes_no_memory() -> None:
    found = read(HEAD + ".global .align 4 .b8 big[1099511627776] = {1, 2};")["variables"][0]
    assert (found["size"], found["data"]) == (1 << 40, b"\x01\x02")


def test_many_labels_in_many_scopes() -> None:
    text = kernel(*("{ L: @%p1 bra L; @%p1 bra M; }" for _ in range(20000)), "M:")
    began = time.process_time()
    assert len(instructions(text)) == 40001
    assert time.process_time() - began < 10


def test_every_allocation_may_fail() -> None:
    """The reader takes memory in large blocks: a text that needs a few is refused at each of them, and then read."""
    text = kernel(*["add.u32 %r1, %r1, %r2;"] * 3000).encode()
    for count in range(200):
        _core._fail_allocation(count)
        try:
            read(text)
        except MemoryError:
            continue
        finally:
            _core._fail_allocation(-1)
        break
    assert 3 < count < 199


# ---- damaged texts: an error, or a module, never anything else ----


def attempt(text: bytes) -> None:
    with contextlib.suppress(ValueError, NotImplementedError):
        read(text)


def test_every_beginning() -> None:
    whole = FEATURES.encode()
    for end in range(0, len(whole), 3):
        attempt(whole[:end])


def test_every_line_left_out() -> None:
    lines = FEATURES.splitlines(keepends=True)
    for i in range(len(lines)):
        attempt("".join(lines[:i] + lines[i + 1 :]).encode())


@given(st.integers(0, 2**32), st.sampled_from(["delete", "double", "swap", "byte", "token"]))
def test_damage(seed: int, how: str) -> None:
    chance = random.Random(seed)
    tokens = re.findall(r"\s+|[\w$%.:]+|.", FEATURES, flags=re.DOTALL)
    for _ in range(chance.randint(1, 6)):
        i, j = chance.randrange(len(tokens)), chance.randrange(len(tokens))
        if how == "delete":
            del tokens[i]
        elif how == "double":
            tokens[i] *= chance.choice([2, 50])
        elif how == "swap":
            tokens[i], tokens[j] = tokens[j], tokens[i]
        elif how == "token":
            tokens[i] = tokens[j]
        elif tokens[i]:
            at = chance.randrange(len(tokens[i]))
            tokens[i] = tokens[i][:at] + chr(chance.randrange(256)) + tokens[i][at + 1 :]
    attempt("".join(tokens).encode("latin-1"))


@given(st.binary(max_size=200))
def test_noise(data: bytes) -> None:
    attempt(data)
    attempt(HEAD.encode() + b".entry k() {" + data)


# ---- names and numbers ----


def test_names_that_end_in_digits() -> None:
    text = kernel(
        "mov.u32 %r11, %r1;", "mov.u32 %r10, %r12;", registers=".reg .b32 %r1<5>; .reg .b32 %r<10>; .reg .b32 %r12;"
    )
    # %r11 is the second of %r1<5>, %r10 its first, %r12 the one declared by its name.
    assert [r for r in read(text)["functions"][0]["registers"] if r[0] in ("%r1", "%r12")][:3] == [
        ("%r1", 0, "b32"),
        ("%r1", 1, "b32"),
        ("%r1", 2, "b32"),
    ]
    assert instructions(text)[:2] == ["mov.u32 %r11, %r1", "mov.u32 %r10, %r12"]


@pytest.mark.parametrize(
    "written, of_type, printed",
    [
        ("-1", "u32", "4294967295"),
        ("-1", "s32", "-1"),
        ("0xFFFFFFFF", "s32", "-1"),
        ("5000000000", "s32", "705032704"),
        ("-9223372036854775808", "s64", "-9223372036854775808"),
        ("0b101U", "u32", "5"),
        ("010", "u32", "8"),
        ("1 + 2 * 3 - (4 << 1) % 5", "s32", "4"),
        ("(1 < 2) + (2 <= 1) + !0 + (3 == 3) * (4 != 4)", "s32", "2"),
        ("-7 / 2", "s32", "-3"),
        ("-8 >> 1", "s32", "-4"),
        ("(.u64)-8 >> 60", "s32", "15"),
        ("1 ? 10 : 20", "s32", "10"),
        ("0f3F800000", "f32", "0f3F800000"),
        ("0f7FC00001", "f32", "0f7FC00001"),
        ("-0f7FC00001", "f32", "0fFFC00001"),
        ("1.5", "f32", "0f3FC00000"),
        ("16777217.0", "f32", "0f4B800000"),
        ("1e400", "f64", "0d7FF0000000000000"),
        ("0.1", "f64", "0d3FB999999999999A"),
        ("1.5 * 2", "f64", "0d4008000000000000"),
        ("0f3F800000", "b32", "1065353216"),
    ],
)
def test_numbers(written: str, of_type: str, printed: str) -> None:
    register = {"f32": "%f1", "u64": "%rd1", "s64": "%rd1", "f64": "%d1"}.get(of_type, "%r1")
    registers = ".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .f64 %d<9>;"
    text = kernel(f"mov.{of_type} {register}, {written};", registers=registers)
    assert instructions(text)[0] == f"mov.{of_type} {register}, {printed}"


def test_numbers_have_points_in_every_locale() -> None:
    before = locale.setlocale(locale.LC_NUMERIC)
    for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "C"):
        with contextlib.suppress(locale.Error):
            locale.setlocale(locale.LC_NUMERIC, name)
        try:
            assert instructions(kernel("mov.f32 %f1, 1.5;"))[0] == "mov.f32 %f1, 0f3FC00000"
        finally:
            locale.setlocale(locale.LC_NUMERIC, before)


# ---- the assembler's opinion ----


def ptxas() -> str:
    if found := shutil.which("ptxas"):
        return found
    sys.path.insert(0, str(Path(__file__).parents[1] / "tools" / "build"))
    import cuda_toolkit

    toolkit = cuda_toolkit.find()
    beside = toolkit.nvcc.resolve().parent / "ptxas" if toolkit else None
    if beside is None or not beside.exists():
        pytest.skip("needs ptxas")
    return str(beside)


def assemble(text: str, target: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = folder / "k.ptx"
    path.write_text(text)
    command = [ptxas(), f"-arch={target}", "-O0", str(path), "-o", "/dev/null"]
    clean = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}  # no sanitizer in NVIDIA's tool
    return subprocess.run(command, capture_output=True, text=True, check=False, env=clean)


# What ptxas has taken away from newer chips, or needs a symbol of a kind that the samples lack.
NOT_ASSEMBLED = re.compile(r"prefetch\.param|(?:mapa|getctarank|cvta|alloca|stack\w+)(?:\.[\w:]+)*\.u32")


def test_the_assembler_takes_every_form(tmp_path: Path) -> None:
    texts = [text for form in FORMS if form.op != "CALL" for text in samples(form) if not NOT_ASSEMBLED.match(text)]
    done = assemble(module(texts, "sm_100a"), "sm_100a", tmp_path)
    wrong = re.findall(r"line (\d+); (?:error|fatal) *: (.*)", done.stdout + done.stderr)
    assert [(texts[int(line) - 14], reason) for line, reason in wrong] == []


def test_the_assembler_takes_the_features(tmp_path: Path) -> None:
    assert assemble(FEATURES, "sm_90", tmp_path).returncode == 0


# ptxas reads %r02 as %r2, and the fourth part of %tid as 0.
REFUSED = [line for line, _, _ in MALFORMED if "%r02" not in line and "%tid.w" not in line]


@pytest.mark.parametrize("line", REFUSED)
def test_the_assembler_refuses_what_the_reader_does(line: str, tmp_path: Path) -> None:
    assert assemble(kernel(line), "sm_90", tmp_path).returncode != 0
