"""Machine code read from a cubin itself, for machines that have ptxas and no nvdisasm.

An instruction is 16 bytes since compute capability 7.0. Bits 0-8 say what it does, 9-11 of what kind its operands are,
12-15 its predicate; a memory instruction keeps the width of an access in bits 73-75 and its cache hints between 68 and
86; bits 110-112 name the scoreboard that holds until its result is there, 116-121 those that it waits for. Instructions
are written as nvdisasm writes them, as far as sass.py reads them, without operands: accesses with all that they have,
others where they matter. The tables were learned from nvdisasm's listings of a kernel with every form that ptxas 13.0
takes, for seven chips; the tests compare both readers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from .errors import UsageError
from .sass import Instruction, access_bytes

BYTES = 16
FIRST_CHIP = 70  # before it instructions had 8 bytes
_LINES = ".nv_debug_line_sass"
_CODE = ".text."

_SIZES = ("U8", "S8", "U16", "S16", "", "64", "128", "U.128")
_EVICTION = ("EF", "", "EL", "LU", "EU", "NA", "", "")
_FETCH = ("", "LTC64B", "LTC128B", "LTC256B")
# Bits 76-80: whether other threads see it, and how far; two numberings.
_ORDER_75 = {6: "CONSTANT", 14: "", 16: "", 20: "STRONG.GPU", 22: "STRONG.SYS", 30: ""}
_ORDER = {0: "", 1: "", 9: "CONSTANT", 11: "STRONG.SM", 15: "STRONG.GPU", 21: "STRONG.SYS", 24: ""}
_OPERATIONS = ("ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR", "EXCH", "ARRIVE")
_ATOMIC_SIZES = ("", "S32", "64", "S64", "128")
_ATOMIC_SIZES_80 = ("", "S32", "64", "F32", "F16x2", "S64", "F64")
_FLOAT_SIZES = {0: "F16x2", 2: "F16x8", 3: "BF16x2", 9: "F32", 10: "F32x2", 11: "F32x4", 15: "F64"}
_DIRECTIONS = {1: "S.G", 2: "G.S", 3: "S.S", 5: "S.G"}

_PLAIN = {0x180: "LD.E", 0x181: "LDG.E", 0x183: "LDL", 0x184: "LDS"}
_PLAIN |= {0x185: "ST.E", 0x186: "STG.E", 0x187: "STL", 0x188: "STS"}
_WIDE = {0x17E: "LDG.E.256", 0x17F: "STG.E.256"}
_ATOMIC = {0x18A: "ATOM.E", 0x18C: "ATOMS", 0x18E: "RED.E", 0x1A8: "ATOMG.E"}
_FLOAT = {0x1A2: "ATOM.E.ADD", 0x1A3: "ATOMG.E.ADD", 0x1A6: "RED.E.ADD"}
_SWAP = {0x18B: "ATOM.E", 0x18D: "ATOMS", 0x1A9: "ATOMG.E"}
_MATRIX = {0x03B: "LDSM", 0x044: "STSM"}
_TENSOR = {0x1B4: "UTMALDG", 0x1B5: "UTMASTG"}
_COPY, _BULK = 0x1AE, 0x1BA
# That move nothing which a kernel asked for, and those that the binding has to know: votes, and the wait for copies.
_NAMED = {0x006: "VOTE", 0x086: "VOTEU", 0x0BD: "UFLO", 0x100: "FLO", 0x11A: "DEPBAR", 0x1A1: "MATCH"}
_NAMED |= {0x16F: "TXQ", 0x182: "LDC", 0x189: "SHFL", 0x18F: "CCTL", 0x192: "MEMBAR", 0x1A7: "SYNCS", 0x1AA: "QSPC"}
_NAMED |= {0x1AB: "ERRBAR", 0x1AC: "LDCU", 0x1AF: "LDGDEPBAR", 0x1B0: "ARRIVES", 0x1B1: "SYNCS", 0x1B2: "SYNCS"}
_NAMED |= {0x1B7: "UTMACMDFLUSH", 0x1B8: "UTMAPF", 0x1BC: "UBLKPF"}
# Where memory instructions are: one that is not in the tables may move data, and is named so that it is not lost.
_MEMORY = range(0x160, 0x1C0)
_UNKNOWN, _OTHER = "LD_OR_ST_{:#x}", "OP_{:#x}"
_NEVER = 15  # the predicate of an instruction that is not executed
_ALWAYS = 7
_SCOREBOARDS = 6
_BRANCH, _EXIT = 0x147, 0x14D


class _Section(NamedTuple):
    name: str
    offset: int
    size: int
    link: int


def chip_of(arch: str) -> int:
    """The number of a chip.

    >>> chip_of("sm_90a")
    90
    """
    return int("".join(letter for letter in arch if letter.isdigit()))


def functions(cubin: bytes, arch: str) -> dict[str, list[Instruction]]:
    """The instructions of each function of a cubin for that chip, with their lines of the PTX where the cubin has them.

    Raises UsageError for bytes that are no cubin, and for chips before sm_70.
    """
    chip = chip_of(arch)
    if chip < FIRST_CHIP:
        raise UsageError(f"machine code of {arch}: only that of sm_{FIRST_CHIP} and later can be read without nvdisasm")
    try:
        sections = _sections(cubin)
        lines = _lines(cubin, sections)
        return {
            each.name.removeprefix(_CODE): _code(cubin, each, chip, lines.get(number, {}))
            for number, each in enumerate(sections)
            if each.name.startswith(_CODE)
        }
    except UsageError:
        raise
    except (struct.error, IndexError, ValueError):
        raise UsageError("this cubin cannot be read: it is damaged") from None


def _sections(cubin: bytes) -> list[_Section]:
    if cubin[:5] != b"\x7fELF\x02":
        raise UsageError("this is no cubin: it does not begin as an ELF file of 64 bits does")
    (table,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    rows = [struct.unpack_from("<IIQQQQII", cubin, table + size * i) for i in range(count)]
    at = rows[names][4]
    return [_Section(_text(cubin, at + row[0]), row[4], row[5], row[6]) for row in rows]


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()


def _code(cubin: bytes, section: _Section, chip: int, lines: dict[int, int]) -> list[Instruction]:
    made, line = [], 0
    for number, word in enumerate(_words(cubin, section)):
        line = lines.get(number * BYTES, line)
        made.append(Instruction(words(word, chip), line))
    return made


def _words(cubin: bytes, section: _Section) -> Iterator[int]:
    if section.offset + section.size > len(cubin):
        raise ValueError("a section beyond the end")
    for at in range(section.offset, section.offset + section.size - BYTES + 1, BYTES):
        yield int.from_bytes(cubin[at : at + BYTES], "little")


# --- instructions ----------------------------------------------------------------------------------------------------


def _bits(word: int, low: int, count: int) -> int:
    return word >> low & ((1 << count) - 1)


def words(word: int, chip: int) -> str:
    """An instruction of 128 bits, in nvdisasm's words as far as they matter.

    >>> words(0x002EA2000C1E9D0000000006040C7981, 90)
    'LDG.E.128.CONSTANT'
    """
    code = _bits(word, 0, 9)
    try:
        what = _access(word, code, chip) or _NAMED.get(code, "")
    except (KeyError, IndexError):  # a form of an access that the tables have not
        what = ""
    if not what:
        what = (_UNKNOWN if code in _MEMORY or code in _MATRIX else _OTHER).format(code)
    return f"@!PT {what}" if _bits(word, 12, 4) == _NEVER else what


def _access(word: int, code: int, chip: int) -> str:
    """What nvdisasm calls an access; "" for other instructions."""
    size = _bits(word, 73, 3)
    if code in _PLAIN or code in _WIDE:
        wide = code in _WIDE
        fetch = _bits(word, 73, 2) if wide and code == 0x17E else 0 if wide else _bits(word, 68, 2)
        is_load = code in (0x17E, 0x180, 0x181)
        parts = [_PLAIN.get(code) or _WIDE[code], "" if wide else _SIZES[size]]
        if code not in (0x184, 0x187, 0x188):
            parts.append(_EVICTION[_bits(word, 84, 3)])
        if code not in (0x183, 0x184, 0x187, 0x188):
            order = (_ORDER_75 if chip < 80 else _ORDER)[_bits(word, 76, 5)]
            parts += [_FETCH[fetch] if is_load else "", order]
    elif code in _ATOMIC:
        parts = [_ATOMIC[code], *_atomic(word, code, chip)]
    elif code in _FLOAT:
        parts = [_FLOAT[code], _FLOAT_SIZES[_bits(word, 73, 4)]]
    elif code in _SWAP:
        spins = _bits(word, 87, 2) == 3
        parts = [_SWAP[code], "CAST.SPIN" if spins else "CAS", _ATOMIC_SIZES[size]]
    elif code == _COPY:
        late = chip >= 100
        parts = ["LDGSTS.E", "" if _bits(word, 81, 1) else "BYPASS", _FETCH[_bits(word, 72 if late else 71, 2)]]
        parts.append(("", "64", "128")[_bits(word, 74, 2)] if late else _SIZES[size])
    elif code in _MATRIX:
        parts = [_MATRIX[code], "16.MT88" if _bits(word, 78, 1) else "16.M88", ("", "2", "4")[_bits(word, 72, 2)]]
    elif code in _TENSOR:
        parts = [_TENSOR[code], f"{_bits(word, 79, 3) + 1}D"]
    elif code == _BULK:
        parts = ["UBLKCP", _DIRECTIONS[size]]
    else:
        return ""
    return ".".join(part for part in parts if part)


def _atomic(word: int, code: int, chip: int) -> list[str]:
    size = _bits(word, 73, 3)
    operation = _bits(word, 87, 3 if code == 0x18E else 4)
    if code == 0x18C and operation in (10, 11):
        return ["POPC.INC.32"]
    return [_OPERATIONS[operation], (_ATOMIC_SIZES if chip >= 90 else _ATOMIC_SIZES_80)[size]]


# --- what is under way -----------------------------------------------------------------------------------------------


def bytes_in_flight(cubin: bytes, arch: str, kernel: str) -> int:
    """The most bytes of global memory that one thread has asked for and not yet waited for.

    A load is under way until an instruction waits for its scoreboard, an asynchronous copy until DEPBAR. Where paths
    meet, the one with more under way counts. Loops are gone through once, so that what is loaded ahead across a turn
    counts, and more turns do not.
    """
    section = next(each for each in _sections(cubin) if each.name == _CODE + kernel)
    chip = chip_of(arch)
    nothing = (0,) * (_SCOREBOARDS + 1)  # the last is of copies
    jumps: dict[int, tuple[int, ...]] = {}  # what is under way where a branch further up comes in
    state, most = nothing, 0
    for number, word in enumerate(_words(cubin, section)):
        if number in jumps:
            state = tuple(map(max, state, jumps.pop(number)))
        state = _after(word, words(word, chip), state)
        most = max(most, sum(state))
        code, always = _bits(word, 0, 9), _bits(word, 12, 4) == _ALWAYS
        if code == _BRANCH:
            target = number + 1 + _distance(word, chip) // BYTES
            if target > number:
                jumps[target] = tuple(map(max, state, jumps.get(target, nothing)))
            always = always and _bits(word, 87, 4) == _ALWAYS
        if always and code in (_BRANCH, _EXIT):
            state = nothing
    return most


def _after(word: int, what: str, state: tuple[int, ...]) -> tuple[int, ...]:
    """What is under way after an instruction."""
    pending = [0 if _bits(word, 116 + i, 1) else held for i, held in enumerate(state[:_SCOREBOARDS])]
    copies = 0 if what == "DEPBAR" else state[_SCOREBOARDS]
    if what.startswith(("LDG.", "LD.")):
        scoreboard = _bits(word, 110, 3)
        if scoreboard < _SCOREBOARDS:
            pending[scoreboard] += access_bytes(what)
    elif what.startswith("LDGSTS"):
        copies += access_bytes(what)
    return (*pending, copies)


def _distance(word: int, chip: int) -> int:
    """Of a branch, from the next instruction on."""
    steps = _bits(word, 34, 48)
    if chip >= 90:
        steps = _bits(word, 34, 40) << 8 | _bits(word, 16, 8)
    return 4 * (steps - (1 << 48) if steps >> 47 else steps)


# --- lines -----------------------------------------------------------------------------------------------------------


def _lines(cubin: bytes, sections: list[_Section]) -> dict[int, dict[int, int]]:
    """By section of code, which addresses begin a line of the PTX: a line program of DWARF 2, with relocations."""
    by_name = {each.name: each for each in sections}
    if _LINES not in by_name or ".symtab" not in by_name:
        return {}
    program = by_name[_LINES]
    data = cubin[program.offset : program.offset + program.size]
    starts = {}
    for name, size in ((f".rela{_LINES}", 24), (f".rel{_LINES}", 16)):
        if moved := by_name.get(name):
            for at in range(moved.offset, moved.offset + moved.size, size):
                place, _, symbol = struct.unpack_from("<QII", cubin, at)
                (starts[place],) = struct.unpack_from("<H", cubin, by_name[".symtab"].offset + 24 * symbol + 6)
    found: dict[int, dict[int, int]] = {}
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at)
        _run_lines(data, at + 4, at + 4 + length, starts, found)
        at += 4 + length
    return found


def _run_lines(data: bytes, at: int, end: int, starts: dict[int, int], found: dict[int, dict[int, int]]) -> None:
    """One unit of the line program, into {section: {address: line}}."""
    (prologue,) = struct.unpack_from("<I", data, at + 2)
    least, _, base, span, first = struct.unpack_from("<BBbBB", data, at + 6)
    counts = data[at + 11 : at + 10 + first]
    at += 6 + prologue
    section, address, line = -1, 0, 1

    def row() -> None:
        found.setdefault(section, {})[address] = line

    while at < end:
        code = data[at]
        at += 1
        if code >= first:  # special: moves both, and makes a row
            address += (code - first) // span * least
            line += base + (code - first) % span
            row()
        elif code == 0:
            length, at = _unsigned(data, at)
            if data[at] == 1:  # the end of a function
                section, address, line = -1, 0, 1
            elif data[at] == 2:  # the address, which a relocation names
                section = starts.get(at + 1, -1)
                (address,) = struct.unpack_from("<Q", data, at + 1)
            at += length
        elif code == 1:
            row()
        elif code == 2:
            step, at = _unsigned(data, at)
            address += step * least
        elif code == 3:
            step, at = _signed(data, at)
            line += step
        elif code == 8:
            address += (255 - first) // span * least
        elif code == 9:
            (step,) = struct.unpack_from("<H", data, at)
            address, at = address + step, at + 2
        else:
            for _ in range(counts[code - 1]):
                _, at = _unsigned(data, at)


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def _signed(data: bytes, at: int) -> tuple[int, int]:
    start = at
    value, at = _unsigned(data, at)
    bits = 7 * (at - start)
    return (value - (1 << bits) if value >> (bits - 1) else value), at
