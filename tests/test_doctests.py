"""Every public name has a docstring, every function's has an example, and the examples run."""

import doctest
import importlib
import inspect
import pkgutil

import numpy as np
import pytest

import gpumem

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MODULES = sorted(m.name for m in pkgutil.iter_modules(gpumem.__path__) if m.name != "__main__")


def examples(thing, name, names=()):
    """The doctests of one docstring; also of C functions, which doctest's own search passes by."""
    return doctest.DocTestParser().get_doctest(
        inspect.getdoc(thing) or "", {**dict(names), "gpumem": gpumem, "np": np}, name, None, None
    )


def succeed(test):
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    said = []
    runner.run(test, out=said.append)
    assert not runner.failures, "".join(said)


@pytest.mark.parametrize("name", gpumem.__all__)
def test_public_names(name):
    thing = getattr(gpumem, name)
    assert inspect.getdoc(thing), f"gpumem.{name} has no docstring"
    test = examples(thing, name)
    assert test.examples or isinstance(thing, type), f"gpumem.{name} has no example"
    succeed(test)


@pytest.mark.parametrize("name", MODULES)
def test_modules(name):
    module = importlib.import_module(f"gpumem.{name}")
    assert module.__doc__ or name == "_core"
    for thing_name, thing in vars(module).items():
        if getattr(thing, "__module__", None) == module.__name__ and inspect.getdoc(thing):
            succeed(examples(thing, f"{name}.{thing_name}", vars(module)))
