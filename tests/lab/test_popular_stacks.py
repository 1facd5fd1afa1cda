"""What many people install, as an index has it today, in a new environment: no false alarm on two usual machines."""

import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.calling import envcheck
from tests.every import cases

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the wheels asked for are for x86_64"),
]

NEWER = "gpu==H100,driver==580.95.05,os==linux"
OLDER = "gpu==RTX 4090,driver==570.86.10,os==linux"
TOO_NEW = frozenset({"driver-too-old"})
"""What is for CUDA 13 does not run with the older driver, and that is said."""
MIXED = frozenset({"cuda-major-mismatch"})
"""xFormers of PyPI is for CUDA 12, also where PyTorch of PyPI is for CUDA 13."""
_MEBIBYTES = 14 << 10  # Free space that the largest of them needs, with what is downloaded


@cases(
    "requirements, true, newest_python",
    (("vllm",), TOO_NEW | {"extension-code-missing"}, "3.13"),
    (("sglang",), TOO_NEW | {"extension-code-missing"}, "3.13"),
    (("torch", "transformers", "accelerate", "datasets", "peft"), TOO_NEW, "3.13"),
    (("torch", "torchvision", "diffusers", "transformers", "xformers", "bitsandbytes"), TOO_NEW | MIXED, "3.13"),
    (("jax[cuda12]",), frozenset(), "3.13"),
    (("jax[cuda13]", "flax", "optax"), TOO_NEW, "3.13"),
    (("tensorflow[and-cuda]!=2.21.0",), frozenset(), "3.12"),  # 2.21.0 does not find its cuSOLVER
    (("onnxruntime-gpu[cuda,cudnn]",), TOO_NEW, "3.13"),
    # numba-cuda admits NumPy 2.5, which Python 3.12 and newer get, and compiles no kernel beside it.
    (("cupy-cuda12x[ctk]", "numba-cuda[cu12]"), frozenset({"numpy-abi-mismatch"}), "3.13"),
    (("torch==2.2.2", "torchvision==0.17.2", "numpy<2"), frozenset(), "3.11"),
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_fresh_environment_is_left_in_peace(
    requirements: tuple[str, ...], true: frozenset[str], newest_python: str, tmp_path: Path
) -> None:
    if sys.version_info[:2] > tuple(map(int, newest_python.split("."))):
        pytest.skip(f"{requirements[0]} has no wheels for this Python")
    if shutil.disk_usage(tmp_path).free >> 20 < _MEBIBYTES:
        pytest.skip(f"less than {_MEBIBYTES} MiB are free")
    place = tmp_path / ".venv"
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    words = ("-m", "pip", "install", "-q", "--no-compile", "--no-cache-dir", *requirements)
    try:
        subprocess.run([place / "bin" / "python", *words], check=True, timeout=3600)
        for machine in (NEWER, OLDER):
            result = envcheck(
                "check", "--json", "--scope", "env", "--python", str(place), "--assume", machine, cwd=tmp_path
            )
            checks = json.loads(result.out)["checks"]
            bad = [f"{each['rule']}: {each['title']}" for each in checks if each["status"] in ("fail", "warn")]
            allowed = true - TOO_NEW if machine is NEWER else true
            assert [each for each in bad if each.partition(":")[0] not in allowed] == [], machine
    finally:
        shutil.rmtree(place, ignore_errors=True)
