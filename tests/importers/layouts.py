"""Facts, and the layouts in which people and programs write them; every text is constructed."""

import json
from collections.abc import Callable
from typing import NamedTuple


class Facts(NamedTuple):
    """What a text states: a GPU, a driver, and packages with their versions (PyTorch first)."""

    gpu: str
    driver: str
    packages: tuple[tuple[str, str], ...]

    @property
    def tag(self) -> str:
        """The tag of PyTorch's build: ``cu124``."""
        return self.packages[0][1].partition("+")[2]


CASES: dict[str, tuple[Facts, str]] = {
    "new GPU": (Facts("NVIDIA GeForce RTX 5090", "570.86.16", (("torch", "2.5.1+cu124"),)), "gpu-code-missing"),
    "old GPU": (Facts("NVIDIA GeForce GTX 1080", "580.95.05", (("torch", "2.9.0+cu130"),)), "gpu-code-missing"),
    "dropped GPU": (Facts("Tesla P100-PCIE-16GB", "570.86.15", (("torch", "2.8.0+cu128"),)), "gpu-code-missing"),
    "old driver": (Facts("NVIDIA GeForce RTX 3090", "470.223.02", (("torch", "2.1.0+cu121"),)), "driver-too-old"),
    "driver of 12": (Facts("NVIDIA A100-SXM4-80GB", "535.183.01", (("torch", "2.9.1+cu130"),)), "driver-too-old"),
    "CPU build": (Facts("NVIDIA GeForce RTX 4070", "560.35.03", (("torch", "2.4.1+cpu"),)), "cpu-only-build"),
    "family": (Facts("NVIDIA GeForce RTX 4090", "560.35.03", (("torch", "2.4.0"), ("torchvision", "0.18.1"))),
        "torch-family-mismatch"),
    "NumPy": (Facts("NVIDIA GeForce RTX 4090", "560.35.03", (("torch", "2.2.0+cu121"), ("numpy", "2.1.0"))),
        "numpy-abi-mismatch"),
    "healthy": (Facts("NVIDIA GeForce RTX 4090", "550.54.15", (("torch", "2.5.1+cu124"),)), "none"),
    "minor version": (Facts("NVIDIA A100-SXM4-80GB", "535.104.05", (("torch", "2.5.1+cu124"),)), "none"),
    "newest": (Facts("NVIDIA GeForce RTX 5070", "572.83", (("torch", "2.7.1+cu128"),)), "none"),
}  # fmt: skip
"""Name → the facts, and the rule that is the primary cause."""

_SPOKEN = {"torch": "PyTorch", "torchvision": "torchvision", "numpy": "NumPy"}


def _labels(facts: Facts, form: Callable[[str, str], str], *, between: str = "\n") -> str:
    said = [("GPU", facts.gpu), ("Driver version", facts.driver)]
    said += [(f"{_SPOKEN[name]} version", version) for name, version in facts.packages]
    return between.join(form(label, value) for label, value in said)


def _wide_table(facts: Facts) -> str:
    head = ("GPU", "Driver", *(_SPOKEN[name] for name, _ in facts.packages))
    row = (facts.gpu, facts.driver, *(version for _, version in facts.packages))
    return "\n".join((f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", f"| {' | '.join(row)} |"))


def _csv(facts: Facts) -> str:
    names, versions = zip(*facts.packages, strict=True)
    return "\n".join((",".join(("gpu", "driver", *names)), ",".join((facts.gpu, facts.driver, *versions))))


def _listed(facts: Facts, between: str) -> str:
    return "\n".join(f"{name}{between}{version}" for name, version in facts.packages)


def _pip_json(facts: Facts) -> str:
    listed = json.dumps([{"name": name, "version": version} for name, version in facts.packages])
    return f"{listed}\nGPU 0: {facts.gpu} (UUID: GPU-11111111-2222-3333-4444-555555555555)\ndriver {facts.driver}"


def _records(facts: Facts) -> str:
    packages = [{"name": name, "version": version} for name, version in facts.packages]
    return json.dumps({"gpus": [{"name": facts.gpu, "driver": facts.driver}], "packages": packages}, indent=1)


def _requirements(facts: Facts) -> str:
    index = f"--extra-index-url https://download.pytorch.org/whl/{facts.tag}\n" if facts.tag else ""
    listed = "\n".join(f"{name}=={version.partition('+')[0]}" for name, version in facts.packages)
    return f"{index}{listed}\n\n{_labels(facts._replace(packages=()), '{}: {}'.format)}"


def _wheels(facts: Facts) -> str:
    names = (f"{name}-{version.replace('+', '%2B')}-cp311-cp311-linux_x86_64.whl" for name, version in facts.packages)
    urls = "\n".join(f"Downloading https://download.pytorch.org/whl/{name} (780.1 MB)" for name in names)
    return f"{urls}\nmachine: {facts.gpu}, NVIDIA driver {facts.driver}"


def _session(facts: Facts) -> str:
    asked = "".join(f">>> {name}.__version__\n'{version}'\n" for name, version in facts.packages)
    driver = f"$ cat /sys/module/nvidia/version\n{facts.driver}"
    return f">>> import torch\n{asked}>>> torch.cuda.get_device_name(0)\n'{facts.gpu}'\n{driver}"


def _node(facts: Facts) -> str:
    labels = (
        f"nvidia.com/gpu.product={facts.gpu.replace(' ', '-')}",
        f"nvidia.com/cuda.driver-version.full={facts.driver}",
        "nvidia.com/gpu.count=1",
    )
    return f"Name:    node-3\nLabels:  {(chr(10) + ' ' * 9).join(labels)}\n{_listed(facts, '==')}"


def _log(facts: Facts) -> str:
    stamp = "2025-02-11 10:22:33,123 - INFO - "
    return f"{stamp}Using GPU: {facts.gpu}\n{stamp}driver version: {facts.driver}\n" + "\n".join(
        f"{stamp}{name} version: {version}" for name, version in facts.packages
    )


def _prose(facts: Facts) -> str:
    packages = " and ".join(f"{_SPOKEN[name]} {version}" for name, version in facts.packages)
    return f"I have an {facts.gpu} with driver {facts.driver} and use {packages}; nothing runs."


def _inxi(facts: Facts) -> str:
    device = f"  Device-1: NVIDIA GB202 [{facts.gpu}] vendor: ASUSTeK driver: nvidia v: {facts.driver}"
    return f"Graphics:\n{device}\n  API: OpenGL v: 4.6.0 renderer: {facts.gpu}/PCIe/SSE2\n{_listed(facts, '==')}"


def _fastfetch(facts: Facts) -> str:
    gpus = f"GPU 1: {facts.gpu} [Discrete]\nGPU 2: AMD Raphael [Integrated]"
    return f"OS: Arch Linux x86_64\n{gpus}\nNVIDIA driver: {facts.driver}\n{_listed(facts, '==')}"


def _modinfo(facts: Facts) -> str:
    module = f"filename:       /lib/modules/6.8.0-45-generic/updates/dkms/nvidia.ko\nversion:        {facts.driver}"
    return f"$ modinfo nvidia | head -n 2\n{module}\nGPU: {facts.gpu}\n{_listed(facts, '==')}"


def _xml(facts: Facts) -> str:
    said = (("driver_version", facts.driver), ("product_name", facts.gpu))
    return "\n".join(f"    <{name}>{value}</{name}>" for name, value in said) + f"\n{_listed(facts, '==')}"


def _lock_file(facts: Facts) -> str:
    packages = "".join(f'[[package]]\nname = "{name}"\nversion = "{version}"\n' for name, version in facts.packages)
    return f"{packages}\n{_labels(facts._replace(packages=()), '{}: {}'.format)}"


def _shown_by_poetry(facts: Facts) -> str:
    shown = "\n\n".join(f" name         : {name}\n version      : {version}" for name, version in facts.packages)
    return f"{shown}\n\nrunning on an {facts.gpu}, driver {facts.driver}"


def _node_of_an_old_operator(facts: Facts) -> str:
    parts = zip(("major", "minor", "rev"), facts.driver.split("."), strict=False)
    driver = "\n".join(f"        nvidia.com/cuda.driver.{part}={value}" for part, value in parts)
    return f"Labels: nvidia.com/gpu.product={facts.gpu.replace(' ', '-')}\n{driver}\n{_listed(facts, '==')}"


LAYOUTS: dict[str, Callable[[Facts], str]] = {
    "labels": lambda facts: _labels(facts, "{}: {}".format),
    "bullets": lambda facts: _labels(facts, "- **{}**: `{}`".format),
    "numbered": lambda facts: _labels(facts, "1. {} = {}".format),
    "commas": lambda facts: _labels(facts, "{}: {}".format, between=", "),
    "headings": lambda facts: _labels(facts, "### {}\n\n{}\n".format),
    "bold headings": lambda facts: _labels(facts, "**{}**\n{}".format),
    "fenced answers": lambda facts: _labels(facts, "#### {}\n```\n{}\n```".format),
    "rows": lambda facts: "| Component | Version |\n|---|---|\n" + _labels(facts, "| {} | {} |".format),
    "HTML": lambda facts: f"<table>{_labels(facts, '<tr><td>{}</td><td>{}</td></tr>'.format)}</table>",
    "YAML": lambda facts: "environment:\n" + _labels(facts, "  - {}: '{}'".format),
    "wide table": _wide_table,
    "CSV": _csv,
    "pip JSON": _pip_json,
    "records": _records,
    "freeze": lambda facts: f"{_listed(facts, '==')}\n{facts.gpu}, {facts.driver}",
    "unaligned": lambda facts: f"{_listed(facts, ' ')}\nGPU {facts.gpu}\nDriver {facts.driver}",
    "requirements": _requirements,
    "wheels": _wheels,
    "session": _session,
    "node": _node,
    "log": _log,
    "prose": _prose,
    "inxi": _inxi,
    "fastfetch": _fastfetch,
    "modinfo": _modinfo,
    "XML": _xml,
    "lock file": _lock_file,
    "poetry show": _shown_by_poetry,
    "node of an old operator": _node_of_an_old_operator,
    "dotted labels": lambda facts: _labels(facts, "{} ............... {}".format),
    "driver first": lambda facts: f"I use the {facts.driver} driver with an {facts.gpu}.\n{_listed(facts, ' ')}",
    "dpkg": lambda facts: (
        f"ii  nvidia-driver-{facts.driver[:3]}   {facts.driver}-0ubuntu1   amd64\n{facts.gpu}\n{_listed(facts, '==')}"
    ),
    "German": lambda facts: f"Grafikkarte: {facts.gpu}\nTreiber: {facts.driver}\n{_listed(facts, '-Version: ')}",
    "Chinese": lambda facts: f"显卡: {facts.gpu}\n驱动版本: {facts.driver}\n{_listed(facts, '版本: ')}",
}
"""Name → how it writes the facts."""
