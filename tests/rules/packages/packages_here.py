"""Packages on top of frameworks for the tests of rules, put together by hand; versions are examples, not knowledge."""

from typing import Any

from envcheck.model.snapshot import Distribution, Environment, Framework, Load, Snapshot, Trial
from tests.rules.machines import VENV, but, checks_of, machine, torch, venv, with_venv

SITE = f"{VENV}/lib/python3.12/site-packages"


def dist(name: str, version: str, **changes: Any) -> Distribution:
    return but(Distribution(source="wheel metadata", name=name, version=version, channel="pip"), **changes)


def extension(name: str, version: str, **changes: Any) -> Framework:
    """An extension of PyTorch whose compiled part was looked at, and finds all that it asks for."""
    folder = f"{SITE}/{name.replace('-', '_')}"
    known = Framework(
        source=f"file {folder}/version.py", name=name, version=version, path=folder, extends="torch",
        binaries=(f"{folder}/_C.so",), unresolved=(), loads=(),
    )  # fmt: skip
    return but(known, **changes)


def load(name: str = "libc.so.6", **changes: Any) -> Load:
    known = Load(
        source=f"elf {SITE}/torch/lib/libtorch_cpu.so", name=name, needed_by=f"{SITE}/torch/lib/libtorch_cpu.so",
        path=f"/usr/lib/x86_64-linux-gnu/{name}", found_by="cache",
    )  # fmt: skip
    return but(known, **changes)


RAN = Trial(source="trial", imported=True, ran_on_gpu=True, device="cuda:0", gpu="0000:10:00.0")
NOT_IMPORTED = Trial(source="trial", imported=False, error="ImportError: no")


def having(*frameworks: Framework, distributions: tuple[Distribution, ...] = (), **changes: Any) -> Environment:
    """An environment with these frameworks, and further distributions."""
    found = venv(*frameworks)
    return but(found, distributions=(*(found.distributions or ()), *distributions), **changes)


def on(environment: Environment) -> Snapshot:
    return with_venv(machine(), environment)


def beside_torch(*frameworks: Framework, version: str = "2.5.1+cu124", **changes: Any) -> Snapshot:
    return on(having(torch(version), *frameworks, **changes))


def only(*packages: tuple[str, str]) -> Environment:
    return having(distributions=tuple(dist(*package) for package in packages))


def status(rule: str, environment: Environment) -> str | None:
    found = checks_of(rule, on(environment))
    return found[0].status if found else None
