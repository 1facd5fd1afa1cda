"""Draw what is asked: questions from the rows of the matrix with a fixed seed, texts from those that the tests have.

The corpus keeps what was drawn, so that a new row or example changes none of it.
"""

import json
import random
from collections.abc import Callable, Iterator
from functools import cache

from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.names import canonical
from envcheck.knowledge.specifier import Version, parse_specifier
from tests.golden.causes import CASES
from tests.golden.corpus import digest, write
from tests.importers import forms, layouts
from tests.rules.messages import examples, logs
from tests.rules.messages.test_causes import SUBJECTS

_NUMBER = {"releases": 2400, "torch": 1600, "wheels": 1000}
_MATRIX = load_matrix()
_CHANCE = random.Random(39)
_COMMON = ("H100", "H200", "A100", "B200", "L4", "T4", "V100", "RTX 5090", "RTX 4090", "RTX 3090", "GTX 1080 Ti")
_ALIKE = {"driver-linux": "driver", "driver-windows": "driver"}
_GPUS = [row.name for row in _MATRIX.gpus]
_TARGETS = [f"sm_{row.capability.replace('.', '')}" for row in _MATRIX.capabilities]
_TOOLKITS = [row.version for row in _MATRIX.cuda]
_DRIVERS = sorted(
    {text for row in _MATRIX.cuda for text in (row.driver_linux, row.bundled_driver) if text}
    | {f"{row.branch}.{minor}" for row in _MATRIX.drivers for minor in (54, 129)}
)
_BUILDS = ("", "", "+cu118", "+cu121", "+cu124", "+cu126", "+cu128", "+cu130", "+cpu")
_BESIDE: dict[str, Callable[[], str]] = {
    "gpu": lambda: _CHANCE.choice((_CHANCE.choice(_GPUS), *_CHANCE.sample(_COMMON, 3), _CHANCE.choice(_TARGETS))),
    "driver": lambda: _CHANCE.choice(_DRIVERS),
    "cuda": lambda: _CHANCE.choice(_TOOLKITS),
    "nvcc": lambda: _CHANCE.choice(_TOOLKITS),
    "python": lambda: f"3.{_CHANCE.randint(7, 14)}",
    "gcc": lambda: str(_CHANCE.randint(5, 15)),
}
"""What may stand beside a package."""
_PLATFORMS = (("os", "linux"), ("os", "windows"), ("os", "wsl"), ("machine", "aarch64"), ("machine", "x86_64"))


def draw() -> None:
    """Draw all anew; what is drawn is written down with its answers by the recorders."""
    for kind, make in {"releases": _of_release, "torch": _of_torch, "wheels": _of_wheels}.items():
        found: set[str] = set()
        while len(found) < _NUMBER[kind]:
            found.add(_question(make()))
        write(f"answers/{kind}.tsv", "".join(f"{text}\n" for text in sorted(found)))
    texts: dict[str, str] = {}
    for name, text in _texts():
        texts.setdefault(text, f"{name}/{digest(json.dumps(text))[:6]}")
    lines = sorted(json.dumps([name, text]) for text, name in texts.items())
    write(CASES, "".join(f"{line}\n" for line in lines))


def _question(versions: dict[str, str]) -> str:
    """As it is typed."""
    if _CHANCE.random() < 0.3:
        versions.setdefault(*_CHANCE.choice(_PLATFORMS))
    words = []
    for name, value in versions.items():
        operator = _CHANCE.choice((">=", "<", "~=")) if _CHANCE.random() < 0.05 and "." in value else "=="
        words.append(f"{name}{operator}'{value}'" if " " in value else f"{name}{operator}{value}")
    return " ".join(words)


def _of_release() -> dict[str, str]:
    """A release, some of what it needs, mostly of versions that it admits, and what else may stand beside it."""
    row = _CHANCE.choice(_rows_by_name()[_CHANCE.choice(sorted(_rows_by_name()))])
    built = f"+{row.build}" if row.build and _CHANCE.random() < 0.5 else ""
    found = {canonical(row.name): _CHANCE.choice(_admitted(row.versions)) + built}
    for need in _CHANCE.sample(sorted(row.needs), min(len(row.needs), _CHANCE.randint(1, 2))):
        name, admitted = canonical(_ALIKE.get(need, need)), _admitted(row.needs[need])
        if admitted or name in _BESIDE:
            found.setdefault(name, _CHANCE.choice(admitted) if admitted else _BESIDE[name]())
    return _with_others(found, _CHANCE.randint(0, 1) + (len(found) == 1))


@cache
def _rows_by_name() -> dict[str, list]:  # type: ignore[type-arg]
    rows = [row for row in _MATRIX.releases if _admitted(row.versions)]
    return {name: [row for row in rows if row.name == name] for name in {row.name for row in rows}}


def _admitted(specifier: str) -> list[str]:
    """The versions that a specifier names and admits."""
    bounds = (bound for bound in parse_specifier(specifier).bounds if bound.operator in ("==", ">=", "<="))
    return [str(Version(bound.numbers, post=bound.post)) for bound in bounds]


def _of_torch() -> dict[str, str]:
    release = _CHANCE.choice([row.version for row in _MATRIX.torch])
    return _with_others({"torch": release + _CHANCE.choice(_BUILDS)}, _CHANCE.randint(1, 3))


def _of_wheels() -> dict[str, str]:
    name = _CHANCE.choice(sorted(_MATRIX.wheels_by_name))
    admitted = [text for row in _MATRIX.wheels_by_name[name] for text in _admitted(row.versions)]
    found = {canonical(name): _CHANCE.choice(admitted or ["1.0"]), "python": _BESIDE["python"]()}
    return _with_others(found, _CHANCE.randint(0, 1))


def _with_others(found: dict[str, str], number: int) -> dict[str, str]:
    for name in _CHANCE.sample(sorted(_BESIDE), number):
        found.setdefault(name, _BESIDE[name]())
    return found


def _texts() -> Iterator[tuple[str, str]]:
    """The texts of the tests, each with a name that says what it should show."""
    yield from ((f"forms/{name}", text) for name, (text, _) in forms.FORMS.items())
    for layout, written in layouts.LAYOUTS.items():
        yield from ((f"layouts/{layout}/{case}", written(facts)) for case, (facts, _) in layouts.CASES.items())
    for kind, found in {"logs": logs.COMPOSED, "pairs": logs.CONSEQUENCES, "healthy": logs.HEALTHY}.items():
        yield from ((f"{kind}/{name}", "\n".join(log.lines)) for name, log in found.items())
    yield from ((f"causes/{said[0].partition(' (')[0]}", text) for cases in SUBJECTS.values() for said, text in cases)
    yield from ((f"examples/{problem}", line) for problem, line in examples.pairs())
