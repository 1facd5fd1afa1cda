"""Machines to show, and what stands on the screen."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from functools import partial, wraps
from inspect import signature
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
from textual._compositor import Compositor
from textual.app import App
from textual.pilot import Pilot

from envcheck.importers import read_text
from envcheck.model.checks import Report
from envcheck.model.events import OnEvent, ProbeFinished, ProbesPlanned, ProbeStarted, Progress
from envcheck.model.snapshot import ObservedError, ProbeRun, Snapshot
from envcheck.pipeline.request import Request
from envcheck.pipeline.session import judge
from envcheck.report import Options
from envcheck.tui.app import EnvcheckApp
from envcheck.tui.worker import questions
from envcheck.tui.worker.examination import examine
from tests.report import examples
from tests.rules.machines import UBUNTU, but, driver, eight, h200, kernel, machine

MACHINES = Path(__file__).parents[1] / "machines"
SMALL, LARGE = (80, 24), (140, 40)
HOME = "/home/ada"


def recorded(name: str) -> Snapshot:
    """The facts of ``tests/machines``."""
    return msgspec.convert(msgspec.json.decode((MACHINES / f"{name}.json").read_bytes())["snapshot"], Snapshot)


def judged(snapshot: Snapshot, request: Request | None = None) -> Report:
    """A report whose date does not change."""
    report = judge(snapshot, request or Request())
    return msgspec.structs.replace(report, created="2026-11-20T12:00:00+00:00", duration_s=1.5)


def _mixed_cudnn() -> Snapshot:
    """Constructed: the loader met two releases of cuDNN."""
    line = "symbol lookup error: cudnnX, version libcudnn_ops.so.9 not defined in file libcudnn_ops.so.9"
    return but(machine(h200()), observed_errors=(ObservedError(text=line, line=1),))


def _wsl() -> Snapshot:
    """Constructed: WSL 2 with the host's driver."""
    return machine(h200(), platform=but(UBUNTU, wsl=True), driver=driver("566.36"), kernel=kernel(0, nvidia=None))


def _jetson() -> Snapshot:
    """Constructed from a few words, as people paste them."""
    return read_text("Jetson AGX Orin, JetPack 6.1 (L4T 36.4.0)\ntorch 2.5.0\ntorch.cuda.is_available() True")


SHOWN: Mapping[str, Callable[[], Report]] = {
    "h200": lambda: judged(recorded("h200")), "four": lambda: judged(recorded("h200x4")),
    "eight": lambda: judged(eight()), "driver-too-old": lambda: judged(recorded("constructed/driver-too-old")),
    "no-gpu": examples.no_gpu, "mixed-cudnn": lambda: judged(_mixed_cudnn()), "dead-probe": examples.unknown_nvml,
    "wsl": lambda: judged(_wsl()), "jetson": lambda: judged(_jetson()),
}  # fmt: skip


def words(app: App[Any]) -> str:
    """The characters on the screen, without colours."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips) + "\n"


def answer_here(name: str, arguments: tuple[Any, ...]) -> Any:
    """Answers what is asked in the test's own process, quicker than another one starts."""
    return questions.answer(name, arguments)


Steps = Callable[[EnvcheckApp, Pilot[Any]], Awaitable[None]]


def show(
    report: Report | None, steps: Steps, *, size: tuple[int, int] = SMALL, ascii_only: bool = False, **more: Any
) -> EnvcheckApp:
    """Run the application over ``report`` (or live, where it is None) and take ``steps`` in it."""
    request = more.pop("request", Request())
    if "gather" in more:
        more["examine"] = partial(examine, gather=more.pop("gather"))
    app = EnvcheckApp(
        request, Options(home=HOME, ascii=ascii_only), saved=report, answer=answer_here, variables={}, **more
    )

    async def run() -> None:
        async with app.run_test(size=size, notifications=True) as pilot:
            await settled(pilot)
            await steps(app, pilot)

    with patch.object(Compositor, "render_update", _looked_at):
        asyncio.run(run())
    return app


def on(
    name: str = "", *, hold: bool = False, **how: Any
) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Make a test of the steps that are taken on this machine; what else they take are fixtures.

    Without a name a machine is examined, which the steps take too; with ``hold`` it waits.
    """

    def decorate(steps: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        @wraps(steps)
        def test(**fixtures: Any) -> None:
            if name:
                show(SHOWN[name](), partial(steps, **fixtures), **how)
            else:
                machine = Replay(recorded("h200"), hold=hold)
                show(None, partial(steps, machine=machine, **fixtures), gather=machine, **how)

        wanted = signature(steps)
        given = [each for each in wanted.parameters.values() if each.name not in ("app", "pilot", "machine")]
        test.__signature__ = wanted.replace(parameters=given)  # type: ignore[attr-defined]  # what pytest reads
        return test

    return decorate


_render_update = Compositor.render_update


def _looked_at(compositor: Compositor, *arguments: Any, **options: Any) -> Any:
    """Draw only what a test looks at: without a terminal, whatever is drawn in between is thrown away."""
    if options.get("full"):
        return _render_update(compositor, *arguments, **options)
    compositor._dirty_regions.clear()
    return None


async def settled(pilot: Pilot[Any], seconds: float = 0.05) -> None:
    """Wait until what was asked for is on the screen."""
    await pilot.pause()
    await pilot.pause(seconds)


async def at_rest(pilot: Pilot[Any], most: float) -> None:
    """Wait until the screen stays as it is for a twentieth of a second; at most ``most`` seconds."""
    await pilot.pause()
    before = ""
    for _ in range(round(most / 0.05)):
        await pilot.pause(0.05)
        if (shown := words(pilot.app)) == before:
            return
        before = shown


async def until(pilot: Pilot[Any], true: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait until ``true`` is; fail when it does not come to be."""
    for _ in range(round(seconds / 0.05)):
        if true():
            return
        await pilot.pause(0.05)
    raise AssertionError(f"it did not come to be; on the screen:\n{words(pilot.app)}")


async def shows(pilot: Pilot[Any], text: str, *keys: str) -> None:
    """Press keys, and wait until the screen has ``text``."""
    await pilot.press(*keys)
    await until(pilot, lambda: text in words(pilot.app))


def take(*keys: str, most: float = 0.15) -> Callable[[list[str]], Steps]:
    """Press keys and keep what is on the screen after each, once it rests or ``most`` seconds have passed."""

    def into(seen: list[str]) -> Steps:
        async def steps(app: EnvcheckApp, pilot: Pilot[Any]) -> None:
            seen.append(words(app))
            for key in keys:
                await pilot.press(key)
                await at_rest(pilot, most)
                seen.append(words(app))

        return steps

    return into


class Replay:
    """Stands in for the machine: tells of two probes, waits, and hands over ``snapshot``."""

    def __init__(self, snapshot: Snapshot, *, hold: bool = False) -> None:
        self.snapshot = snapshot
        self.requests: list[Request] = []
        self.go_on = threading.Event()
        self.was_stopped = False
        if not hold:
            self.go_on.set()

    def __call__(self, request: Request, on_event: OnEvent, should_stop: Callable[[], bool]) -> Snapshot:
        self.requests.append(request)
        on_event(ProbesPlanned((("kernel", "Kernel module"), ("nvml", "NVML"))))
        on_event(ProbeStarted("kernel", "Kernel module"))
        on_event(ProbeFinished(ProbeRun(name="kernel", status="ok"), Snapshot(kernel=self.snapshot.kernel)))
        on_event(ProbeStarted("nvml", "NVML"))
        on_event(Progress("nvml", "GPU 1 of 1"))
        while not self.go_on.wait(0.01):
            if should_stop():
                self.was_stopped = True
                return Snapshot(kernel=self.snapshot.kernel)
        on_event(ProbeFinished(ProbeRun(name="nvml", status="ok"), self.snapshot))
        return self.snapshot
