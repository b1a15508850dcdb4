"""A launch of PTX on a GPU, by the driver: what the lens executes, on the hardware.

Arrays in host memory are copied to the device, and back afterwards. For profiles and comparisons, not for speed.
"""

from __future__ import annotations

import ctypes
import pickle
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .arguments import Buffer, Layout
from .errors import UsageError

_PARAMETERS, _PARAMETER_BYTES, _END = 1, 2, 0  # CU_LAUNCH_PARAM_*
_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_LOG, _LOG_BYTES, _LINES = 5, 6, 13  # CU_JIT_ERROR_LOG_BUFFER, its size, CU_JIT_GENERATE_LINE_INFO
_LOG_SIZE = 8192


class DriverError(RuntimeError):
    """A call of the CUDA driver that failed."""


@dataclass(frozen=True)
class Job:
    """A launch that can be sent to another process: code, arguments, and the bytes of every buffer."""

    code: bytes
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    parameters: bytes
    pointers: tuple[tuple[int, int, int], ...]
    buffers: tuple[bytes, ...]


class Device:
    """The first CUDA device, with its primary context current in this thread."""

    def __init__(self) -> None:
        try:
            self._cuda = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise UsageError(f"no CUDA driver: {error}") from None
        context, device = ctypes.c_void_p(), ctypes.c_int()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *arguments: object) -> None:
        """Calls a function of the driver. Raises DriverError with the driver's words."""
        result = self._cuda[name](*arguments)
        if result:
            text = ctypes.c_char_p()
            self._cuda.cuGetErrorString(result, ctypes.byref(text))
            raise DriverError(f"{name}: {text.value.decode() if text.value else 'unknown'} (error {result})")

    def function(self, code: bytes, name: str, shared: int) -> ctypes.c_void_p:
        """A kernel of PTX or machine code, which may use that much dynamic shared memory."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        log = ctypes.create_string_buffer(_LOG_SIZE)
        keys = (ctypes.c_int * 3)(_LOG, _LOG_BYTES, _LINES)
        values = (ctypes.c_void_p * 3)(ctypes.addressof(log), _LOG_SIZE, 1)
        try:
            self.call("cuModuleLoadDataEx", ctypes.byref(module), code, 3, keys, values)
        except DriverError as error:
            said = log.value.decode(errors="replace").strip()
            raise DriverError(f"{error}{': ' + said if said else ''}") from None
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        if shared:  # more than 48 KiB, the static ones counted in, have to be asked for
            self.call("cuFuncSetAttribute", function, _DYNAMIC_SHARED, shared)
        return function

    def allocate(self, count: int) -> ctypes.c_uint64:
        """Memory of the device."""
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(count, 1)))
        return address


def run(job: Job, *, profiled: bool = False) -> list[bytes]:
    """Launches a job and returns the bytes of its buffers afterwards. profiled: the launch alone is what ncu sees."""
    device = Device()
    function = device.function(job.code, job.kernel, job.shared)
    addresses = [device.allocate(len(data)) for data in job.buffers]
    try:
        for address, data in zip(addresses, job.buffers, strict=True):
            device.call("cuMemcpyHtoD_v2", address, data, ctypes.c_size_t(len(data)))
        block = bytearray(job.parameters)
        for at, buffer, offset in job.pointers:
            block[at : at + 8] = (addresses[buffer].value + offset).to_bytes(8, "little")
        if profiled:
            device.call("cuProfilerStart")
        _launch(device, function, job, bytes(block))
        if profiled:
            device.call("cuProfilerStop")
        after = []
        for address, data in zip(addresses, job.buffers, strict=True):
            copy = ctypes.create_string_buffer(len(data))
            device.call("cuMemcpyDtoH_v2", copy, address, ctypes.c_size_t(len(data)))
            after.append(copy.raw)
        return after
    finally:
        for address in addresses:
            device.call("cuMemFree_v2", address)


def _launch(device: Device, function: ctypes.c_void_p, job: Job, block: bytes) -> None:
    parameters = ctypes.create_string_buffer(block, len(block))
    count = ctypes.c_size_t(len(block))
    extra = (ctypes.c_void_p * 5)(
        _PARAMETERS, ctypes.addressof(parameters), _PARAMETER_BYTES, ctypes.addressof(count), _END
    )
    device.call("cuLaunchKernel", function, *job.grid, *job.block, job.shared, None, None, extra)
    device.call("cuCtxSynchronize")


def job_of(code: bytes, kernel: str, grid: Sequence[int], block: Sequence[int], shared: int, layout: Layout) -> Job:
    """The launch of a layout, with copies of its buffers."""
    gx, gy, gz = grid
    bx, by, bz = block
    memory = tuple(ctypes.string_at(buffer.address, buffer.size) for buffer in layout.buffers)
    return Job(code, kernel, (gx, gy, gz), (bx, by, bz), shared, bytes(layout.block), tuple(layout.pointers), memory)


def write_back(buffers: Sequence[Buffer], after: Sequence[bytes]) -> None:
    """The bytes of a run into the arrays that they belong to."""
    for buffer, data in zip(buffers, after, strict=True):
        if not buffer.read_only:
            ctypes.memmove(buffer.address, data, buffer.size)


def main(path: str) -> None:
    """The child under Nsight Compute: runs the job of a file."""
    try:
        run(pickle.loads(Path(path).read_bytes()), profiled=True)
    except (DriverError, UsageError) as error:
        sys.exit(f"error: {error}")
