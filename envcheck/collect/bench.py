"""Measure: run the bench probes, all GPUs side by side, then the links between them in turn; or become the program of a
node that measures together with others (``probes/measuring/nccl/node.py``).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, NoReturn

import msgspec

from envcheck import bundle
from envcheck.collect.catalog import ProbeSpec
from envcheck.collect.plan import BenchRequest, Chosen, choose, request_of, seen_alone, wanted
from envcheck.collect.request import own_path
from envcheck.collect.runner import About, Ended, Loop, ProbeGroup, Verdict, not_run
from envcheck.collect.starting import ISOLATED, Launch, bootstrap, own_variables
from envcheck.collect.trials import run_inside, temporary_folder
from envcheck.model.events import OnEvent, ProbesPlanned
from envcheck.model.snapshot import Snapshot

_QUICK_SECONDS = 45.0
"""Allowed to a probe that measures the main figures only: that takes seconds, and one that hangs shows the earlier."""
CHILD_VARIABLES = {"CUDA_CACHE_DISABLE": "1", "CUDA_MODULE_LOADING": "LAZY"}
"""Nothing that is compiled for a measurement is left behind."""


def run_bench(
    specs: Sequence[ProbeSpec],
    wish: BenchRequest,
    loop: Loop,
    launch: Launch,
    *,
    gathered: Snapshot,
    on_event: OnEvent,
) -> None:
    """Run the bench probes ``specs`` on the GPUs that ``gathered`` shows, and tell how each ended.

    What a GPU computes by itself is measured on all GPUs at once, each by a child of its own, so that one that hangs
    costs only its own rows. Links are measured afterwards, one at a time; to start CUDA for all GPUs takes long where
    there are many, so that child does it meanwhile, without a context on any. What runs in the judged environment comes
    last.
    """
    chosen = choose(gathered, wish)
    for ended in _not_measured(specs, chosen):
        loop.finished(ended)
    if not chosen.gpus:
        return
    asked = request_of(wish, chosen, gathered)
    request = {**launch.request, "bench": asked}
    own = [spec for spec in specs if spec.runs_in == "envcheck"]
    if not wish.full:
        own = [msgspec.structs.replace(spec, seconds=min(spec.seconds, _QUICK_SECONDS)) for spec in own]
    on_chip = [spec for spec in own if spec.per == "gpu"]
    links = sorted((spec for spec in own if spec.per == "machine"), key=lambda spec: spec.uses != "link")
    planned = [*(on_chip * len(chosen.gpus)), *links]
    on_event(ProbesPlanned(probes=tuple((spec.name, spec.title) for spec in planned)))
    with ExitStack() as stack:
        variables = {**os.environ, **CHILD_VARIABLES}
        with suppress(OSError):  # children that are killed remove nothing; without a folder they use the usual one
            variables["TMPDIR"] = str(stack.enter_context(temporary_folder()))
        stack.callback(loop.abort)  # before the folder is removed
        together: list[ProbeGroup] = []
        for gpu in chosen.gpus if on_chip else ():
            name = seen_alone(gpu, gathered)  # CUDA need not start the other GPUs for that child
            shown = {} if name is None else {"CUDA_VISIBLE_DEVICES": name}
            of_gpu = {**request, "bench": {**asked, "gpu": gpu.uuid}}
            child = launch._replace(request=of_gpu, variables={**variables, **shown})
            together.append(ProbeGroup(on_chip, child, About(gpu=gpu.uuid)))
        in_turn = [ProbeGroup((spec,), launch._replace(request=request, variables=variables)) for spec in links]
        loop.run_then(together, in_turn)
    inside = []
    for spec in specs:
        if spec.runs_in == "environment":
            if wanted(spec, wish):
                inside.append(spec)
            else:  # nothing of the environment is started for the main figures
                loop.finished(not_run(spec, Verdict("absent", f"measured with --{spec.asked or 'full'}")))
    if inside:
        run_inside(inside, chosen, loop, request=request, gathered=gathered, on_event=on_event)


def _not_measured(specs: Sequence[ProbeSpec], chosen: Chosen) -> Iterator[Ended]:
    """What is not started, and why."""
    if not chosen.gpus and not chosen.refused:
        yield from (not_run(spec, Verdict("skipped", "no matching CUDA GPU found")) for spec in specs)
        return
    for uuid, reason in chosen.refused.items():
        verdict = Verdict("skipped", f"{reason}; --force measures it anyway")
        yield from (not_run(spec, verdict, About(gpu=uuid)) for spec in specs if spec.per == "gpu")
    if not chosen.gpus:
        busy = Verdict("skipped", "every GPU is in use")
        yield from (not_run(spec, busy) for spec in specs if spec.per == "machine")


_PROGRAM_OF_NODE = "measuring.nccl.node"
_ALARM_OF_NODE = 24 * 3600
"""Seconds after which it ends in any case: before that, at the end of its stdin."""


def become_node(gathered: Snapshot, request: Mapping[str, Any], wish: BenchRequest) -> NoReturn:
    """Replace this process by the program: it answers on this process's stdout, and takes orders from its stdin.

    Raises OSError where that fails.
    """
    import tempfile  # noqa: PLC0415  few measure together, and checks start faster

    chosen = choose(gathered, wish)
    asked = {**request_of(wish, chosen, gathered), "refused": dict(chosen.refused)}
    orders = tempfile.TemporaryFile()  # noqa: SIM115  the program reads it
    launch = Launch(sys.executable, {**request, "bench": asked}, own_path())
    first_line = launch.order(str(bundle.folder("probes")), _ALARM_OF_NODE)
    orders.write(msgspec.json.encode(first_line) + b"\n" + _PROGRAM_OF_NODE.encode() + b"\n")
    orders.seek(0)
    answers = os.dup(1)
    os.dup2(2, 1)  # what libraries print is no answer
    for descriptor in (answers, orders.fileno()):
        os.set_inheritable(descriptor, True)
    argv = [sys.executable, *ISOLATED, "-c", bootstrap(), str(answers), str(orders.fileno())]
    os.chdir("/")
    os.execve(sys.executable, argv, {**own_variables(), **CHILD_VARIABLES})  # noqa: S606  no shell
