"""What the chart's questions ask of a site: what was recorded of it, and where else the same stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .pattern import Pattern
    from .trace import Site

SECTOR = 32  # bytes
WARP = 32
LEAST = 0.02  # of all sectors or wavefronts: a change that saves less is not worth a line


def others(sites: Sequence[Site], first: Site) -> tuple[str, ...]:
    """The places of the rest."""
    return tuple(dict.fromkeys(each.place for each in sites if each.place != first.place))


def place_of(site: Site) -> tuple[Any, ...]:
    """What tells a site from others: an unrolled loop makes several of one line."""
    return (site.file, site.line, site.calls, site.kind, site.width) if site.file and site.line else (site.ptx_line,)


def global_patterns(site: Site) -> list[Pattern]:
    """The recorded executions that went to global or local memory; of cp.async, not their shared side."""
    return [row for row in site.patterns if row.space != "shared" and row.lanes]


def buffer_of(site: Site) -> str | None:
    """The argument that a site's recorded executions all went to."""
    names = {row.buffer for row in global_patterns(site)}
    return names.pop() if len(names) == 1 else None
