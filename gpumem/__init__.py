from . import _core  # noqa: F401
