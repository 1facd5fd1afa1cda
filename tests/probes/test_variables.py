"""The probe for environment variables."""

from pathlib import Path

import msgspec

from envcheck.collect.protocol import decode_fact
from envcheck.model.snapshot import Variables
from tests.every import cases
from tests.known import known
from tests.probes.conftest import RunProbe


def look(run_probe: RunProbe, **variables: str) -> Variables:
    snapshot, done = run_probe("variables", {"variables": variables})
    assert done["status"] == "ok"
    assert snapshot.variables
    return snapshot.variables


def test_what_matters_and_nothing_else(run_probe: RunProbe) -> None:
    matters = {
        "PATH": "/usr/bin", "LD_LIBRARY_PATH": "", "CUDA_VISIBLE_DEVICES": "0,1", "NCCL_DEBUG": "INFO",
        "XLA_FLAGS": "--xla_gpu_cuda_data_dir=/usr/local/cuda", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        "SLURM_JOB_GPUS": "3", "VIRTUAL_ENV": "/home/me/venv",
    }  # fmt: skip
    found = look(run_probe, **matters, HOME="/home/me", SSH_AUTH_SOCK="/tmp/x", MY_CUDA_HOME="/x", HISTFILE="/y")
    assert (found.values, found.complete, found.source) == (matters, True, "process")


def test_nothing_set_is_a_complete_answer(run_probe: RunProbe) -> None:
    found = look(run_probe)
    assert (found.values, found.complete) == ({}, True)


@cases("name",
    "NVIDIA_API_KEY", "TORCH_HUB_TOKEN", "NCCL_SECRET", "CUDA_PASSWORD", "JAX_auth_header", "TF_KEY",
    "NVIDIA_NGC_APIKEY",
)  # fmt: skip
def test_secrets_are_masked(run_probe: RunProbe, name: str) -> None:
    """By the parent, at its border: the list of what looks like a secret is there alone."""
    told = {"variables": look(run_probe, **{name: "hunter2"})}
    assert known(decode_fact(msgspec.Raw(msgspec.json.encode(told))).variables).values == {name: "***"}


@cases("name", "CUDA_CACHE_PATH", "NCCL_KEYBOARD", "CUDA_LAUNCH_BLOCKING", "TF_CPP_MIN_LOG_LEVEL")
def test_other_names_are_shown(run_probe: RunProbe, name: str) -> None:
    assert look(run_probe, **{name: "1"}).values == {name: "1"}


def test_values_are_bounded(run_probe: RunProbe) -> None:
    assert len(look(run_probe, LD_LIBRARY_PATH="/x:" * 100_000).values["LD_LIBRARY_PATH"]) == 4096


def test_too_many_of_them_are_not_called_complete(run_probe: RunProbe) -> None:
    found = look(run_probe, **{f"NCCL_{number}": "1" for number in range(1000)})
    assert (len(found.values), found.complete) == (512, False)


def test_undecodable_and_terminal_codes_stay_data(run_probe: RunProbe) -> None:
    found = look(run_probe, CUDA_HOME="/opt/\udcff\udcfe", NCCL_DEBUG="\x1b[2J\n")
    assert found.values == {"CUDA_HOME": "/opt/??", "NCCL_DEBUG": "\x1b[2J\n"}


def test_what_paths_in_values_lead_to(run_probe: RunProbe, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    program = tmp_path / "program"
    program.write_text("")
    program.chmod(0o755)
    (tmp_path / "loop").symlink_to("loop")
    values = {
        "CUDA_HOME": "/folder", "TRITON_PTXAS_PATH": "/program", "LD_PRELOAD": "/file:/gone.so ./file",
        "XLA_FLAGS": "--xla_gpu_cuda_data_dir=/gone/cuda --xla_dump_to=/loop", "PATH": "/not/looked/at",
    }  # fmt: skip
    snapshot, _ = run_probe("variables", {"root": str(tmp_path), "cwd": "/", "variables": values})
    assert {each.path: each.leads_to for each in known(snapshot.variables).paths or ()} == {
        "/folder": "folder", "/program": "program", "/file": "file", "./file": "file", "/gone.so": "nothing",
        "/gone/cuda": "nothing", "/loop": "unknown",
    }  # fmt: skip


def test_a_path_with_a_blank_is_looked_at_whole(run_probe: RunProbe, tmp_path: Path) -> None:
    (tmp_path / "my cuda").mkdir()
    snapshot, _ = run_probe("variables", {"root": str(tmp_path), "cwd": "/", "variables": {"CUDA_HOME": "/my cuda"}})
    assert ("/my cuda", "folder") in [(each.path, each.leads_to) for each in known(snapshot.variables).paths or ()]
