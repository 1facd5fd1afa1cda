"""Every problem that users of GPU stacks meet has a rule of its name."""

from __future__ import annotations

from envcheck.rules.catalog import all_rules
from tests.every import every

HAVE_RULES = {rule.name for rule in all_rules()}

PROBLEMS = {
    "driver and kernel": """
        driver-not-installed driver-not-loaded kernel-module-missing nouveau-loaded secure-boot-blocks-module
        driver-library-mismatch driver-too-old driver-older-than-toolkit gpu-unsupported-by-driver known-bad-release
        forward-compat-unsupported
    """,
    "GPU and fabric": """
        no-nvidia-gpu no-gpu-visible gpu-hidden gpu-lost gpu-firmware-timeout gpu-init-failed fabric-manager-not-running
        mig-without-instances mig-enumeration mig-permission peer-access-blocked pcie-link-degraded power-throttled
        thermal-throttled gpu-memory-exhausted uncorrected-ecc row-remap-pending row-remap-failed gpu-needs-reset
        nvlink-down persistence-mode-off
    """,
    "containers and platforms": """
        container-without-gpu container-toolkit-missing container-lost-gpu driver-libraries-in-image
        shared-memory-too-small wsl-libcuda-shadowed windows-gpu-unsupported jetpack-mismatch
        jetson-libraries-not-mounted
    """,
    "builds": """
        cpu-only-build gpu-code-missing gpu-feature-unsupported jit-compiler-too-old jit-compiler-missing
        toolkit-lacks-gpu toolkit-missing toolkit-differs-from-build
    """,
    "libraries": """
        cuda-major-mismatch cuda-library-missing library-not-found library-shadowed cuda-library-too-old
        stub-library-loaded nvjitlink-mismatch nvidia-wheel-conflict cudnn-missing cudnn-major-mismatch cudnn-too-old
        cudnn-mixed-copies tensorrt-missing tensorrt-mixed-versions tensorrt-engine-mismatch nccl-missing
        nccl-version-mismatch nccl-no-interface
    """,
    "packages": """
        torch-family-mismatch extension-built-for-other-torch extension-binary-missing onnxruntime-cpu-and-gpu
        cupy-multiple-packages jax-plugin-mismatch numpy-abi-mismatch glibc-too-old libstdcxx-too-old
        python-unsupported
    """,
}
"""Names of problems, by family."""

NAMED = [name for names in PROBLEMS.values() for name in names.split()]


def test_each_problem_is_listed_once() -> None:
    assert len(NAMED) == len(set(NAMED)) == 77


@every(NAMED)
def test_the_problem_has_a_rule(name: str) -> None:
    assert name in HAVE_RULES
