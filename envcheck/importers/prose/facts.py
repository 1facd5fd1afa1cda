"""Components, versions and GPUs that any text mentions, where no other importer knows its form.

A label or a row of a table counts before a sentence. Of a component that sentences give two versions, neither is known;
of GPUs that different sentences name, none. Of several labels the first counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from envcheck.importers.assemble import OF_MODULE, STATED
from envcheck.importers.importer import Rank, environment, importer, stated_cuda, stated_cudnn, with_environment
from envcheck.importers.paste import SOURCE, Paste
from envcheck.importers.prose.mentions import DRIVER_CUDA, TORCH_CUDA, Mention, NamedGpu, same_model
from envcheck.model.snapshot import Distribution, Driver, Framework, Gpu, Listing, Snapshot

_NO_PACKAGES = frozenset({"torch", "cuda", "cudnn", "nccl", "python", "driver", "rapids", TORCH_CUDA, DRIVER_CUDA})
_TORCH = ("torch", TORCH_CUDA)
_MOST = 200  # Most mentions that are kept; no real text has more


@importer("mentions", Rank.MENTION)
def read(paste: Paste) -> Snapshot:
    found = [mention for line in paste.mentions for mention in line.mentions]
    models = [line.gpus for line in paste.mentions]
    if any(models):
        # The GPUs that count: those of labels, else those of the one sentence that names any.
        counting = [gpu for line in models for gpu in line if gpu.labelled]
        groups = {frozenset(same_model(gpu.model) for gpu in line): line for line in models if line}
        if not counting and len(groups) == 1:
            counting = list(next(iter(groups.values())))
        present = tuple({same_model(gpu.model): gpu for gpu in counting}.values())[:16]
        return _snapshot(_chosen(found), present, found)
    capabilities = {line.capability for line in paste.mentions if line.capability}
    nameless = (NamedGpu("", labelled=False, capability=capabilities.pop()),) if len(capabilities) == 1 else ()
    return _snapshot(_chosen(found), nameless, found)


def _chosen(found: Sequence[Mention]) -> dict[str, Mention]:
    """The mention that counts of each component."""
    chosen: dict[str, Mention] = {}
    for component in list(dict.fromkeys(mention.component for mention in found))[:_MOST]:
        same = [mention for mention in found if mention.component == component]
        counting = next((mention for mention in same if mention.labelled), None)
        if counting is None:
            counting = max(same, key=lambda mention: (len(mention.version), mention.cuda is not None))
            if not all(_dotted(counting).startswith(_dotted(mention)) for mention in same):
                continue
        chosen[component] = counting._replace(exact=any(mention.exact for mention in same))
    return chosen


def _dotted(mention: Mention) -> str:
    return f"{mention.version.replace('+', '.')}."


def _snapshot(chosen: dict[str, Mention], present: Sequence[NamedGpu], found: Sequence[Mention]) -> Snapshot:
    driver, torch, python = chosen.get("driver"), chosen.get("torch"), chosen.get("python")
    packages = tuple(
        Distribution(
            source=SOURCE, name=mention.component, version=mention.version, read={} if mention.exact else OF_MODULE
        )
        for mention in chosen.values()
        if mention.component not in _NO_PACKAGES
    )
    builds = (each.version if each.component == TORCH_CUDA else each.cuda for each in found if each.component in _TORCH)
    cuda = (torch.cuda if torch else None) or next((cuda for cuda in builds if cuda is not None), None)
    of_torch = Framework(
        source=SOURCE,
        name="torch",
        version=torch.version if torch else None,
        cuda=cuda,
        cpu_only=True if torch and torch.cpu and cuda is None else None,
    )
    made = environment(
        python=python.version if python and python.version.startswith(("2.7", "3.")) else None,
        distributions=packages,
        frameworks=(of_torch,) if torch or TORCH_CUDA in chosen else (),
    )
    known = made.python or made.distributions or made.frameworks
    libraries = [stated_cuda(chosen["cuda"].version)] if "cuda" in chosen else []
    libraries += [stated_cudnn(chosen["cudnn"].version)] if "cudnn" in chosen else []
    release = driver.version if driver else None
    supported = chosen[DRIVER_CUDA].version if DRIVER_CUDA in chosen else None
    gpus = [
        Gpu(
            source=SOURCE,
            label=f"{STATED}{gpu.model or gpu.capability}",
            name=gpu.model or None,
            compute_capability=gpu.capability,
        )
        for gpu in present
    ]
    return msgspec.structs.replace(
        with_environment(made) if known else Snapshot(),
        driver=Driver(source=SOURCE, release=release, cuda=supported) if release or supported else None,
        gpus=Listing(items=tuple(gpus)) if gpus else None,
        libraries=Listing(items=tuple(libraries)) if libraries else None,
    )
