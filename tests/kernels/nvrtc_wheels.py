"""NVRTC libraries from their wheels; they need no GPU."""

import subprocess
import sys
from pathlib import Path

from probes.measuring.kernels import Nvrtc

WHEELS = {
    "11.8": "nvidia-cuda-nvrtc-cu11==11.8.89",
    "12.9": "nvidia-cuda-nvrtc-cu12==12.9.86",
    "newest": "nvidia-cuda-nvrtc",
}
"""The last that compile for 3.5 and for 5.0, and the newest."""


def nvrtc(name: str, folder: Path) -> Nvrtc:
    """The NVRTC of a key of ``WHEELS``, in a folder of its own below ``folder``; fetched where it is not there yet."""
    place = folder / name
    if not place.exists():
        command = [sys.executable, "-m", "uv", "pip", "install", "-q", "--no-deps", "--target", str(place)]
        done = subprocess.run([*command, WHEELS[name]], check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    (library,) = [file for file in place.glob("nvidia/*/lib/libnvrtc.so.*") if "alt" not in file.name]
    return Nvrtc(str(library))
