"""The memory instructions of a kernel, read from its PTX and from its machine code (SASS), in the same words.

An access is written "kind.space bytes hints": "ld.global 16 CONSTANT", "st.shared 4", "atom.global.add 4". Hints are
the machine's; what PTX calls them stands in HINTS, as ptxas 13.0 translates them. Not read: parameters and constants,
which cost no memory traffic, barriers and fences.
"""

import re
from collections import Counter

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
NO_ACCESS = {"LDC", "LDCU", "LDGDEPBAR", "UTMACMDFLUSH", "UTMAPF", "UTMACCTL", "CCTL", "CCTLL", "CCTLT"}
MAY_ACCESS = re.compile(r"LD|ST|ATOM|RED|UBLK|UTMA|CCTL|SU(ST|LD|ATOM|RED)|TLD|TEX|UST|ULD(?!C)")
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


def _sass_bytes(parts: list[str]) -> int:
    sizes = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "F64": 8, "128": 16, "256": 32}
    return next((sizes[part] for part in parts if part in sizes), 4)


def ptx_kernels(text: str) -> dict[str, Counter[str]]:
    """The accesses of each entry of a PTX file."""
    kernels = {}
    text = re.sub(r"//.*|/\*.*?\*/", "", text)
    for name, body in re.findall(r"\.entry\s+(\w+)\s*\(.*?^\{(.*?)^\}", text, re.DOTALL | re.MULTILINE):
        lines = [line for line in body.splitlines() if not line.lstrip().startswith(".")]
        statements = (re.sub(r"^(?:[\s{}]|[\w$]+:|@!?%?\w+)*", "", part) for part in "\n".join(lines).split(";"))
        found = (ptx_access(re.sub(r"\s+", " ", statement)) for statement in statements)
        kernels[name] = Counter(each for each in found if each)
    return kernels


def sass_kernels(text: str) -> dict[str, Counter[str]]:
    """The accesses of each kernel in what `nvdisasm -c` writes."""
    kernels: dict[str, Counter[str]] = {}
    accesses: Counter[str] = Counter()
    for line in text.splitlines():
        if label := re.match(r"\.text\.(\w+):", line):
            accesses = kernels.setdefault(label[1], Counter())
        elif found := re.match(r"\s*/\*[0-9a-f]+\*/\s+(.*?)\s*;", line):
            made = sass_access(re.sub(r"\s+", " ", found[1]))
            accesses.update([made] if made else [])
    return kernels


def differences(ptx: Counter[str], sass: Counter[str]) -> str:
    """What one has more of than the other; "" where they are equal."""
    more = [f"{count} x {each} in PTX alone" for each, count in sorted((ptx - sass).items())]
    more += [f"{count} x {each} in machine code alone" for each, count in sorted((sass - ptx).items())]
    return "; ".join(more)
