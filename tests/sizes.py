"""Sizes of the tests on a GPU: the usual ones, or, with GPUMEM_TEST_SMALL=1, such as compute-sanitizer gets through."""

import os

import pytest

SMALL = os.environ.get("GPUMEM_TEST_SMALL") == "1"


def sized(usual, small):
    """Tests that differ in nothing but size take the small ones under compute-sanitizer."""
    return small if SMALL else usual


def not_small(reason):
    """Leaves a test out there: it adds no kernel and no path through one, and would take too long, or cannot run."""
    return pytest.mark.skipif(SMALL, reason=f"not under compute-sanitizer: {reason}")
