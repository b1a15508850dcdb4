"""What the chart's questions ask of a site: what was recorded of it, and where else the same stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .trace import Site

SECTOR = 32  # bytes
WARP = 32
LEAST = 0.02  # of all sectors or wavefronts: a change that saves less is not worth a line


def others(sites: Sequence[Site], first: Site) -> tuple[str, ...]:
    """The places of the rest."""
    return tuple(dict.fromkeys(each.where for each in sites if each.where != first.where))


def place_of(site: Site) -> tuple[Any, ...]:
    """What tells a site from others: an unrolled loop makes several of one line."""
    return (site.file, site.line, site.kind, site.width) if site.file and site.line else (site.ptx_line,)


def buffer_of(site: Site) -> str | None:
    """The argument that a site's recorded executions all went to."""
    names = {pattern.buffer for pattern in site.patterns}
    return names.pop() if len(names) == 1 else None
