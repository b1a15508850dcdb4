"""What gpumem has written as JSON, read again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from .errors import UsageError
from .table import Shown

Made = TypeVar("Made")


def read_json(path: str | Path) -> Any:
    """The JSON of a file. Raises UsageError, which names the file, where it cannot be read or holds none."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except RecursionError:
        raise UsageError(f"{path} is no JSON of gpumem: it is nested too deeply") from None
    except ValueError as error:
        raise UsageError(f"{path} is no JSON: {error}") from None


def made_from(data: Any, make: Callable[[Any], Made], what: str) -> Made:
    """What `make` makes of `data`, and that can also be shown. Raises UsageError that begins with `what`."""
    try:
        made = make(data)
        if isinstance(made, Shown):
            made.tables()
    except KeyError as error:
        raise UsageError(f"{what}: {error} is missing") from None
    except (ValueError, TypeError, AttributeError, IndexError) as error:
        raise UsageError(f"{what}: {error}") from None
    return made
