"""`gpumem metrics`: the counters that matter for memory, explained; of a saved trace, with their values."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

EXAMPLES = (
    "gpumem metrics\ngpumem metrics gld_efficiency\ngpumem trace tile.cu ... --json > t.json; gpumem metrics t.json"
)


def register(command: Callable[[str, str, str], argparse.ArgumentParser]) -> None:
    """Adds the command."""
    made = command("metrics", "the counters that matter for memory: meaning, formula, ideal, old names", EXAMPLES)
    made.add_argument("what", nargs="?", metavar="NAME or FILE", help="one counter (nvprof's names, too), or a trace")


def run(options: argparse.Namespace) -> None:
    """The table, a row of it, or the values of a trace."""
    from .advise_command import saved_trace
    from .console import show
    from .explain import Explanation, explained

    if options.what is None:
        made = Explanation()
    elif options.what.endswith(".json"):
        made = Explanation(saved_trace(Path(options.what)))
    else:
        made = Explanation(rows=[explained(options.what)])
    if options.json:
        print(json.dumps(made.to_dict(), indent=1))
    else:
        show(made)
