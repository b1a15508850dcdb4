"""Kernels' names as their source has them."""

from __future__ import annotations

import ctypes
from functools import lru_cache


@lru_cache(maxsize=256)
def readable(kernel: str) -> str:
    """A kernel's name without its parameters, where the C++ library is there to tell; else as it is.

    >>> readable("copy")
    'copy'
    """
    if not kernel.startswith("_Z"):
        return kernel
    try:
        demangle, free = ctypes.CDLL("libstdc++.so.6").__cxa_demangle, ctypes.CDLL(None).free
    except (OSError, AttributeError):
        return kernel
    demangle.restype, free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    made = demangle(kernel.encode(), None, None, None)
    if not made:
        return kernel
    name = ctypes.string_at(made).decode(errors="replace").removeprefix("void ")
    free(made)
    return name.rpartition("(")[0] or name
