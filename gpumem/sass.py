"""The memory instructions of a kernel, read from its PTX and from its machine code (SASS), in the same words.

An access is written "kind.space bytes hints": "ld.global 16 CONSTANT", "st.shared 4", "atom.global.add 4". Hints are
the machine's; what PTX calls them stands in HINTS, as ptxas 13.0 translates them. Not read: parameters and constants,
which cost no memory traffic, barriers and fences.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

# How ptxas turns a hint of PTX into one of the machine's; "" is the default on both sides.
HINTS = {
    "ca": "STRONG.SM",
    "wb": "STRONG.SM",
    "cg": "STRONG.GPU",
    "cs": "EF",
    "lu": "LU",
    "cv": "STRONG.SYS",
    "wt": "STRONG.SYS",
    "volatile": "STRONG.SYS",
    "nc": "CONSTANT",
    "L1::no_allocate": "NA",
    "L1::evict_first": "EF",
    "L1::evict_last": "EL",
    "L1::evict_unchanged": "EU",
    "L1::evict_normal": "",
    "L2::64B": "LTC64B",
    "L2::128B": "LTC128B",
    "L2::256B": "LTC256B",
}
SCOPES = {"cta": "STRONG.SM", "cluster": "STRONG.SM", "gpu": "STRONG.GPU", "sys": "STRONG.SYS"}
MACHINE_HINTS = {*HINTS.values(), *SCOPES.values()} - {""}
OPERATIONS = {"add", "min", "max", "inc", "dec", "cas", "exch", "and", "or", "xor"}
SPACES = {"global", "shared", "local"}

# Machine instructions that look like accesses and move no data that a kernel asked for.
NO_ACCESS = {"LDC", "LDCU", "LDGDEPBAR", "UTMACMDFLUSH", "UTMAPF", "UBLKPF", "UTMACCTL", "CCTL", "CCTLL", "CCTLT"}
MAY_ACCESS = re.compile(r"LD|ST|ATOM|RED(?!UX)|UBLK|UTMA|CCTL|SU(ST|LD|ATOM|RED)|TLD|TEX|UST|ULD(?!C)")
MACHINE_OPCODES = {
    "LDG": "ld.global",
    "LDS": "ld.shared",
    "LDL": "ld.local",
    "LD": "ld.generic",
    "STG": "st.global",
    "STS": "st.shared",
    "STL": "st.local",
    "ST": "st.generic",
    "ATOMG": "atom.global",
    "ATOMS": "atom.shared",
    "ATOM": "atom.generic",
    "RED": "red.global",
    "REDG": "red.global",
    "LDGSTS": "cp.async",
    "LDSM": "ldmatrix",
    "STSM": "stmatrix",
    "UBLKCP": "bulk",
    "UTMALDG": "tensor.load",
    "UTMASTG": "tensor.store",
}


class UnknownInstructionError(Exception):
    """One that may move memory and that this file cannot read: better than to count it as none."""


def access(kind: str, size: int | str, hints: set[str]) -> str:
    """An access in words."""
    return " ".join([kind, str(size), *sorted(hints - {""})])


def _ptx_space(parts: list[str]) -> str:
    spaces = [name for part in parts if (name := part.split("::")[0]) in SPACES | {"param", "const"}]
    return spaces[0] if spaces else "generic"


def ptx_access(statement: str) -> str | None:
    """The access that a PTX statement makes, without its predicate and semicolon; None for any other statement."""
    mnemonic, _, operands = statement.partition(" ")
    op, *parts = mnemonic.split(".")
    if mnemonic.startswith("cp.async.bulk"):
        return _ptx_bulk(parts)
    if op == "cp" and parts[:2] in (["async", "ca"], ["async", "cg"]):
        hints = {"BYPASS"} if parts[1] == "cg" else set()
        return access("cp.async", int(operands.split(",")[2]), hints | {HINTS.get(part, "") for part in parts[2:]})
    if op in ("ldmatrix", "stmatrix"):
        return access(op, next(part for part in parts if re.fullmatch(r"x[124]", part)), set())
    if op not in ("ld", "st", "atom", "red", "ldu"):
        return None
    space = _ptx_space(parts)
    if space in ("param", "const"):
        return None
    type_ = re.fullmatch(r"[a-z]+(\d+)(x\d)?", parts[-1])
    if type_ is None:
        raise UnknownInstructionError(statement)
    size = int(type_[1]) // 8 * int((type_[2] or "x1")[1:])
    if op in ("atom", "red"):
        return access(f"{op}.{space}.{next(part for part in parts if part in OPERATIONS)}", size, set())
    vector = next((int(part[1:]) for part in parts if re.fullmatch(r"v[248]", part)), 1)
    hints = set()
    if space in ("global", "generic"):
        hints = {HINTS.get(part, SCOPES.get(part, "")) for part in parts[:-1]}
    return access(f"{op}.{space}", size * vector, hints)


def _ptx_bulk(parts: list[str]) -> str | None:
    """cp.async.bulk..., of which the waiting and committing forms move nothing."""
    if parts[2] in ("commit_group", "wait_group") or parts[2] == "prefetch":
        return None
    places = [part.split("::")[0] for part in parts if part.split("::")[0] in ("global", "shared")]
    if parts[2] == "tensor":
        return access("tensor.load" if places[0] == "shared" else "tensor.store", parts[3].upper(), set())
    return access("bulk", f"{places[0]}<{places[1]}", set())


def sass_access(instruction: str) -> str | None:
    """The access that a machine instruction makes, without its address and semicolon; None for any other."""
    if instruction.startswith("@!PT "):
        return None  # never executed
    opcode, *parts = re.sub(r"^@!?U?P\w+ ", "", instruction).split(" ")[0].split(".")
    if opcode not in MACHINE_OPCODES:
        if MAY_ACCESS.match(opcode) and opcode not in NO_ACCESS:
            raise UnknownInstructionError(instruction)
        return None
    kind = MACHINE_OPCODES[opcode]
    if kind == "bulk":
        where = {"S": "shared", "G": "global"}
        return access("bulk", f"{where[parts[0]]}<{where[parts[1]]}", set())
    if kind.startswith("tensor"):
        return access(kind, next(part for part in parts if re.fullmatch(r"\dD", part)), set())
    if kind in ("ldmatrix", "stmatrix"):
        return access(kind, f"x{next((part for part in parts[1:] if part in ('2', '4')), '1')}", set())
    hints = {name for name in MACHINE_HINTS if f".{name}." in f".{'.'.join(parts)}."}
    if kind == "cp.async":
        hints |= {"BYPASS"} & set(parts)
    if kind.split(".")[0] in ("atom", "red"):
        return access(f"{kind}.{_sass_operation(opcode, parts, instruction)}", _sass_bytes(parts), set())
    return access(kind, _sass_bytes(parts), hints)


def _sass_operation(opcode: str, parts: list[str], instruction: str) -> str:
    if parts[0] == "CAST":
        return "cas"  # the loop that stands for an addition which the chip has not
    if opcode == "ATOMS" and parts[:2] == ["POPC", "INC"]:
        return "add"  # of the constant 1
    found = [part.lower() for part in parts if part.lower() in OPERATIONS]
    if not found:
        raise UnknownInstructionError(instruction)
    return found[0]


_SIZE = re.compile(r"(?:[SU]?(8|16|32|64|128|256)|(?:BF|F)(16|32|64)(?:x(\d))?)")


def _sass_bytes(parts: list[str]) -> int:
    for part in parts:
        if part not in ("16", "32") and (found := _SIZE.fullmatch(part)):
            return int(found[1] or found[2]) // 8 * int(found[3] or 1)
    return 4


def access_bytes(instruction: str) -> int:
    """Of a lane, as a machine instruction such as "LDG.E.128" says."""
    return _sass_bytes(instruction.split(".")[1:])


@dataclass(frozen=True)
class Access:
    """One memory instruction: of PTX, or of machine code that comes from that line of PTX."""

    what: str
    """As in "ld.shared 4"."""
    line: int
    """In the PTX text, from 1; 0 where it is not known."""
    base: str = ""
    """Of PTX: the register or name that it addresses, and the bytes that are added."""
    offset: int = 0
    elected: bool = False
    """Of machine code: one lane does it for all that are active (an atomic on one address for the whole warp)."""
    counter: bool = False
    """Of machine code: ATOMS.POPC.INC, which adds how many lanes want the word: lanes of one word do not wait."""

    @property
    def kind(self) -> str:
        """As in "ld.shared"."""
        return self.what.split()[0]

    @property
    def bytes(self) -> int:
        """Of a lane; 0 where they are not said."""
        size = self.what.split()[1]
        return int(size) if size.isdigit() else 0


_ENTRY = re.compile(r"(?:\.entry|\.func)\b[^{;]*?([\w$]+)\s*(?:\((?:[^()]|\([^()]*\))*\))?[^{;()]*\{", re.DOTALL)
_LINKAGE, _NEAR = re.compile(r"\.(?:visible|weak|extern)\s+$"), 64
_BRACE = re.compile(r"[{}]")
_ADDRESS = re.compile(r"\[\s*([%\w$.]+)\s*(?:\+\s*(-?\w+)|(-\d+))?")


def ptx_accesses(text: str) -> dict[str, list[Access]]:
    """The accesses of each entry and function of a PTX file, in order."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", lambda found: "\n" * found[0].count("\n"), text, flags=re.DOTALL)
    kernels: dict[str, list[Access]] = {}
    at = 0
    while entry := _ENTRY.search(text, at):
        end = _closing(text, entry.end())
        kernels[entry[1]] = _accesses_between(text, entry.end(), end)
        at = end
    return kernels


def only_entry(text: str, kernel: str) -> str:
    """A PTX text without its other entries, whose lines are left empty: what is told of a line stays true.

    >>> only_entry(".visible .entry a()" + chr(10) + "{ ret; }" + chr(10) + ".entry b() { ret; }", "b").split(chr(10))
    ['', '', '.entry b() { ret; }']
    """
    plain = re.sub(r"//[^\n]*|/\*.*?\*/", lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.DOTALL)
    made, at, done = [], 0, 0
    while entry := _ENTRY.search(plain, at):
        at = _closing(plain, entry.end()) + 1
        if entry[0].startswith(".entry") and entry[1] != kernel:
            before = _LINKAGE.search(plain, max(0, entry.start() - _NEAR), entry.start())
            begins = before.start() if before else entry.start()
            made += [text[done:begins], "\n" * text.count("\n", begins, at)]
            done = at
    return "".join([*made, text[done:]])


def _closing(text: str, start: int) -> int:
    """Where the brace that was opened before `start` is closed."""
    depth = 1
    for brace in _BRACE.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.start()
    return len(text)


def _accesses_between(text: str, start: int, end: int) -> list[Access]:
    found = []
    line = text.count("\n", 0, start) + 1
    for raw in text[start:end].split(";"):
        body = re.sub(r"^(?:[\s{}]|[\w$]+:|@!?%?[\w$]+(?=\s)|\.(?:loc|pragma)\b[^\n]*\n)*", "", raw)
        begins = line + raw.count("\n", 0, len(raw) - len(body))
        line += raw.count("\n")
        # A directive that ends with its line, as .loc does, may stand before the statement.
        statement = re.sub(r"\s+", " ", body).strip()
        what = ptx_access(statement) if not statement.startswith(".") else None
        if what is None:
            continue
        address = _ADDRESS.search(statement)
        offset = int(address[2] or address[3] or "0", 0) if address else 0
        found.append(Access(what, begins, address[1] if address else "", offset))
    return found


def ptx_kernels(text: str) -> dict[str, Counter[str]]:
    """The accesses of each entry of a PTX file, as often as they occur."""
    entries = set(re.findall(r"\.entry\s+([\w$]+)", text))
    return {name: Counter(a.what for a in found) for name, found in ptx_accesses(text).items() if name in entries}


@dataclass(frozen=True)
class Instruction:
    """One machine instruction, without its semicolon."""

    text: str
    line: int
    label: bool = False
    """Something jumps to it, or may."""


def sass_instructions(text: str) -> dict[str, list[Instruction]]:
    """The instructions of each function in what `nvdisasm -c`, with or without -gp, writes."""
    functions: dict[str, list[Instruction]] = {}
    into: list[Instruction] = []
    line, label = 0, False
    for row in text.splitlines():
        if name := re.match(r"\.text\.([\w$]+):", row):
            into, line = functions.setdefault(name[1], []), 0
        elif named := re.match(r"\s*//## File .*, line (\d+)", row):
            line = int(named[1])
        elif found := re.match(r"\s*/\*[0-9a-f]+\*/\s+(.*?)\s*;", row):
            into.append(Instruction(re.sub(r"\s+", " ", found[1]), line, label))
            label = False
        elif re.match(r"\.L\w*:", row):
            label = True
    return functions


def sass_accesses(instructions: list[Instruction]) -> list[Access]:
    """The accesses among a function's instructions."""
    elects = {each.line for each in instructions if re.search(r"\b(?:VOTEU?|MATCH)\b", each.text)}
    elects &= {each.line for each in instructions if re.search(r"\bU?FLO\b", each.text)}
    made = [(sass_access(each.text), each) for each in instructions]
    return [
        Access(
            what,
            each.line,
            elected=each.line in elects and what.startswith(("atom", "red")),
            counter="ATOMS.POPC.INC" in each.text,
        )
        for what, each in made
        if what
    ]


def sass_kernels(text: str) -> dict[str, Counter[str]]:
    """The accesses of each function in what `nvdisasm -c` writes, as often as they occur."""
    return {name: Counter(a.what for a in sass_accesses(found)) for name, found in sass_instructions(text).items()}


def differences(ptx: Counter[str], sass: Counter[str]) -> str:
    """What one has more of than the other; "" where they are equal."""
    more = [f"{count} x {each} in PTX alone" for each, count in sorted((ptx - sass).items())]
    more += [f"{count} x {each} in machine code alone" for each, count in sorted((sass - ptx).items())]
    return "; ".join(more)
