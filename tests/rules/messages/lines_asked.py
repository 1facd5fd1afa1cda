"""Lines of builds, loaders and containers in the shape of public questions, by the problem that they name."""

# ruff: noqa: E501  lines as the programs print them

from __future__ import annotations

EXAMPLES: dict[str, list[str]] = {
    "container-without-gpu": [
        'failed to create task: runc create failed: "nvidia-smi": executable file not found in $PATH: unknown',
        "k3s with nvidia as a second runtime: I had to add runtimeClassName: nvidia to the pod before torch saw the GPU",
    ],
    "cuda-library-missing": [
        "import mxnet (mxnet-cu101): OSError: [WinError 126] The specified module could not be found",
    ],
    "driver-library-unusable": [
        "OSError: libcuda.so.1: cannot enable executable stack as shared object requires: Permission denied",
    ],
    "driver-not-installed": [
        "The code execution cannot proceed because nvcuda.dll was not found.",
        'LoadLibrary "nvcuda.dll" Failed!',
    ],
    "known-bad-release": [
        "ImportError: libctranslate2-d3638643.so.4.4.0: cannot enable executable stack as shared object requires: Invalid argument",
    ],
    "toolkit-missing": [
        "OSError: The nvcc binary could not be located in your $PATH. Either add it to your path, or set $CUDAHOME",
        "error: command 'C:/CUDA/v11.8\\\\bin\\\\nvcc.exe' failed: None",
        "unable to execute '/opt/cuda/bin/nvcc': No such file or directory",
    ],
    "variable-leads-nowhere": [
        "error: command '/usr/local/cuda:/usr/local/cuda-11.8/bin/nvcc' failed with exit status 1",
        r"error: command 'C:\CUDA\v11.8;C:\CUDA\v12.1\bin\nvcc.exe' failed: None",
        "CUDA_HOME=/usr/local/cuda-11.8: unable to execute '/usr/local/cuda-11.8/bin/nvcc': No such file or directory",
        "OSError: The CUDA lib64 path could not be located in /usr/lib/cuda/lib64",
    ],
}
