"""What PyTorch loads itself, as its own file says it. The texts are constructed in the form of the releases named."""

from pathlib import Path

from probes.files.installations.torch_files import torch_of
from probes.files.python.site import Site
from tests.documents import texts
from tests.every import cases
from tests.probes.frameworks.framework_trees import SITE, Frameworks, elf_needing

_DOCUMENT = (Path(__file__).with_name("data") / "torch_init.txt").read_text(encoding="utf-8")
OF_1_13, OF_2_5, OF_2_8, OF_2_9, OF_2_11, OF_2_15 = (f"\n{text}\n" for _, _, text in texts(_DOCUMENT))


def site(tree: Frameworks, text: str | bytes, cuda: str = "13.2") -> Site:
    tree.file(f"{SITE}/torch/__init__.py", text)
    tree.file(f"{SITE}/torch/version.py", f"__version__ = '2.0'\ncuda = '{cuda}'\n")
    tree.file(f"{SITE}/torch/_C.cpython-312-x86_64-linux-gnu.so", elf_needing("libtorch_python.so"))
    for name in ("libtorch_global_deps.so", "libtorch_cuda_linalg.so", "libcaffe2_nvrtc.so", "libtorch_cuda.so"):
        tree.file(f"{SITE}/torch/lib/{name}", elf_needing("libc.so.6"))
    return Site(tree.view(), "/env", (SITE,), 0, ())


@cases("text, expected",
    (OF_1_13, [("libcublas.so.11", "failed", ""), ("libcudnn.so.8", "failed", "")]),
    (OF_2_5, [("libcublas.so.*[0-9]", "failed", ""), ("libnvToolsExt.so.*[0-9]", "failed", "")]),
    (OF_2_8,
     [("libcudnn.so.*[0-9]", "failed", ""), ("libcufile.so.*[0-9]", "failed", ""),
       ("libnvrtc.so.*[0-9]", "mapped", "nvidia/cuda_runtime/lib/libcudart.so")]),
    (OF_2_9,
     [("libnccl.so.*[0-9]", "failed", ""), ("libnvToolsExt.so.*[0-9]", "failed", ""),
       ("libnvrtc-builtins.so.*[0-9]", "mapped", "libcudart.so"),
       ("libnvJitLink.so.*[0-9]", "mapped", "libcudart.so")]),
    (OF_2_11,
     [("libnvrtc-builtins.so.*[0-9]", "failed", ""), ("libnccl.so.*[0-9]", "failed", ""),
       ("libnvToolsExt.so.*[0-9]", "failed", ""), ("libnvrtc-builtins.so.*[0-9]", "mapped", "libcudart.so"),
       ("libnccl.so.*[0-9]", "mapped", "libcudart.so"), ("libnvToolsExt.so.*[0-9]", "mapped", "libcudart.so")]),
    (OF_2_15,
     [("libcublasLt.so.*[0-9]", "failed", ""), ("libnccl.so.*[0-9]", "failed", ""),
       ("libcublasLt.so.*[0-9]", "mapped", "libcudart.so"), ("libnccl.so.*[0-9]", "mapped", "libcudart.so")]),
)  # fmt: skip
def test_preloads(tree: Frameworks, text: str, expected: list[tuple[str, str, str]]) -> None:
    found = torch_of(site(tree, text)).preloads
    assert [(preload.names[0], preload.when, preload.mapped) for preload in found] == expected
    assert {preload.after for preload in found} == {"libtorch_global_deps.so"}


@cases("text, required",
    (OF_2_8, ["libnvrtc"]), (OF_2_9, ["libnvrtc-builtins", "libnvJitLink"]),
    (OF_2_11, ["libnvrtc-builtins", "libnccl"]), (OF_2_15, []),
)  # fmt: skip
def test_what_it_stops_at(tree: Frameworks, text: str, required: list[str]) -> None:
    """Where the import goes on without those that are left; where it would end, all that it lacks is told."""
    found = torch_of(site(tree, text)).preloads
    assert [preload.names[0].partition(".")[0] for preload in found if preload.required] == required
    assert {preload.when for preload in found if preload.required} <= {"mapped"}


@cases("text, folders",
    (OF_2_5, ("nvidia/cublas/lib",)), (OF_2_8, ("nvidia/cudnn/lib", "cudnn/lib")),
    (OF_2_9, ("nvidia/nccl/lib", "nvidia/cu13/lib")), (OF_2_15, ("nvidia/cublas/lib", "nvidia/cu13/lib", "cublas/lib")),
)  # fmt: skip
def test_where_it_looks(tree: Frameworks, text: str, folders: tuple[str, ...]) -> None:
    assert torch_of(site(tree, text)).preloads[0].folders == folders


def test_what_it_loads_and_may_load(tree: Frameworks) -> None:
    torch = torch_of(site(tree, OF_2_15))
    assert torch.parts == (
        f"{SITE}/torch/lib/libtorch_global_deps.so",
        f"{SITE}/torch/_C.cpython-312-x86_64-linux-gnu.so",
    )
    assert [ask.names[0].rpartition("/")[2] for ask in torch.asks] == ["libcaffe2_nvrtc.so", "libtorch_cuda_linalg.so"]
    assert (torch.cuda, torch.path) == ("13.2", f"{SITE}/torch")


def test_it_is_read_once(tree: Frameworks) -> None:
    found = site(tree, OF_2_15)
    first = torch_of(found)
    tree.file(f"{SITE}/torch/__init__.py", "")
    assert torch_of(found) is first


@cases("text", "", "def _preload_cuda_deps\n", OF_2_15.partition("def _load")[0], b"\xff\0" * 500)
def test_texts_of_another_form_name_nothing(tree: Frameworks, text: str | bytes) -> None:
    assert torch_of(site(tree, text)).preloads == ()


def test_no_torch(tree: Frameworks) -> None:
    tree.at(SITE).mkdir(parents=True)
    assert torch_of(Site(tree.view(), "/env", (SITE,), 0, ())).parts == ()
