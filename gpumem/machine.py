"""What a measurement was taken on: CPU, cores, caches, memory, versions. Reads /proc and /sys; starts nothing."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import numpy as np

from . import _core

MIB = 1 << 20


def version() -> str:
    """The version that is installed."""
    from importlib import metadata  # slow to import, and import gpumem should not be

    try:
        return metadata.version("gpumem")
    except metadata.PackageNotFoundError:
        return "unknown"


def read(path: str) -> str:
    """The text of a small file, stripped; empty where it cannot be read."""
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:
        return ""


def cpu_model() -> str:
    """The CPU's name as the kernel tells it."""
    for line in read("/proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model"):
            return value.strip()
    return platform.processor() or platform.machine()


def cores_allowed() -> int:
    """How many cores this process may run on."""
    return len(os.sched_getaffinity(0))


def cpu_quota() -> float | None:
    """The cores' worth of time that the control group grants, where it sets a limit."""
    quota, _, period = read("/sys/fs/cgroup/cpu.max").partition(" ")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None


def huge_pages() -> str:
    """The setting of transparent huge pages: always, madvise or never; "unknown" where it cannot be read."""
    setting = read("/sys/kernel/mm/transparent_hugepage/enabled")
    return setting.partition("[")[2].partition("]")[0] or "unknown"


def memory_free() -> int:
    """Bytes that can be allocated without swapping, as the kernel estimates it."""
    for line in read("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 1 << 32


def last_cache() -> int:
    """Bytes of the last level of cache."""
    return max(_core._caches().values(), default=0) or 32 * MIB


def commit() -> str | None:
    """The commit of the source tree that this package runs from, with "+" where it has changes; None if installed."""
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return None
    return output("git", "-C", str(root), "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*")


def output(*command: str) -> str | None:
    """What a program prints, stripped; None where it is not there or fails."""
    import subprocess

    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def environment() -> dict[str, Any]:
    """What stands beside every recorded measurement."""
    return {
        "gpumem": version(),
        "commit": commit(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpu": cpu_model(),
        "cores": cores_allowed(),
        "threads": _core.get_num_threads(),
        "isa": _core._isa(),
        "caches": _core._caches(),
        "huge_pages": huge_pages(),
    }
