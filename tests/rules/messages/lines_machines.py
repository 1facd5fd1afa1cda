"""Lines about a machine: module builds, devices that were asked for, operators of clusters, prose; by problem."""

# ruff: noqa: E501  lines as the programs print them

from __future__ import annotations

EXAMPLES: dict[str, list[str]] = {
    "kernel-module-missing": [
        "'make' -j8 NV_EXCLUDE_BUILD_MODULES='' KERNEL_UNAME=6.8.0-49-generic modules....(bad exit status: 2)",
        "ERROR (dkms apport): kernel package linux-headers-6.8.0-49-generic is not supported",
        "Autoinstall on 6.8.0-49-generic failed for module(s) nvidia(10).",
        "Error! Aborting build of module nvidia/550.107.02 for kernel 6.8.0-49-generic (x86_64) due to missing BUILD_DEPENDS: gcc-12",
    ],
    "gpu-hidden": [
        "RuntimeError: Attempting to deserialize object on CUDA device 3 but torch.cuda.device_count() is 1",
        '[error] Invalid CUDA device index "2" from device string cuda:2, there are 2 visible CUDA devices.',
        "ValueError: 4 GPUs were requested, but only 2 GPUs are available",
    ],
    "gpu-init-failed": [
        "CUDA initialization: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions? Error 2: out of memory"
    ],
    "toolkit-differs-from-build": [
        " [WARNING]  cpu_adam cuda is missing or is incompatible with installed torch, only cpu ops can be compiled!"
    ],
    "library-of-other-architecture": [
        "CUDA SETUP: /env/bitsandbytes/libbitsandbytes_cuda118.dll: invalid ELF header",
        "OSError: /opt/lib/libexample.so.2: ELF file OS ABI invalid",
    ],
    "host-compiler-unsupported": [
        "RuntimeError: The current installed version of g++ (5.4.0) is less than the minimum required version by CUDA 12.4 (6.0.0)."
    ],
    "driver-not-loaded": [
        "nvidia-smi says that it cannot talk to the NVIDIA driver",
        "after the update the nvidia driver is still not loading",
        "nvidia driver modules are not yet loaded, invoking runc directly",
        "Driver is not pre-installed on the host and is managed by the operator; not ready, retrying",
        "No pre-installed driver detected on the host: driver-ctr-ready",
        "Error: error validating driver installation: exit status 9",
        "Failed to start container due to driver not being ready",
    ],
    "container-toolkit-missing": [
        "Failed to start nvml with error:  could not load NVML library.",
        "waiting for nvidia container stack to be setup",
        "Error: error validating toolkit installation: exit status 1",
    ],
    "container-without-gpu": [
        'docker: Error response from daemon: exec: "nvidia-smi": executable file not found in $PATH: unknown.'
    ],
    "scheduler-lacks-gpu": [
        "srun: error: Unable to create step for job 123: Invalid generic resource (gres) specification",
        "GPU resources are not discovered by the node",
        "unable to find any allocatable GPU resource",
    ],
    "cudnn-major-mismatch": ["Check failed: [cudnn init] libcudnn v7 with header v8 unmatched!"],
    "cuda-library-missing": [
        "PreconditionNotMetError: The third-party dynamic library (cublas64_11.dll) that Paddle depends on is not configured correctly."
    ],
    "cudnn-missing": [
        "The third-party dynamic library (cudnn64_8.dll) that Paddle depends on is not configured correctly. (error code is 126)",
        "I tensorflow/stream_executor/dso_loader.cc:105] Couldn't open CUDA library libcudnn.so. LD_LIBRARY_PATH: ",
    ],
    "gpu-lost": ["The GPU falls off the bus after some minutes of training"],
    "no-gpu-visible": [
        "RuntimeError: Your device does not support the current version of Torch/CUDA! Consider download another version: ",
        "nvcc fatal   : Unsupported gpu architecture 'compute_No CUDA devices found.'",
    ],
    "peer-access-blocked": [
        "        ACSCtl: SrcValid+ TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-"
    ],
    "fabric-manager-not-running": [
        "node1:100:200 [3] transport/nvls.cc:250 NCCL WARN Cuda failure 1 'invalid argument'"
    ],
    "cpu-only-build": ["It always says BLAS = 0 when the model starts"],
    "jit-compiler-missing": ["OSError: library nvvm not found"],
    "nodes-not-connected": [
        "node1:100:200 [0] include/socket.h:357 NCCL WARN Call to connect failed : Connection timed out"
    ],
    "container-toolkit-too-old": [
        "Error 500: named symbol not found (Triggered internally at ../c10/cuda/CUDAFunctions.cpp:108.)"
    ],
    "driver-too-old": [
        "SystemError: Please update your GPU driver to support cu130 ; or manually install older PyTorch"
    ],
    "tensorrt-engine-mismatch": [
        'engine.cpp:1104: Assertion `size >= bsize && "Mismatch between allocated memory size and expected size of serialized engine."\' failed.'
    ],
    "jax-plugin-mismatch": [
        "but it is not compatible with the installed jaxlib version 0.9.0, so it will not be used."
    ],
    "gpu-code-missing": [
        "If you want to use the NVIDIA RTX A4000 GPU with PyTorch, please check the instructions at https://pytorch.org/get-started/locally/"
    ],
}
