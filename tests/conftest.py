"""What every test may rely on."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.thorough import examples

# How long a machine takes is no property of the code.
settings.register_profile("untimed", deadline=None, max_examples=examples(100))
settings.load_profile("untimed")


@pytest.fixture(autouse=True, scope="session")
def heed_interrupts() -> Iterator[None]:
    """Take SIGINT as a terminal's program does: a shell's background jobs, and what they start, ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
