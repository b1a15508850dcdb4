"""setuptools' build backend, which asks for the pip packages of nvcc and dlpack.h where the machine has no others."""

import os
from typing import Any

import cuda_toolkit
from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


# Ships dlpack.h, compiled for most Pythons: free-threaded 3.13 is none of them, so a folder may be given instead.
DLPACK = "apache-tvm-ffi>=0.1.5"


def _more() -> list[str]:
    given = os.environ.get("GPUMEM_DLPACK_INCLUDE")
    return [*([] if given else [DLPACK]), *cuda_toolkit.build_requires()]


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    return [*build_meta.get_requires_for_build_wheel(config_settings), *_more()]


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:
    return [*build_meta.get_requires_for_build_editable(config_settings), *_more()]
