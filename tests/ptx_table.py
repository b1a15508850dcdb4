"""csrc/simt/ops.def as Python reads it, and instructions made from each of its rows."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

SIMT = Path(__file__).parents[1] / "csrc" / "simt"

ROW = re.compile(r'^GM_(OP|FORM)\((?:(\w+), )?"([^"]*)"(?:,\s*"([^"]*)", (\d+), (\d+))?\)', re.MULTILINE)
MOD = re.compile(r'^GM_PTX_MOD\(\w+, "([^"]+)", (\w+)\)', re.MULTILINE)
GROUP = re.compile(r'^GM_PTX_(GROUP|TYPES)\("([^"]+)", (?:(\w+), )?"([^"]+)"\)', re.MULTILINE)
TYPE = re.compile(r'^GM_PTX_TYPE\(\w+, "([^"]+)", (\d+), \d+, (\w+)\)', re.MULTILINE)

mods_def = (SIMT / "ptx_mods.def").read_text()
MODS = dict(MOD.findall(mods_def))
GROUPS = {name: (field_ or "TYPE", texts.split()) for _, name, field_, texts in GROUP.findall(mods_def)}
TYPES = {name: (int(bits), kind) for name, bits, kind in TYPE.findall((SIMT / "ptx_types.def").read_text())}


@dataclass(frozen=True)
class Word:
    """One .word of a form: what may stand there, which field it fills, and the number of the { } it is in (0: none)."""

    choices: tuple[str, ...]
    field: str
    braces: int


@dataclass(frozen=True)
class Form:
    op: str
    name: str
    modifiers: str
    operands: tuple[str, ...]
    isa: int
    sm: int
    words: tuple[Word, ...] = field(repr=False)

    def __str__(self) -> str:
        return self.name + self.modifiers


def meaning(text: str) -> tuple[tuple[str, ...], str]:
    name, _, some = text.partition("=")
    if name in GROUPS:
        field_, texts = GROUPS[name]
        return tuple(some.split("|") if some else texts), field_
    choices = tuple(text.split("|"))
    return choices, "TYPE" if choices[0] in TYPES else MODS.get(choices[0], "NONE")


def words(pattern: str) -> tuple[Word, ...]:
    found, braces, inside = [], 0, 0
    for part in re.findall(r"\{|\}|\.[^.{}]+", pattern):
        if part == "{":
            braces += 1
            inside = braces
        elif part == "}":
            inside = 0
        else:
            choices, field_ = meaning(part[1:])
            found.append(Word(choices, field_, inside))
    return tuple(found)


def forms() -> list[Form]:
    table, op, name = [], "", ""
    for kind, identifier, text, operands, isa, sm in ROW.findall((SIMT / "ops.def").read_text()):
        if kind == "OP":
            op, name = identifier, text
        else:
            table.append(Form(op, name, text, tuple(operands.split()), int(isa), int(sm), words(text)))
    return table


FORMS = forms()

# ---- instructions ----

REGISTERS = """.reg .b128 %rq<40>; .reg .b64 %rd<40>; .reg .b32 %r<40>; .reg .f32 %f<40>; .reg .f64 %fd<40>;
.reg .b16 %h<40>; .reg .b8 %c<40>; .reg .pred %p<40>;"""
WIDE = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}
SPEC = re.compile(r"([a-z]+?|[DS_])([123])?(w)?(?::([a-z]+[0-9]*))?(v|x.)?(!)?(\?)?$")


def register(of_type: str, number: int) -> str:
    bits, kind = TYPES[of_type]
    if kind == "PRED":
        return f"%p{number}"
    if of_type in ("f32", "f64"):
        return {"f32": "%f", "f64": "%fd"}[of_type] + str(number)
    return {8: "%c", 16: "%h", 32: "%r", 64: "%rd", 128: "%rq"}[max(bits, 8)] + str(number)


def spelled(form: Form, chosen: dict[int, str]) -> str:
    return form.name + "".join(f".{chosen[i]}" for i in range(len(form.words)) if i in chosen)


def operand(form: Form, spec: str, chosen: dict[int, str], number: int) -> str:
    """Text of one operand; numbers of registers differ from operand to operand."""
    found = SPEC.match(spec)
    assert found, spec
    role, which, wide, named, many, _, _ = found.groups()
    types = [chosen[i] for i, word in enumerate(form.words) if word.field == "TYPE" and i in chosen]
    mods = {word.field: chosen[i] for i, word in enumerate(form.words) if i in chosen}
    of_type = named or (types[int(which or 0)] if types else "b32")
    of_type = WIDE[of_type] if wide else {"h": "b64", "c": "u16"}.get(role, of_type)
    space = mods.get("SPACE2" if role == "n" else "SPACE", "")
    if role == "_":
        return "_"
    if role in "mnk":
        shared = space.startswith("shared") or role == "k"
        where = "%r1" if shared else "%rd1"
        if space == "const":
            where = "table"
        if space.startswith("param"):
            where = "given" if form.op != "ST" and space != "param::func" else "passed"
        return f"[{where}]" if space != "local" else "[4]"
    if role == "t":
        return "[%rd2, {" + ", ".join(f"%r{i + 2}" for i in range(int(mods["DIM"][0]))) + "}]"
    if role == "i":
        return {"APPLYPRIORITY": "128", "DISCARD": "128", "CP_ASYNC": "16", "SETMAXNREG": "64", "ST_BULK": "0",
                "FENCE_PROXY_TENSORMAP": "128"}.get(form.op, "4")  # fmt: skip
    if role == "label":
        return "END"
    if role == "table":
        return "TARGETS"
    count = {"v": int(mods.get("VEC", "v1")[1]), None: 1}.get(many) or int(many[1])
    if many and (many[0] == "x" or count > 1):
        return "{" + ", ".join(register(of_type, number + i) for i in range(count)) + "}"
    return register(of_type, number)


def instruction(form: Form, chosen: dict[int, str], absent: frozenset[int]) -> str:
    text, first = "", True
    for place, spec in enumerate(form.operands):
        parts = spec.split("|")
        hint = {"h": "HINT", "c": "MULTICAST"}.get(parts[0])
        if (place in absent and len(parts) == 1) or (
            hint and not any(w.field == hint and i in chosen for i, w in enumerate(form.words))
        ):
            continue
        text += " " if first else ", "
        if place in absent:
            parts = parts[:1]
        text += "|".join(operand(form, part, chosen, 2 + 8 * (place % 4) + i) for i, part in enumerate(parts))
        first = False
    return spelled(form, chosen) + text


def fitting(form: Form, chosen: dict[int, str]) -> bool:
    """Rules between the words that no row can say."""
    got = {word.field: chosen[i] for i, word in enumerate(form.words) if i in chosen}
    types = [chosen[i] for i, word in enumerate(form.words) if word.field == "TYPE" and i in chosen]
    if form.op in ("LD", "ST"):
        ordered = got.get("SEM") in ("relaxed", "acquire", "release")
        bits = TYPES[types[0]][0] * int(got.get("VEC", "v1")[1])
        if ordered != ("SCOPE" in got) or got.get("SEM") in ("acq_rel", "sc"):
            return False
        if bits > 256 or (bits > 128) != ("EVICT2" in got) or ("MMIO" in got and got.get("SCOPE") != "sys"):
            return False
        if got.get("SEM") == {"LD": "release", "ST": "acquire"}[form.op]:
            return False
        if (bits > 128 and got.get("SPACE") != "global") or (form.op == "ST" and got.get("SPACE") == "param::entry"):
            return False
        if ("NC" in got and got.get("SPACE") != "global") or (form.op == "ST" and got.get("SPACE") == "const"):
            return False
    if form.op == "CVT" and "SAT" in got and types == [types[0]] * 2:
        return types[0].startswith("f")
    if form.op == "MMA" and types[1] in ("f16", "bf16"):
        return types[1] == types[2]
    return True


def samples(form: Form) -> Iterator[str]:
    """The shortest instruction of the form, then that with every other word, and every other set of operands."""
    least = {i: word.choices[0] for i, word in enumerate(form.words) if not word.braces}
    variants = [least]
    for i, word in enumerate(form.words):
        for choice in word.choices:
            group = {k: w.choices[0] for k, w in enumerate(form.words) if word.braces and w.braces == word.braces}
            variants.append({**least, **group, i: choice})
    ordered = {"SEM": "relaxed", "SCOPE": "gpu"}
    wide = {"SPACE": "global", "VEC": "v8", "TYPE": "b32"}
    repairs = (
        {},
        {"SPACE": "global"},
        ordered,
        {"SEM": "relaxed", "SCOPE": "sys"},
        wide,
        {**wide, "EVICT2": "L2::evict_last"},
    )
    seen = set()
    optional = [i for i, spec in enumerate(form.operands) if spec.endswith("?")]
    for variant in variants:
        for repair in repairs:
            chosen = dict(variant)
            for i, word in enumerate(form.words):
                if repair.get(word.field) in word.choices and (i not in chosen or word.field == "TYPE"):
                    chosen[i] = repair[word.field]
            if fitting(form, chosen):
                break
        else:
            continue
        joined = any(word.field == "BOOL" and i in chosen for i, word in enumerate(form.words))
        sets = [frozenset(optional), frozenset()] if optional else [frozenset()]
        if form.op in ("SET", "SETP"):
            sets = [frozenset() if joined else frozenset([len(form.operands) - 1])]
        for absent in sets:
            text = instruction(form, chosen, absent)
            if text not in seen:
                seen.add(text)
                yield text


def module(instructions: list[str], target: str = "sm_90a", version: str = "9.0") -> str:
    """One instruction a line, the first one in line 14."""
    head = f""".version {version}
.target {target}
.address_size 64
.global .align 128 .b8 array[256];
.shared .align 128 .b8 tile[1024];
.const .align 16 .b8 table[64];
.func callee(.param .b32 x) {{ ret; }}
.visible .entry kernel(.param .align 16 .b8 given[64])
{{
{REGISTERS}
.param .align 16 .b8 passed[64]; .local .align 16 .b8 own[64];
TARGETS: .branchtargets END;"""
    assert head.count("\n") == 12
    return "\n".join([head, *(text + ";" for text in instructions), "END: ret;", "}"]) + "\n"
