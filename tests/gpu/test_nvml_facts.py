"""The driver probes on this machine's GPUs, against nvidia-smi, each other, and PyTorch if it is here."""

import json
import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest

from envcheck.model.merge import merge
from envcheck.model.snapshot import Snapshot
from tests.gpu.smi_facts import differences
from tests.known import known
from tests.probes.fake_parent import Ran, run_child


def smi(*arguments: str) -> str:
    program = shutil.which("nvidia-smi")
    if program is None:
        pytest.skip("no nvidia-smi on this machine")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=120)
    if done.returncode != 0:
        pytest.skip(f"nvidia-smi {' '.join(arguments)}: {(done.stderr or done.stdout).strip()[-200:]}")
    return done.stdout


@pytest.fixture(scope="module")
def nvml() -> Ran:
    return run_child("nvml")


@pytest.fixture(scope="module")
def cuda() -> Ran:
    return run_child("cuda", variables={"CUDA_VISIBLE_DEVICES": None})


def test_every_fact_of_nvml_is_what_nvidia_smi_prints() -> None:
    before = ET.fromstring(smi("-q", "-x"))
    ran = run_child("nvml")
    found = differences(before, ET.fromstring(smi("-q", "-x")), ran.snapshot)
    assert not found, "\n" + "\n".join(found)


def test_the_probes_meet_nothing_unexpected(nvml: Ran, cuda: Ran) -> None:
    assert (nvml.status, nvml.noise) == ("ok", "")
    assert (cuda.status, cuda.noise) == ("ok", "")
    assert known(nvml.snapshot.gpus).complete


def test_nvml_and_cuda_speak_of_the_same_gpus(nvml: Ran, cuda: Ran) -> None:
    merged = merge([nvml.snapshot, cuda.snapshot])
    assert merged.disagreements == ()
    assert len(merged.gpus.items if merged.gpus else ()) == len(nvml.gpus)
    assert cuda.driver.cuda_init
    assert (cuda.driver.cuda_init.code, cuda.driver.cuda_init.name) == (0, "CUDA_SUCCESS")
    assert cuda.driver.cuda == nvml.driver.cuda
    if not any(gpu.mig and gpu.mig.enabled for gpu in nvml.gpus):
        assert cuda.driver.cuda_devices == len(nvml.gpus)
        assert all(gpu.sm_count and gpu.sm_count > 0 for gpu in cuda.gpus)


def test_the_libraries_that_answered_belong_to_the_driver(nvml: Ran, cuda: Ran) -> None:
    for library in (known(nvml.driver.nvml).library, known(cuda.driver.cuda_init).library):
        assert known(library).endswith(f".{nvml.driver.release}")


def test_cuda_is_the_same_without_the_bindings(cuda: Ran) -> None:
    direct = run_child("cuda", variables={"CUDA_VISIBLE_DEVICES": None}, blocked=("cuda",))
    assert (direct.gpus, direct.driver.cuda) == (cuda.gpus, cuda.driver.cuda)
    assert direct.driver.cuda_devices == cuda.driver.cuda_devices


def test_no_visible_device_is_an_error_of_cuinit() -> None:
    hidden = run_child("cuda", variables={"CUDA_VISIBLE_DEVICES": ""})
    assert hidden.driver.cuda_init
    assert (hidden.driver.cuda_init.code, hidden.driver.cuda_init.name) == (100, "CUDA_ERROR_NO_DEVICE")
    assert hidden.driver.cuda_devices == 0


def test_visible_devices_and_their_order_are_cudas(cuda: Ran) -> None:
    if len(cuda.gpus) < 2:
        pytest.skip("one CUDA device only")
    last, first = cuda.gpus[-1], cuda.gpus[0]
    turned = run_child("cuda", variables={"CUDA_VISIBLE_DEVICES": f"{last.cuda_ordinal},{first.cuda_ordinal}"})
    assert [(gpu.cuda_ordinal, gpu.pci_bus_id) for gpu in turned.gpus] == [(0, last.pci_bus_id), (1, first.pci_bus_id)]


TOPOLOGY = {"PIX": "single", "PXB": "multiple", "PHB": "hostbridge", "NODE": "node", "SYS": "system"}


def test_links_between_gpus_are_those_of_the_topology_matrix(nvml: Ran) -> None:
    if len(nvml.gpus) < 2:
        pytest.skip("one GPU only")
    rows = [re.sub(r"\x1b\[[0-9;]*m", "", line).split() for line in smi("topo", "-m").splitlines()]
    cells = {row[0]: row[1 : len(nvml.gpus) + 1] for row in rows if row and re.fullmatch(r"GPU[0-9]+", row[0])}
    index = {gpu.pci_bus_id: gpu.index or 0 for gpu in nvml.gpus}
    links = known(nvml.snapshot.fabric).links or ()
    assert len(links) == len(index) * (len(index) - 1) // 2
    found = []
    for link in links:
        cell = cells[f"GPU{index[link.first]}"][index[link.second]]
        ours = f"NV{link.nvlinks}" if link.nvlinks else link.path
        if ours != TOPOLOGY.get(cell, cell):
            found.append(f"{link.first} to {link.second}: {link.nvlinks} NVLinks, {link.path}; nvidia-smi: {cell}")
    assert not found, "\n" + "\n".join(found)


def test_active_nvlinks_are_those_that_nvidia_smi_lists(nvml: Ran) -> None:
    theirs: dict[str, dict[int, float]] = {}
    current: dict[int, float] = {}
    for line in smi("nvlink", "-s").splitlines():
        if match := re.search(r"UUID: (GPU-[0-9a-f-]+)", line):
            current = theirs.setdefault(match[1], {})
        elif match := re.search(r"Link ([0-9]+): ([0-9.]+) GB/s", line):
            current[int(match[1])] = round(float(match[2]) * 1e9)
    ours = {gpu.uuid: {link.link: link.bandwidth for link in gpu.nvlinks or () if link.active} for gpu in nvml.gpus}
    assert {uuid: links for uuid, links in ours.items() if links} == {
        uuid: links for uuid, links in theirs.items() if links
    }


TORCH = """
import json, torch
devices = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
print(json.dumps([
    {"name": d.name, "capability": f"{d.major}.{d.minor}", "sm_count": d.multi_processor_count,
     "uuid": str(getattr(d, "uuid", "")) or None, "memory": d.total_memory} for d in devices
]))
"""


def test_devices_are_those_of_pytorch(nvml: Ran, cuda: Ran) -> None:
    child = subprocess.run([sys.executable, "-c", TORCH], capture_output=True, text=True, check=False, timeout=300)
    if child.returncode != 0:
        pytest.skip(f"PyTorch: {child.stderr.strip().splitlines()[-1]}")
    theirs = json.loads(child.stdout.splitlines()[-1])
    merged: Snapshot = merge([nvml.snapshot, cuda.snapshot])
    ours = sorted(
        (gpu for gpu in known(merged.gpus).items if gpu.cuda_ordinal is not None), key=lambda gpu: gpu.cuda_ordinal or 0
    )
    assert len(ours) == len(theirs)
    for gpu, device in zip(ours, theirs, strict=True):
        assert (gpu.name, gpu.compute_capability, gpu.sm_count) == (
            device["name"], device["capability"], device["sm_count"],
        )  # fmt: skip
        assert device["uuid"] is None or gpu.uuid == f"GPU-{device['uuid'].removeprefix('GPU-')}"
        assert gpu.memory
        assert gpu.memory.total
        assert abs(gpu.memory.total - device["memory"]) < gpu.memory.total * 0.05
