"""Advice as SARIF 2.1.0, which editors and code hosts show beside the lines.

The format: "Static Analysis Results Interchange Format (SARIF) Version 2.1.0", OASIS Standard with errata 01.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from .advice import RULES, SURE, Advice
from .machine import version

if TYPE_CHECKING:
    from .trace import Trace

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_NAMES = list(RULES)


def sarif(trace: Trace, file: str | None = None) -> dict[str, Any]:
    """The advice for a trace as a SARIF log, ready for `json.dumps`.

    file: where the kernel came from; lines that have no source file of their own are lines of it.

    >>> copy = gpumem.Kernel(gpumem.examples.COPY)
    >>> x, out = np.arange(1024, dtype="f4"), np.zeros(1024, "f4")
    >>> log = sarif(copy.trace(8, 128, out, x, 1024), "copy.ptx")
    >>> [(result["ruleId"], result["level"]) for result in log["runs"][0]["results"]]
    [('vector', 'note'), ('ceiling', 'none')]
    """
    rules = [
        {
            "id": rule.name,
            "shortDescription": {"text": f"{rule.title}."},
            "fullDescription": {"text": rule.help},
            "help": {"text": rule.help},
            "defaultConfiguration": {"level": rule.level},
        }
        for rule in RULES.values()
    ]
    driver = {"name": "gpumem", "semanticVersion": version(), "rules": rules}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "columnKind": "unicodeCodePoints",
                "results": [result(item, trace, file) for item in trace.advice],
            }
        ],
    }


def result(item: Advice, trace: Trace, file: str | None) -> dict[str, Any]:
    """One item. What is at its ceiling is a result of the kind "pass"."""
    said = [f"{trace.kernel}: {item.text}."]
    if item.remedy:
        said.append(item.remedy)
    said += [f"{line}." for line in item.code]
    if item.after:
        said.append(f"Predicted: {item.predicted} ({SURE[item.sure]}).")
    made: dict[str, Any] = {
        "ruleId": item.rule,
        "ruleIndex": _NAMES.index(item.rule),
        "kind": "pass" if item.level == "none" else "fail",
        "level": item.level,
        "message": {"text": " ".join(said)},
        "properties": {"kernel": trace.kernel, "share": item.share, "now": dict(item.now), "after": dict(item.after)}
        | ({"sure": item.sure} if item.sure else {}),
    }
    line = item.line if item.file and item.line else item.ptx_line
    name = item.file if item.file and item.line else file
    if name:
        made["locations"] = [location(name, line)]
    calls = [call.rpartition(":") for call in item.calls]
    if calls:
        said_of = {"message": {"text": "inlined here"}}
        made["relatedLocations"] = [location(name, int(line)) | said_of for name, _, line in calls]
    return made


def location(name: str, line: int) -> dict[str, Any]:
    """A line of a file; 0: the file."""
    place: dict[str, Any] = {"artifactLocation": {"uri": uri(name)}}
    if line:
        place["region"] = {"startLine": line}
    return {"physicalLocation": place}


def uri(file: str) -> str:
    """A path as a reference: relative to where the command runs, if it is inside; else from the root.

    >>> uri("src/my kernel.cu"), uri("/elsewhere/k.cu")
    ('src/my%20kernel.cu', 'file:///elsewhere/k.cu')
    """
    from pathlib import Path

    path = PurePath(file)
    if path.is_absolute():
        here = Path.cwd()
        if not path.is_relative_to(here):
            return path.as_uri()
        path = path.relative_to(here)
    return quote(path.as_posix())
