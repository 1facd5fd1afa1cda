"""Lines by which a text without a traceback names its problem, by problem."""

# ruff: noqa: E501  lines as the programs print them

from __future__ import annotations

EXAMPLES: dict[str, list[str]] = {
    "gpu-memory-exhausted": [
        "torch_tensorrt - WARNING - Requested amount of GPU memory (149635638784 bytes) could not be allocated. There may not be enough free memory for allocation to succeed.",
        "[executionContext.cpp::initializeExecutionContext::644] Error Code 2: OutOfMemory (Requested size was 149635638784 bytes.)",
    ],
    "fabric-manager-not-running": [
        "NVIDIA-H100-80GB-HBM3 checked fabric state; fabric manager found but not active",
        '"data": "{\\"fabric_manager_active\\":false,\\"fabric_state_supported\\":true}"',
        "nvidia-fabricmanager.service: fabricmanager inactive (dead)",
        "        State                             : In Progress",
    ],
    "gpu-code-missing": [
        "RuntimeError: CUDA error: invalid device function",
        'level=INFO source=runner.go:412 msg="skipping CUDA device — compute capability not in compiled architectures" device="NVIDIA GeForce GTX 1060 3GB" cc=610 archs="[750 800 860]"',
        "RuntimeError: This cuDF installation is missing the necessary PTX files that are <=50.",
    ],
    "driver-not-loaded": [
        "failed to create NVIDIA device nodes: failed to create device node nvidiactl: failed to determine major: invalid device node",
        "nvidia-docker | Error: Could not load UVM kernel module",
    ],
    "shared-memory-too-small": [
        "Test NCCL failure common.cu:777 'unhandled system error'. With --ipc=host the error disappeared.",
        "RuntimeError: unable to write to file </torch_77_1234_0>: Cannot allocate memory (12)",
    ],
    "glibc-too-old": ["vllm stops with GLIBC_2.29 not found on this machine"],
    "toolkit-missing": ["gsplat: No CUDA toolkit found. gsplat will be disabled."],
    "extension-built-for-other-torch": [
        "OSError: [WinError 127] The specified procedure could not be found. Error loading torch_sparse\\_convert_cuda.pyd",
        "RuntimeError: PyTorch version mismatch! DeepSpeed ops were compiled and installed with a different version than what is being used at runtime. Install torch version=2.3, Runtime torch version=2.2",
    ],
    "cuda-major-mismatch": [
        "RuntimeError: CUDA version mismatch! DeepSpeed ops were compiled and installed with a different version than what is being used at runtime."
    ],
    "library-not-found": [
        "CreateExecutionProviderInstance CUDA_PATH is set but CUDA wasn't able to be loaded. Please install the correct version of CUDA and cuDNN"
    ],
    "scheduler-lacks-gpu": [
        "sbatch: error: Batch job submission failed: Requested node configuration is not available (--gres=gpu:h100:4)"
    ],
    "driver-too-old": [
        "UserWarning: Using CUDA toolkit version (12, 3) with CUDA driver version (12, 2) requires minor version compatibility, which is not yet supported",
        "UserWarning: CUDA Toolkit is newer than CUDA driver. Numba features will not work in this configuration.",
        "┌ Error: This version of CUDA.jl only supports NVIDIA drivers for CUDA 11.x or higher (yours is for CUDA 10.2.0)",
    ],
    "nodes-not-connected": [
        "10-0-4-11:62452:62548 [0] misc/ibvwrap.cc:284 NCCL WARN Call to ibv_modify_qp failed with error No such device",
        "torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while trying to connect to (10.0.0.1, 29500).",
    ],
    "cpu-only-build": [
        "thread 'main' panicked: Error: the candle crate has not been built with cuda support",
        "mxnet.base.MXNetError: [12:00:00] src/storage/storage.cc:155: GPU is not enabled",
        "On this machine pip install torch gives the CPU version",
        "I get the CPU-only build of torch instead of the CUDA one",
        "CUDA execution provider is not enabled in this build. ",
    ],
    "toolkit-lacks-gpu": ["nvcc complains: Unsupported gpu architecture 'compute_120'"],
    "gpu-feature-unsupported": [
        "AssertionError: FlashAttention v3 Backend requires SM>=80 and SM<=90. Please use `--attention-backend flashinfer`.",
        "ValueError: TRTLLM MLA backend is only supported on Blackwell GPUs (SM100/SM12x). Please use a different backend.",
        "NotImplementedError: flash_attn at sgl-kernel is only supported on sm90 and above",
        "RuntimeError: Expected is_sm8x || is_sm75 to be true, but got false.",
        "ValueError: No valid attention backend found for cuda with AttentionSelectorConfig. Reasons: {FLASH_ATTN_MLA: [compute capability not supported]}",
        "    assert is_fa_version_supported(self.fa_version)",
        "AssertionError('Only FlashAttention backend is supported for now.')",
        "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 GPU has compute capability 7.5. You can use float16 instead by explicitly setting the `dtype` flag",
    ],
}
