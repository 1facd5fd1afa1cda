"""Texts for the tests of the importers."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from envcheck.importers import read_text
from envcheck.model.snapshot import Driver, Environment, Framework, Gpu, Snapshot
from tests.known import fields, known

DATA = Path(__file__).parent / "data"


def recorded(name: str) -> str:
    """A text that a tool printed on a real machine."""
    return (DATA / name).read_text(encoding="utf-8")


def word(number: int) -> str:
    """Another one for each number, without digits."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def environment_in(text: str) -> Environment:
    listing = known(read_text(text).environments)
    assert len(listing.items) == 1
    return listing.items[0]


def torch_in(text: str) -> Framework:
    return next(framework for framework in known(environment_in(text).frameworks).items if framework.name == "torch")


def gpus_in(text: str) -> tuple[Gpu, ...]:
    return known(read_text(text).gpus).items


def told(text: str, names: Iterable[str]) -> dict[str, Any]:
    """What a text says, by names as for ``fields``: of the Snapshot, or of its only environment, PyTorch or GPU."""
    only: dict[str, Callable[[str], object]] = {"environment": environment_in, "torch": torch_in, "gpu": gpu_in}
    split = {name: name.partition(".") for name in names}
    return {
        name: fields(only[head](text), [rest])[rest] if head in only else fields(read_text(text), [name])[name]
        for name, (head, _, rest) in split.items()
    }


def gpu_in(text: str) -> Gpu:
    (gpu,) = gpus_in(text)
    return gpu


def release_in(text: str) -> str | None:
    return (read_text(text).driver or Driver()).release


def errors_in(snapshot: Snapshot) -> list[str]:
    return [error.text for error in snapshot.observed_errors]
