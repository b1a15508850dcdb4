"""What all tests share."""

import os
import shutil

import fake_cuda
import pytest
from hypothesis import HealthCheck, settings

from gpumem import _core
from gpumem.cli import main

# A disassembler takes its time to start: tests of machine code ask for it.
os.environ.setdefault("GPUMEM_MACHINE_CODE", "0")

# No deadline: the machine may be busy, and a time never decides a test. For the sanitizers and second Pythons: quick.
settings.register_profile("usual", settings(), deadline=None)
settings.register_profile("quick", settings(), deadline=None, max_examples=15, suppress_health_check=list(HealthCheck))
settings.register_profile("thorough", settings(), deadline=None, max_examples=2000)
settings.load_profile("usual")


# A build without nvcc has everything but the CUDA kernels: what would have the lens execute one is skipped there.
HAS_KERNELS = _core._kernel_ptx("move_vectors") is not None
NO_KERNELS = "this gpumem was built without nvcc, and has no kernels to execute"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    if not HAS_KERNELS and report.failed and NO_KERNELS in report.longreprtext + report.capstdout:
        path, line, _ = item.location
        report.outcome, report.longrepr = "skipped", (path, line, f"Skipped: {NO_KERNELS}")
    return report


@pytest.fixture(scope="session")
def cuda_device():
    """For tests marked `gpu`: skips, with the reason, where there is no device."""
    cuda = _core._cuda()
    if not cuda["devices"]:
        pytest.skip(f"no CUDA device: {cuda['reason']}")


@pytest.fixture(scope="session")
def torch(cuda_device):
    """PyTorch, which holds the device's memory."""
    return pytest.importorskip("torch")


@pytest.fixture(scope="session")
def cupy(cuda_device):
    """CuPy."""
    return pytest.importorskip("cupy")


@pytest.fixture(scope="session")
def fake_driver(tmp_path_factory):
    """A CUDA driver without a device, whose kernels the CPU runs; compiled once."""
    if not _core._cuda()["chips"]:
        pytest.skip("this gpumem was built without CUDA")
    if not shutil.which("g++"):
        pytest.skip("needs g++")
    return fake_cuda.build(tmp_path_factory.mktemp("fake_cuda"))


@pytest.fixture
def said(capsys):
    """Runs a command of gpumem in this process: exit status, stdout, stderr."""

    def call(*arguments):
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as leave:
            status = leave.code
        out, err = capsys.readouterr()
        if not HAS_KERNELS and NO_KERNELS in err:
            pytest.skip(NO_KERNELS)
        return status, out, err

    return call
