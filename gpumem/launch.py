"""A launch of PTX on a GPU, by the driver: what the lens executes, on the hardware.

Arrays in host memory are copied to the device, and back afterwards. For profiles and comparisons, not for speed.
"""

from __future__ import annotations

import ctypes
import pickle
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from .arguments import Buffer, Layout
from .errors import UsageError

_PARAMETERS, _PARAMETER_BYTES, _END = 1, 2, 0  # CU_LAUNCH_PARAM_*
_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_LOG, _LOG_BYTES, _LINES = 5, 6, 13  # CU_JIT_ERROR_LOG_BUFFER, its size, CU_JIT_GENERATE_LINE_INFO
_LOG_SIZE = 8192
_NOT_READY = 600  # CUDA_ERROR_NOT_READY
_SPIN = 1e-3  # seconds: asking again and again, then that long between


class DriverError(RuntimeError):
    """A call of the CUDA driver that failed. `code` is the driver's number."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


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
        self._ordinal = device
        self.stuck = False  # something runs that does not end

    def attribute(self, number: int) -> int:
        """A CU_DEVICE_ATTRIBUTE of the device; 0 where the driver does not know it."""
        value = ctypes.c_int()
        return 0 if self._cuda.cuDeviceGetAttribute(ctypes.byref(value), number, self._ordinal) else value.value

    def call(self, name: str, *arguments: object) -> None:
        """Calls a function of the driver. Raises DriverError with the driver's words."""
        result = self._cuda[name](*arguments)
        if result:
            text = ctypes.c_char_p()
            self._cuda.cuGetErrorString(result, ctypes.byref(text))
            said = text.value.decode() if text.value else "unknown"
            raise DriverError(f"{name}: {said} (error {result})", result)

    def function(self, code: bytes, name: str, shared: int) -> ctypes.c_void_p:
        """A kernel of PTX or machine code, which may use that much dynamic shared memory."""
        return self.loaded(code, name, shared)[1]

    def loaded(self, code: bytes, name: str, shared: int) -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
        """The same with its module, whose variables are as they are declared."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        log = ctypes.create_string_buffer(_LOG_SIZE)
        keys = (ctypes.c_int * 3)(_LOG, _LOG_BYTES, _LINES)
        values = (ctypes.c_void_p * 3)(ctypes.addressof(log), _LOG_SIZE, 1)
        try:
            self.call("cuModuleLoadDataEx", ctypes.byref(module), code, 3, keys, values)
        except DriverError as error:
            said = log.value.decode(errors="replace").strip()
            raise DriverError(f"{error}{': ' + said if said else ''}", error.code) from None
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        if shared:  # more than 48 KiB, the static ones counted in, have to be asked for
            self.call("cuFuncSetAttribute", function, _DYNAMIC_SHARED, shared)
        return module, function

    def wait(self, seconds: float) -> None:
        """Waits until the default stream is idle; Ctrl-C ends it. Raises DriverError where that takes longer.

        What still runs then ends with this process alone, and no call that waits for it returns: memory is not given
        back any more.
        """
        began = time.monotonic()
        self.stuck = True
        while (result := self._cuda.cuStreamQuery(None)) == _NOT_READY:
            waited = time.monotonic() - began
            if waited > seconds:
                raise DriverError(f"a launch did not end in {seconds:g} s: does it wait for blocks that cannot start?")
            if waited > _SPIN:
                time.sleep(_SPIN)
        self.stuck = False
        if result:
            self.call("cuStreamQuery", None)

    def allocate(self, count: int) -> ctypes.c_uint64:
        """Memory of the device."""
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(count, 1)))
        return address

    @contextmanager
    def memory(self, *counts: int) -> Iterator[list[ctypes.c_uint64]]:
        """Memory of the device for as long as the context lasts: a piece of so many bytes each."""
        pieces: list[ctypes.c_uint64] = []
        try:
            for count in counts:
                pieces.append(self.allocate(count))
            yield pieces
        finally:
            for piece in [] if self.stuck else pieces:
                with suppress(DriverError):  # after a fault the context gives nothing back, and that has been told
                    self.call("cuMemFree_v2", piece)

    def upload(self, address: ctypes.c_uint64, data: bytes) -> None:
        """Bytes of the host to the device."""
        self.call("cuMemcpyHtoD_v2", address, data, ctypes.c_size_t(len(data)))

    def download(self, address: ctypes.c_uint64, count: int) -> bytes:
        """So many bytes of the device."""
        copy = ctypes.create_string_buffer(count)
        self.call("cuMemcpyDtoH_v2", copy, address, ctypes.c_size_t(count))
        return copy.raw


def run(job: Job, *, profiled: bool = False) -> list[bytes]:
    """Launches a job and returns the bytes of its buffers afterwards. profiled: the launch alone is what ncu sees."""
    device = Device()
    function = device.function(job.code, job.kernel, job.shared)
    sizes = [len(data) for data in job.buffers]
    with device.memory(*sizes) as addresses:
        for address, data in zip(addresses, job.buffers, strict=True):
            device.upload(address, data)
        if profiled:
            device.call("cuProfilerStart")
        start(device, function, job, addresses)
        device.call("cuCtxSynchronize")
        if profiled:
            device.call("cuProfilerStop")
        return [device.download(address, count) for address, count in zip(addresses, sizes, strict=True)]


def start(device: Device, function: ctypes.c_void_p, job: Job, addresses: Sequence[ctypes.c_uint64]) -> None:
    """Puts the launch of a job, whose buffers lie at these addresses, on the default stream."""
    block = bytearray(job.parameters)
    for at, buffer, offset in job.pointers:
        block[at : at + 8] = (addresses[buffer].value + offset).to_bytes(8, "little")
    parameters = ctypes.create_string_buffer(bytes(block), len(block))
    count = ctypes.c_size_t(len(block))
    extra = (ctypes.c_void_p * 5)(
        _PARAMETERS, ctypes.addressof(parameters), _PARAMETER_BYTES, ctypes.addressof(count), _END
    )
    device.call("cuLaunchKernel", function, *job.grid, *job.block, job.shared, None, None, extra)


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
