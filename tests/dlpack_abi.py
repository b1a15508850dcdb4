"""DLPack's structures by ctypes, and producers made of them: arrays that can lie, and count their deleter's calls.

The package is compiled against the official dlpack.h; this is a second, independent description of the same memory.
"""

import ctypes
import gc
import os
from collections.abc import Callable
from ctypes import POINTER, PYFUNCTYPE, Structure, c_char_p, c_int, c_int64, c_uint8, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import numpy as np

CPU, CUDA, CUDA_HOST, METAL, ROCM_HOST, CUDA_MANAGED = (1, 0), (2, 0), (3, 0), (8, 0), (11, 0), (13, 0)
READ_ONLY, IS_COPIED = 1, 2
INT, UINT, FLOAT, OPAQUE, BFLOAT, COMPLEX, BOOL, E4M3FN, E5M2 = 0, 1, 2, 3, 4, 5, 6, 10, 12
KINDS = {"i": INT, "u": UINT, "f": FLOAT, "c": COMPLEX, "b": BOOL}


class Device(Structure):
    _fields_ = [("type", c_int), ("id", c_int)]


class DataType(Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device", Device),
        ("ndim", c_int),
        ("dtype", DataType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


# Deleters get an address: by then the structure may be anywhere.
Deleter = ctypes.CFUNCTYPE(None, c_void_p)


class Legacy(Structure):
    _fields_ = [("tensor", Tensor), ("context", c_void_p), ("deleter", Deleter)]


class Versioned(Structure):
    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", Deleter),
        ("flags", c_uint64),
        ("tensor", Tensor),
    ]


SetError = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_char_p)
Allocator = PYFUNCTYPE(c_int, POINTER(Tensor), POINTER(c_void_p), c_void_p, SetError)
FromPyObject = PYFUNCTYPE(c_int, ctypes.py_object, POINTER(c_void_p))
ToPyObject = PYFUNCTYPE(c_int, c_void_p, POINTER(c_void_p))


class ExchangeApi(Structure):
    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("prev", c_void_p),
        ("allocator", Allocator),
        ("from_py_object", FromPyObject),
        ("to_py_object", ToPyObject),
        ("dltensor_from_py_object", c_void_p),
        ("current_work_stream", c_void_p),
    ]


api = ctypes.pythonapi
CapsuleDestructor = PYFUNCTYPE(None, c_void_p)  # not py_object: the capsule is dying, nobody may hold it
api.PyCapsule_New.restype, api.PyCapsule_New.argtypes = ctypes.py_object, [c_void_p, c_char_p, c_void_p]
capsule_name = PYFUNCTYPE(c_char_p, c_void_p)(("PyCapsule_GetName", api))
capsule_pointer = PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", api))
rename_capsule = PYFUNCTYPE(c_int, c_void_p, c_char_p)(("PyCapsule_SetName", api))


def name_of(capsule: object) -> str:
    return capsule_name(id(capsule)).decode()


def managed_of(capsule: object) -> Versioned | Legacy:
    """The structure in a capsule that is still unused."""
    kind = Versioned if name_of(capsule) == "dltensor_versioned" else Legacy
    return kind.from_address(capsule_pointer(id(capsule), capsule_name(id(capsule))))


def consume(capsule: object) -> Versioned | Legacy:
    """The structure, and from now on the duty to call its deleter."""
    managed = managed_of(capsule)
    rename_capsule(id(capsule), used_names[type(managed)])
    return managed


def delete(managed: Versioned | Legacy) -> None:
    managed.deleter(ctypes.addressof(managed))


def items_of(managed: Versioned | Legacy) -> bytes:
    """The bytes of a dense tensor."""
    tensor = managed.tensor
    count = int(np.prod(tensor.shape[: tensor.ndim], dtype=int))
    return ctypes.string_at(tensor.data + tensor.byte_offset, count * tensor.dtype.bits // 8) if count else b""


# A capsule keeps the address of its name only: these live as long as the module.
names = {Versioned: b"dltensor_versioned", Legacy: b"dltensor"}
used_names = {Versioned: b"used_dltensor_versioned", Legacy: b"used_dltensor"}


@CapsuleDestructor
def destroy_capsule(capsule: int) -> None:
    """What every producer's capsule does when it dies unused."""
    name = capsule_name(capsule)
    for kind, unused in names.items():
        if name == unused:
            managed = kind.from_address(capsule_pointer(capsule, name))
            if managed.deleter:
                managed.deleter(ctypes.addressof(managed))


class Producer:
    """An array of a library that does not exist. It says the truth about `array`, but for the `lies` it is given.

    `deleted` counts the calls of the deleters of what it exported, `exported` the exports.
    """

    def __init__(
        self,
        array: np.ndarray,
        *,
        kind: type[Versioned] | type[Legacy] = Versioned,
        version: tuple[int, int] = (1, 3),
        flags: int = 0,
        dtype: tuple[int, int, int] | None = None,
        device: tuple[int, int] = CPU,
        on_delete: Callable[[], None] | None = None,
        has_deleter: bool = True,
        **lies: Any,
    ) -> None:
        self.array, self.kind, self.version, self.flags, self.device = array, kind, version, flags, device
        self.dtype = dtype or (KINDS[array.dtype.kind], array.itemsize * 8, 1)
        self.on_delete, self.has_deleter, self.lies = on_delete, has_deleter, lies
        self.deleted = self.exported = 0
        self.alive: dict[int, tuple[object, ...]] = {}

    def tensor(self) -> tuple[Tensor, tuple[object, ...]]:
        array, lies = self.array, self.lies
        shape = lies.get("shape", array.shape)
        strides = lies.get("strides", tuple(s // array.itemsize for s in array.strides))
        keep = [None if x is None else (c_int64 * len(x))(*x) for x in (shape, strides)]
        tensor = Tensor(
            lies.get("data", array.ctypes.data),
            Device(*lies.get("tensor_device", self.device)),
            lies.get("ndim", array.ndim),
            DataType(*self.dtype),
            keep[0],
            keep[1],
            lies.get("byte_offset", 0),
        )
        return tensor, (array, *keep)

    def managed(self) -> Versioned | Legacy:
        """A new export, which lives until its deleter is called."""
        tensor, keep = self.tensor()
        deleter = Deleter(self.delete) if self.has_deleter else Deleter()
        if self.kind is Versioned:
            managed = Versioned(*self.version, None, deleter, self.flags, tensor)
        else:
            managed = Legacy(tensor, None, deleter)
        self.alive[ctypes.addressof(managed)] = (managed, deleter, *keep)
        self.exported += 1
        return managed

    def delete(self, address: int) -> None:
        self.deleted += 1
        assert address in self.alive, "deleted twice, or never exported"
        if self.on_delete:
            self.on_delete()
        # The structure goes, so that the sanitizer sees a later use; its callback is running, so it stays.
        self.alive[address] = self.alive[address][1:2]

    def capsule(self) -> object:
        managed = self.managed()
        return api.PyCapsule_New(ctypes.addressof(managed), names[self.kind], destroy_capsule)

    def __dlpack__(self, *, max_version: tuple[int, int] | None = None) -> object:
        return self.capsule()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


class Hands:
    """Hands out this one capsule, or what else it is given."""

    def __init__(self, capsule: object) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: object) -> object:
        return self.capsule


def grows(once: Callable[[], object], rounds: int, limit: int) -> bool:
    """Whether so many calls take more than `limit` bytes of memory for good: three times over, as a leak would.

    AddressSanitizer keeps freed memory back and finds leaks by itself: few calls will do then, and no judgement.
    """

    def resident() -> int:
        gc.collect()  # producers are in circles, and free-threaded Pythons leave those for longer
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for _ in range(200):
        once()
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        return False
    for _ in range(3):
        before = resident()
        for _ in range(rounds):
            once()
        if resident() - before <= limit:
            return False
    return True
