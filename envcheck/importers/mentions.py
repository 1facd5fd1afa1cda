"""Components, versions and GPUs that any text mentions, where no other importer knows its form.

A label or a row of a table counts before a sentence. Of a component that sentences give two versions, neither is known;
of GPUs that different sentences name, none. Of several labels the first counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from envcheck.importers.kit.assemble import OF_MODULE, STATED
from envcheck.importers.kit.named_gpus import same_model
from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank, environment, with_environment
from envcheck.importers.kit.spoken import DRIVER_CUDA, TORCH_CUDA, Mention, NamedGpu
from envcheck.importers.kit.stated_libraries import stated_cuda, stated_cudnn
from envcheck.snapshot import Distribution, Driver, Framework, Gpu, Library, Listing, Snapshot

NAME = "mentions"
RANK = Rank.MENTION

_NO_PACKAGES = frozenset({"torch", "cuda", "cudnn", "nccl", "python", "driver", "rapids", TORCH_CUDA, DRIVER_CUDA})
_MOST = 200
"""Most mentions that are kept; no real text has more."""
_MOST_GPUS = 16


def read(paste: Paste) -> Snapshot:
    found = [mention for said in paste.spoken for mention in said.mentions]
    models = [said.gpus for said in paste.spoken]
    present = _present(models) if any(models) else _nameless(said.capability for said in paste.spoken)
    return _snapshot(_chosen(found), present, found)


def _nameless(capabilities: Iterable[str | None]) -> tuple[NamedGpu, ...]:
    """The GPU of which only the compute capability is said."""
    said = set(filter(None, capabilities))
    return (NamedGpu("", labelled=False, capability=said.pop()),) if len(said) == 1 else ()


def _chosen(found: Sequence[Mention]) -> dict[str, Mention]:
    """The mention that counts of each component."""
    chosen: dict[str, Mention] = {}
    for component in list(dict.fromkeys(mention.component for mention in found))[:_MOST]:
        said = [mention for mention in found if mention.component == component]
        labelled = next((mention for mention in said if mention.labelled), None)
        counting = labelled or _agreed(said)
        if counting is not None:
            chosen[component] = counting._replace(exact=any(mention.exact for mention in said))
    return chosen


def _agreed(said: Sequence[Mention]) -> Mention | None:
    """The most detailed of mentions that agree; None where two differ."""
    longest = max(said, key=lambda mention: (len(mention.version), mention.cuda is not None))
    agree = all(_dotted(longest).startswith(_dotted(mention)) for mention in said)
    return longest if agree else None


def _dotted(mention: Mention) -> str:
    return f"{mention.version.replace('+', '.')}."


def _present(models: Sequence[tuple[NamedGpu, ...]]) -> tuple[NamedGpu, ...]:
    """The GPUs that count: those of labels, else those of the one sentence that names any."""
    labelled = [gpu for line in models for gpu in line if gpu.labelled]
    if labelled:
        return _each_once(labelled)
    groups = {frozenset(same_model(gpu.model) for gpu in line): line for line in models if line}
    return _each_once(next(iter(groups.values()))) if len(groups) == 1 else ()


def _each_once(named: Iterable[NamedGpu]) -> tuple[NamedGpu, ...]:
    return tuple({same_model(gpu.model): gpu for gpu in named}.values())[:_MOST_GPUS]


def _snapshot(chosen: dict[str, Mention], present: Sequence[NamedGpu], found: Sequence[Mention]) -> Snapshot:
    driver, torch, python = chosen.get("driver"), chosen.get("torch"), chosen.get("python")
    packages = tuple(
        Distribution(
            source=SOURCE, name=mention.component, version=mention.version, read={} if mention.exact else OF_MODULE
        )
        for mention in chosen.values()
        if mention.component not in _NO_PACKAGES
    )
    made = environment(
        python=python.version if python and python.version.startswith(("2.7", "3.")) else None,
        distributions=packages,
        frameworks=(_torch(torch, found),) if torch or TORCH_CUDA in chosen else (),
    )
    known = made.python or made.distributions or made.frameworks
    return msgspec.structs.replace(
        with_environment(made) if known else Snapshot(),
        driver=_driver(driver, chosen.get(DRIVER_CUDA)),
        gpus=_listing(present),
        libraries=_stated(chosen),
    )


def _driver(release: Mention | None, cuda: Mention | None) -> Driver | None:
    if release is None and cuda is None:
        return None
    return Driver(source=SOURCE, release=release.version if release else None, cuda=cuda.version if cuda else None)


def _torch(torch: Mention | None, found: Sequence[Mention]) -> Framework:
    same = (other.version if other.component == TORCH_CUDA else other.cuda for other in found if _is_of_torch(other))
    cuda = (torch.cuda if torch else None) or next(same, None)
    cpu_only = True if torch and torch.cpu and cuda is None else None
    return Framework(
        source=SOURCE, name="torch", version=torch.version if torch else None, cuda=cuda, cpu_only=cpu_only
    )


def _is_of_torch(mention: Mention) -> bool:
    return mention.component == TORCH_CUDA or (mention.component == "torch" and mention.cuda is not None)


def _listing(present: Sequence[NamedGpu]) -> Listing[Gpu] | None:
    items = tuple(
        Gpu(
            source=SOURCE,
            label=f"{STATED}{gpu.model or gpu.capability}",
            name=gpu.model or None,
            compute_capability=gpu.capability,
        )
        for gpu in present
    )
    return Listing(items=items) if items else None


def _stated(chosen: dict[str, Mention]) -> Listing[Library] | None:
    """CUDA and cuDNN as stated; beside a driver, CUDA may be what nvidia-smi shows of it."""
    items: list[Library] = []
    if (cuda := chosen.get("cuda")) is not None:
        items.append(stated_cuda(cuda.version))
    if (cudnn := chosen.get("cudnn")) is not None:
        items.append(stated_cudnn(cudnn.version))
    return Listing(items=tuple(items)) if items else None
