"""Libraries, frameworks and packages on top: public facts, old and new, at their boundaries.

A comma stands for a blank in a GPU's name.
"""

from __future__ import annotations

from envcheck.compat.load import load_matrix
from envcheck.compat.names import scheme
from envcheck.compat.question.wheels import covering, published
from envcheck.compat.relations.torch import builds, tag_of
from envcheck.compat.specifier import Version, covered, parse_specifier, parse_version
from envcheck.compat.tables import ReleaseRow
from tests.compat.asking import (
    assert_does_not_fit,
    assert_fits,
    assert_nobody_can_tell,
    judged,
    questions,
    verdict,
)
from tests.every import every

MATRIX = load_matrix()

COMPATIBLE = """
nvidia-cudnn-cu12==9.1.0.70 python==3.12
tensorflow==2.18.0 gpu==B200 driver==570
tensorflow==2.10.0 gpu==H100 driver==535
onnxruntime-gpu==1.21.0 gpu==RTX,5090 driver==570
onnxruntime-gpu==1.16.0 gpu==H100
onnxruntime-gpu==1.16.0 gpu==RTX,4090
mxnet-cu112==1.9.1 cuda==11.2
cntk-gpu==2.7 cuda==10.0
cntk-gpu==2.6 cuda==9.0 python==3.6
paddlepaddle-gpu==2.6.2 cuda==11.8
numba==0.60.0 numpy==2.0
torch==2.6.0 python==3.13 torchvision==0.21.0
torch==2.5.1 xformers==0.0.28.post3 gpu==RTX,4090 driver==550
torchvision==0.20.1+cu121 torch==2.5.1+cu124
torchvision==0.20.1+cu118 torch==2.5.1+cu118
vllm==0.6.4 torch==2.5.1
vllm==0.8.5 torch==2.6.0 driver==550
vllm==0.11.0 gpu==H100
xformers==0.0.28.post3 torch==2.5.1
xformers==0.0.23 torch==2.1.1
bitsandbytes==0.45.3 cuda==12.8
flash-attn==2.6.3 gpu==A100
flash-attn==2.6.3 gpu==H100
torchvision==0.20.1 torch==2.5.1
torchaudio==2.5.1 torch==2.5.1
torchvision==0.20.1 torch==2.5.1 torchaudio==2.5.1 python==3.12
jax==0.4.30 jaxlib==0.4.30
jax-cuda12-plugin==0.4.30 cudnn==9.1
jax-cuda12-plugin==0.6.0 driver==525.60.13
jax-cuda13-plugin==0.7.2 driver==580
jax==0.7.0 python==3.11
onnxruntime-gpu==1.18.0 cuda==11.8
onnxruntime-gpu==1.19.0 cuda==12.4 cudnn==9.1
onnxruntime-gpu==1.27 cuda==13.0
onnxruntime-gpu==1.29 gpu==RTX,5090
onnxruntime-gpu==1.19 tensorrt==10.3
cupy-cuda12x==13.3.0 cuda==12.4
cupy-cuda11x==13.6.0 driver==470
tensorrt==8.6.1 cuda==12.1
tensorrt==8.5.3 cuda==11.8
tensorrt==10.0.1 gpu==V100
tensorrt==10.9 python==3.13
tensorrt==10.13.3 cuda==13.0
deepstream==7.1 tensorrt==10.3
deepstream==7.1 jetpack==6.1
deepstream==6.2 cuda==11.8
deepstream==6.4 driver==535.104.12
deepspeed==0.15.0 torch==2.5.1
tensorrt-llm==0.16.0 python==3.10
cudf-cu12==24.12.0 driver==525.60.13
cusparselt==0.6.2 cuda==12.4
cuda-compat==12.4 driver==470 gpu==A100 cuda==12.4
cuda-compat==13.0 driver==535 gpu==H100 torch==2.11.0
cuda-compat==11.8 driver==450 gpu==T4
torch==2.1.0 python==3.8
torch==2.1.0+cu118 gpu==H100
torch==1.13.1+cu117 gpu==A100 driver==450.80.02
torch==2.7.1+cu128 gpu==B200 driver==570.86.10
torch==2.9.1+cu126 gpu==GTX,1080,Ti
torch==2.10.0 gpu==V100 driver==570
torch==2.3.1 gpu==GTX,1080
torch==2.0.0+cu118 gpu==H100
torch==1.10.0+cu113 gpu==RTX,3090
torch==2.11.0 gpu==T4 driver==580.65.06
torch==2.9.0 gpu==RTX,5090 driver==570.86.10
tensorflow==2.15.0 cuda==12.2 cudnn==8.9
tensorflow==2.12.0 cuda==11.8 cudnn==8.6
tensorflow==2.4.0 python==3.8
tensorflow==2.20.0 python==3.13
tensorflow==2.16.1 gpu==GTX,980
tensorflow==2.18.0 driver==525.60.13 gpu==A100
tensorflow==1.15.0 cuda==10.0 cudnn==7.6
tensorflow-gpu==2.0.0 gpu==V100 cuda==10.0
tensorflow==2.10.1 os==windows gpu==RTX,3080
tensorflow==2.16.1 os==wsl gpu==RTX,4090
jaxlib==0.4.25+cuda12.cudnn89 cuda==12.3
jax-cuda12-plugin==0.6.2 gpu==RTX,5090
jax-cuda12-plugin==0.6.0 cudnn==9.8
jax-cuda13-plugin==0.7.2 gpu==T4 driver==580.65.06
onnxruntime-gpu==1.22.0 python==3.13
onnxruntime-gpu==1.16.3 cuda==11.8 cudnn==8.9 tensorrt==8.6
cupy-cuda12x==14.0.0 gpu==H100
cudnn==7.6.5 cuda==10.2
cudnn==9.12.0 cuda==13.0
cudnn==9.10.2 cuda==11.8
cudnn==9.7.0 gpu==RTX,5090
cudnn==8.9.7 gpu==GTX,980
tensorrt==8.6.1 gpu==GTX,1080
tensorrt==10.8 gpu==RTX,5090
tensorrt==8.5.3 python==3.10
tensorrt==8.6.1 cudnn==8.9
jetpack==5.1.2 l4t==35.4.1
jetpack==6.0 l4t==36.3.0
jetpack==6.2 l4t==36.4.3
jetpack==7.2 gpu==Jetson,AGX,Orin
jetpack==4.6 gpu==Jetson,Nano
jetpack==5.1.2 tensorrt==8.5.2
jetpack==6.0 deepstream==7.0
deepstream==6.1.1 cuda==11.7
bitsandbytes==0.43.0 cuda==12.1
rapids==24.06 gpu==V100
numba-cuda==0.20.0 gpu==H100
tensorrt-engine==8.5.3 tensorrt==8.5.3
tensorrt-engine==10.3 tensorrt==10.3
tensorrt-engine==8.5.3 tensorrt==8.5.3.1
tensorrt-engine==8.5.2 jetpack==5.1.2
torch==2.5.1 nvidia-cudnn-cu12==9.1.0.70
kernel-module==open driver==515
jetpack==7.0 torch==2.11.0
"""

INCOMPATIBLE = """
tensorflow==2.10.0 gpu==RTX,5090
tensorflow==2.15.0 gpu==RTX,5090
tensorflow==1.15.0 gpu==A100
onnxruntime-gpu==1.16.0 gpu==RTX,5090
mxnet-cu101==1.9.1 gpu==A100
cntk-gpu==2.7 cuda==9.0
cntk-gpu==2.7 python==3.7
paddlepaddle-gpu==2.6.2 gpu==RTX,5090
paddlepaddle-gpu==2.6.2 cuda==12.4
paddlepaddle-gpu==2.6.2 gpu==H100
numba==0.59.0 numpy==2.0
numba==0.60.0 python==3.13
numba==0.60.0 numpy==2.1
torch==2.2.0 numpy==2.0 os==windows
torch==2.5.1+cu118 vllm==0.6.4
torchvision==0.20.1+cu118 torch==2.5.1+cu124
torchvision==0.20.1+cu118 torch==2.5.1
vllm==0.6.3 torch==2.5.1
vllm==0.6.0 gpu==B200
vllm==0.20.0 driver==550
vllm==0.20.0 gpu==V100
vllm==0.6.4 os==windows
vllm==0.6.4 python==3.13
xformers==0.0.28 torch==2.5.1
xformers==0.0.22 torch==1.13.1
bitsandbytes==0.45.3 cuda==13.0
flash-attn==2.6.3 gpu==T4
flash-attn==2.6.3 cuda==11.4
flash-attn-3==3.0.0 gpu==A100
torchvision==0.20.1 torch==2.4.1
torchvision==0.15.1 torch==2.0.1
torchvision==0.20.1+cu121 torch==2.5.0+cu121
jax==0.4.35 jaxlib==0.4.20
jax-cuda12-plugin==0.4.26 cudnn==9.0
jax-cuda12-plugin==0.4.30 driver==470
jax-cuda13-plugin==0.7.2 driver==575
jax-cuda13-plugin==0.7.2 gpu==V100
jax==0.7.0 python==3.10
jax==0.11.0 python==3.11
jax-cuda12-plugin==0.4.30 os==windows
onnxruntime-gpu==1.27 cuda==12.8
onnxruntime-gpu==1.29 gpu==B200
onnxruntime-gpu==1.28 gpu==V100
onnxruntime-gpu==1.19 tensorrt==8.6
onnxruntime==1.19 gpu==H100
cupy-cuda12x==13.3.0 cuda==11.8
cupy-cuda13x==13.6.0 driver==570
cupy-cuda112==9.6.0 cuda==11.4
tensorrt==8.5.3 cuda==12.0
tensorrt==10.0.1 gpu==P100
tensorrt==10.5.0 gpu==V100
tensorrt==8.6.1 gpu==RTX,5090
tensorrt==8.6.1 python==3.12
tensorrt==10.13.3 cuda==11.8
deepstream==7.1 tensorrt==8.6.1
deepstream==7.1 jetpack==5.1.2
deepstream==7.0 cuda==12.6
deepstream==7.1 driver==525
deepstream==6.3 os==windows
transformer-engine==1.11.0 gpu==V100
torch-tensorrt==2.5.0 torch==2.4.0
cudf-cu12==25.10.0 gpu==GTX,1080
cudf-cu12==24.12.0 driver==470
torch==2.2.0 numpy==2.0.0
triton==3.1.0 torch==2.4.0
cuda-compat==13.1 driver==535 gpu==V100
cuda-compat==12.8 driver==535 gpu==RTX,4090
cuda-compat==12.2 driver==550 gpu==H100
cuda-compat==12.4 driver==700 gpu==H100
cuda-compat==12.4 driver==535 gpu==H100 cuda==13.0
cuda-compat==12.4 driver==535 gpu==H100 os==windows
torch==2.0.1 python==3.12
torch==2.1.0+cu118 gpu==RTX,5090
torch==1.13.1 gpu==H100
torch==2.6.0 gpu==B200
torch==2.9.1 gpu==GTX,1080,Ti
torch==2.12.0 gpu==V100
torch==2.0.0 gpu==H100
torch==1.10.0 gpu==RTX,3090
torch==1.4.0 python==3.9
torch==2.11.0+cu130 driver==570.86.10
torch==2.11.0 machine==aarch64 gpu==T4
torch==2.9.0+cu130 driver==575.57.08
tensorflow==2.15.0 cuda==11.8
tensorflow==2.12.0 cudnn==8.1
tensorflow==2.4.0 python==3.9
tensorflow==2.10.0 python==3.11
tensorflow==2.18.0 python==3.13
tensorflow==2.18.0 gpu==GTX,980
tensorflow==2.18.0 driver==470.57.02
tensorflow==1.15.0 cuda==10.1
tensorflow==2.0.0 gpu==V100
tensorflow==2.16.1 os==windows gpu==RTX,4090
tensorflow==2.18.0 machine==aarch64 gpu==GH200
jax==0.4.20 python==3.8
jax-cuda12-plugin==0.4.30 gpu==RTX,5090 driver==535
jax-cuda12-plugin==0.6.0 cudnn==9.5
jax-cuda12-plugin==0.4.30 cuda==11.8
jax-cuda12-plugin==0.4.30 gpu==K80
jax-cuda13-plugin==0.7.2 gpu==GTX,1080
jax-cuda13-plugin==0.8.0 cuda==12.9
onnxruntime-gpu==1.27.0 driver==575
onnxruntime-gpu==1.22.0 gpu==GTX,980
onnxruntime-gpu==1.22.0 machine==aarch64
onnxruntime-gpu==1.16.0 cudnn==9.0
cupy-cuda12x==13.6.0 driver==470
cupy-cuda11x==12.0.0 cuda==12.0
cupy-cuda111==9.0.0 cuda==11.2
cudnn==8.6 cuda==12.0
cudnn==7.6.5 cuda==11.0
cudnn==7.6.0 cuda==10.2
cudnn==9.10.2 cuda==13.0
cudnn==9.6.0 gpu==RTX,5090
cudnn==8.9.7 gpu==K80
cudnn==9.12 gpu==GTX,1080
nccl==2.27.3 os==windows
tensorrt==10.0.1 gpu==GTX,1080
tensorrt==10.7 gpu==V100
tensorrt==8.4 cuda==12.0
tensorrt==8.5.3 python==3.11
tensorrt==10.0.1 python==3.13
tensorrt==8.5.3 cudnn==9.0
jetpack==5.1.2 l4t==36.3.0
jetpack==7.0 gpu==Jetson,AGX,Orin
jetpack==4.6 gpu==Jetson,AGX,Orin
jetpack==5.1.1 gpu==Jetson,TX2
jetpack==6.1 cudnn==8.6
jetpack==5.1.2 tensorrt-engine==8.6.1
l4t==32.7.1 cuda==11.4
jetpack==6.0 deepstream==7.1
deepstream==6.1 cuda==11.7
bitsandbytes==0.48.0 gpu==GTX,980
flash-attn==2.7.0 gpu==RTX,2080,Ti
xformers==0.0.29 torch==2.4.0
transformer-engine==1.13.0 gpu==T4
vllm==0.8.0 torch==2.5.1
rapids==25.10 gpu==P100
tensorrt-engine==8.5.3 tensorrt==8.6.1
tensorrt-engine==8.6.1 tensorrt==10.0.1
tensorrt-engine==10.0.1 tensorrt==10.3.0
tensorrt-engine==8.6.1 tensorrt==8.5.3
tensorrt-engine==10.3.0 tensorrt==10.0.1
tensorrt-engine==10.3.0 tensorrt==8.6.1
tensorrt-engine==8.6.1 tensorrt==11.0.0
kernel-module==open driver==470
jetpack==6.1 torch==2.5.1+cpu
jetpack==6.1 torch==2.11.0+cu130
torch==2.5.1 nvidia-cudnn-cu12==9.5.1.17
"""

UNKNOWN = """
onnxruntime-gpu==1.18.0 cuda==12.4
onnxruntime-gpu==1.19.0 cudnn==8.9
onnxruntime-gpu==1.20 cuda==11.8
torch==2.5.1 frobnicator==1
tensorrt==99.0 cuda==12.4
cudnn==99.0 gpu==H100
jetpack==99.0 cuda==12.6
cuda-compat==12.8 driver==535 gpu==RTX,A6000
tensorflow==99.0 python==3.12
cupy-cuda12x==13.3.0 transformers==4.40.0
python==3.12 cudnn==9.1
"""


@every(questions(COMPATIBLE))
def test_fits(question: str) -> None:
    assert_fits(question)


@every(questions(INCOMPATIBLE))
def test_does_not_fit(question: str) -> None:
    assert_does_not_fit(question)


@every(questions(UNKNOWN))
def test_nobody_can_tell(question: str) -> None:
    assert_nobody_can_tell(question)


@every([row for name in ("cuda-bindings", "cuda-python") for row in MATRIX.rows_of(name)])
def test_python_bindings_take_the_toolkits_of_their_major(row: ReleaseRow) -> None:
    release = parse_specifier(row.versions).bounds[0].numbers
    for cuda in MATRIX.toolkits:
        wanted = "compatible" if cuda.major == release[0] else "incompatible"
        asked = f"{row.name}=={'.'.join(map(str, release))} cuda=={cuda}"
        assert verdict(asked) == wanted, asked


def test_documents_that_ask_for_different_drivers_leave_it_open() -> None:
    assert_nobody_can_tell("cuda-bindings==12.8.0 driver==470.256.02")
    assert_does_not_fit("cuda-bindings==12.8.0 driver==440.33.01")
    assert_fits("cuda-bindings==12.8.0 driver==535.183.01")


def test_what_a_package_does_without_is_no_reason_against_what_happens_to_be_there() -> None:
    assert_fits("nvcr==pytorch:24.10-py3 cupy-cuda12x==13.3.0")
    assert_fits("jetpack==6.1 cupy-cuda12x==13.3.0")
    assert_does_not_fit("cudnn==9.3.0 cupy-cuda12x==13.3.0")


@every(sorted({row.name for row in MATRIX.releases if "windows" in row.os and len(row.os) > 1}))
def test_software_for_windows_and_for_arm_is_not_thereby_for_windows_on_arm(name: str) -> None:
    newest = next(reversed(MATRIX.known_versions(name)), "1.0")
    found = judged(f"{name}=={newest} os==windows machine==aarch64")
    assert found.verdict != "compatible" or any("has a wheel" in reason.message for reason in found.reasons)


BUILDS = [row for row in MATRIX.releases if row.build and row.versions.startswith("==") and "*" not in row.versions]
"""Builds of one release each, beside PyPI's."""


def pythons_of_release(row: ReleaseRow) -> str:
    """For which Python the release is, where the row of its build does not say so itself."""
    version = parse_version(row.versions.removeprefix("=="))
    rows = MATRIX.rows_for(row.name, version) if version and "python" not in row.needs else []
    return next((one.needs["python"] for one in rows if not one.build and "python" in one.needs), "")


@every([row for row in BUILDS if pythons_of_release(row)])
def test_every_build_of_a_release_is_for_the_same_pythons(row: ReleaseRow) -> None:
    spec = parse_specifier(pythons_of_release(row))
    for python in (Version((3, minor), scheme=scheme("python")) for minor in (2, 6, 9, 11, 20)):
        found = verdict(f"{row.name}{row.versions}+{row.build} python=={python}")
        assert found == {"all": "compatible", "none": "incompatible"}[spec.cover(python)], python


@every(lambda: sorted({name for row in MATRIX.indexes if "cpu" in row.address for name in row.packages} - {"torch"}))
def test_builds_without_gpu_support_are_known_as_such(name: str) -> None:
    spec = next((row.versions for row in MATRIX.rows_of(name) if not row.build), "")
    version = next((one for one in published(MATRIX, name) if spec and covered(spec, one) == "all"), None)
    if version:
        assert_does_not_fit(f"{name}=={version}+cpu gpu==A100")


BY_CUDA = [row for row in MATRIX.releases if row.build and row.cuda and "cuda" in row.needs and row.name != "torch"]
"""Builds for a CUDA version each, of one release or several."""


def releases(row: ReleaseRow) -> list[Version]:
    return [one for one in published(MATRIX, row.name) if covered(row.versions, one) == "all"]


@every(BY_CUDA)
def test_a_build_of_several_releases_is_known_for_each_of_them(row: ReleaseRow) -> None:
    for version in releases(row):
        rows = covering(MATRIX.rows_of(row.name), version)
        assert [one.build for one in rows].count(row.build) == 1, version


@every(lambda: [(row, version) for row in BY_CUDA for version in releases(row)[::3]])
def test_a_build_that_loads_into_pytorch_is_for_its_major_version_of_cuda(row: ReleaseRow, version: Version) -> None:
    rows = covering(MATRIX.rows_of(row.name), version)
    pin = next((one.needs["torch"] for one in rows if "torch" in one.needs), "")
    torch = next((one for one in MATRIX.torch if pin == f"=={one.version}"), None)
    for build in builds(torch) if torch else ():
        same = build.cuda == row.cuda
        if same or build.cuda.partition(".")[0] != str(row.cuda).partition(".")[0]:
            found = verdict(f"{row.name}=={version}+{row.build} {pin.replace('==', 'torch==')}+{tag_of(build.cuda)}")
            assert found == ("compatible" if same else "incompatible"), build.cuda
