"""What follows from a text is the same in every form that people paste and every wrapping that programs give it."""

import html
import json
import textwrap
from collections.abc import Callable
from pathlib import Path

from benchmarks.accuracy import judge
from envcheck.importers import read_text
from envcheck.importers.paste import Paste
from envcheck.knowledge.load import load_matrix
from envcheck.rules.api import Facts
from envcheck.rules.engine.cause import primary
from envcheck.rules.engine.evaluate import framework_importance
from tests.documents import lines_of
from tests.every import cases, every, every_tabled
from tests.importers.forms import FORMS
from tests.importers.layouts import CASES, LAYOUTS
from tests.importers.pasting import errors_in


@every(sorted(FORMS))
def test_the_cause_that_follows_from_a_form(name: str) -> None:
    text, wanted = FORMS[name]
    snapshot, checks = judge(text)
    weights = framework_importance(Facts(snapshot, load_matrix())) if snapshot else {}
    for importance in ({}, weights):
        cause = primary(checks, importance)
        assert (cause.rule if cause else "none") in wanted


@every((layout, case) for layout in LAYOUTS for case in CASES)
def test_the_cause_is_the_same_in_every_layout(layout: str, case: str) -> None:
    facts, wanted = CASES[case]
    _, checks = judge(LAYOUTS[layout](facts))
    cause = primary(checks)
    assert (cause.rule if cause else "none") == wanted


MODELS = {
    "8.9": ("4090 laptop", "4090RTX", "GeForce 4090", "4090 24GB", "RTX 6000 Ada", "A6000 Ada", "RTX 4080S"),
    "12.0": ("5090 32GB", "rtx5070ti", "RTX 6000 Pro Blackwell", "RTX PRO 6000", "RTX 5080 Founders Edition"),
    "12.1": ("DGX Spark", "GB10"), "11.0": ("Jetson AGX Thor",), "9.0": ("H100 NVL", "H100 PCIe", "H20", "GH200"),
    "8.7": ("Jetson Orin Nano", "Orin NX 16GB", "Jetson AGX Orin"),
    "8.6": ("A10", "A40", "RTX A5000", "RTX 3070 Mobile / Max-Q", "3060 Ti"), "7.5": ("T4", "Quadro RTX 3000 Mobile"),
    "6.1": ("P40", "GTX1080ti", "Titan X (Pascal)", "MX150"), "5.0": ("GeForce 940MX",), "3.7": ("K80",),
}  # fmt: skip
"""Compute capability → models as people write them."""


@every(
    (form, said, capability)
    for form in ("GPU: {}", "I have a {} and linux")
    for capability, names in MODELS.items()
    for said in names
)
def test_a_gpu_under_the_names_that_people_give_it(form: str, said: str, capability: str) -> None:
    snapshot, _ = judge(form.format(said))
    assert snapshot is not None
    assert snapshot.gpus is not None
    assert [gpu.compute_capability for gpu in snapshot.gpus.items] == [capability]


@every_tabled
def test_what_is_no_fact_about_this_machine_causes_nothing(text: str) -> None:
    _, checks = judge(text)
    assert primary(checks) is None


DOCUMENTATION = lines_of((Path(__file__).with_name("data") / "documentation.txt").read_text(encoding="utf-8"))
"""Sentences as documentation, forms for issues and answers to questions have them."""
CODE = (
    'print("CUDA out of memory, falling back to CPU")',
    '    if "out of memory" in str(e):',
    "logger.error('Torch not compiled with CUDA enabled')",
    'sys.exit("CUDA driver version is insufficient for CUDA runtime version")',
)
"""Lines of a program that would say so."""


@every((*DOCUMENTATION, *CODE))
def test_what_documentation_and_programs_would_say_causes_nothing(text: str) -> None:
    _, checks = judge(f"$ python train.py\n{text}\nThe GPU is an A100.")
    assert [check.rule for check in checks if check.status in ("fail", "warn")] == []


# --- What collectors of logs, other programs, web pages and terminals make of a text --------------------------------
ERRORS = {
    "gpu-code-missing": (
        "Traceback (most recent call last):\n"
        '  File "/srv/app/main.py", line 12, in <module>\n'
        "    x = torch.zeros(1, device='cuda') + 1\n"
        "RuntimeError: CUDA error: no kernel image is available for execution on the device"
    ),
    "driver-libraries-in-image": (
        "docker: Error response from daemon: failed to create task for container: OCI runtime create failed: stderr: "
        "nvidia-container-cli: mount error: file creation failed: /var/lib/docker/overlay2/"
        "f56e4ca318dae858d86212ad8306c4042c67298b687acb561cbfd1d1e0aa2f40/merged/usr/lib/x86_64-linux-gnu/"
        "libnvidia-ml.so.1: file exists: unknown."
    ),
    "build-does-not-see-torch": (
        "Getting requirements to build wheel ... error\n"
        "error: subprocess-exited-with-error\n"
        "ModuleNotFoundError: No module named 'torch'"
    ),
    "cudnn-too-old": (
        "2024-01-09 05:13:22.261219: E external/xla/xla/stream_executor/cuda/cuda_dnn.cc:419] Loaded runtime CuDNN "
        "library: 8.5.0 but source was compiled with: 8.9.4.  CuDNN library needs to have matching major version and "
        "equal or higher minor version."
    ),
}
"""Problem → a message of one or of several lines."""


def before(prefix: str) -> Callable[[str], str]:
    return lambda text: "\n".join(f"{prefix}{line}" for line in text.split("\n"))


def broken(width: int) -> Callable[[str], str]:
    """As a terminal shows it."""

    def shown(text: str) -> str:
        return "\n".join(line[at : at + width] for line in text.split("\n") for at in range(0, len(line) or 1, width))

    return shown


def filled(width: int) -> Callable[[str], str]:
    """As a program prints it that breaks between words."""
    return lambda text: "\n".join(
        part for line in text.split("\n") for part in textwrap.wrap(line, width, break_on_hyphens=False) or [""]
    )


def boxed(text: str) -> str:
    rows = [f"│ {line.ljust(96)} │" for line in filled(96)(text).split("\n")]
    return "\n".join(["╭──── Traceback (most recent call last) ────╮", *rows, f"╰{'─' * 98}╯"])


def of_docker(text: str) -> str:
    return "\n".join(
        json.dumps({"log": f"{line}\n", "stream": "stderr", "time": "2025-03-02T11:22:33.1Z"}, separators=(",", ":"))
        for line in text.split("\n")
    )


COLLECTED: dict[str, Callable[[str], str]] = {
    "kubectl": before("2025-03-02T11:22:33.123456789Z "),
    "CRI": before("2025-03-02T11:22:33.123456789Z stderr F "),
    "CI": before("2025-03-02T11:22:33.1234567Z ##[error]"),
    "journal": before("Mar 02 11:22:33 gpu01 server.py[1234]: "),
    "logging": before("2025-03-02 11:22:33,123 - ERROR - "),
    "loguru": before("2025-03-02 11:22:33.123 | ERROR    | app.worker:run:120 - "),
    "compose": before("worker  | "),
    "rank": before("[rank0]: "),
    "mpirun": before("[1,0]<stderr>:"),
    "docker build": before("#12 34.56 "),
    "numbers": lambda text: "\n".join(f"{number}: {line}" for number, line in enumerate(text.split("\n"), 1)),
    "list": before("- "),
    "quoted": before("> "),
    "code": lambda text: "\n".join(f"`{line}`" if line else line for line in text.split("\n")),
    "docker's file": of_docker,
    "JSON": lambda text: json.dumps({"level": "error", "output": text}),
    "repr": lambda text: f"CalledProcessError, stderr: {text.encode()!r}",
    "HTML": html.escape,
    "HTML breaks": lambda text: html.escape(text).replace("\n", "<br>"),
    "curly": lambda text: text.replace("'", "\u2019").replace(' "', " \u201c").replace('"', "\u201d"),
    "box": boxed,
}
BROKEN = {
    f"{name} {width}": way(width) for name, way in (("broken", broken), ("filled", filled)) for width in (80, 120)
}


def cause_of(text: str) -> str:
    _, checks = judge(text)
    cause = primary(checks)
    return cause.rule if cause else "none"


@every((way, problem) for way in (*COLLECTED, *BROKEN) for problem in ERRORS)
def test_a_message_in_what_was_made_of_it(way: str, problem: str) -> None:
    text = ERRORS[problem]
    assert cause_of(text) == problem
    assert cause_of((COLLECTED | BROKEN)[way](text)) == problem


@every((way, case) for way in COLLECTED for case in CASES)
def test_facts_in_what_was_made_of_them(way: str, case: str) -> None:
    facts, wanted = CASES[case]
    assert cause_of(COLLECTED[way](LAYOUTS["labels"](facts))) == wanted


@cases("prefix", "> 2025-03-02T11:22:33.123456789Z ", "> worker-1  | ", "> [rank0]: ", "- > ", "> (Worker pid=7) ")
def test_what_stands_before_quoted_lines(prefix: str) -> None:
    text = ERRORS["gpu-code-missing"]
    assert Paste.of(before(prefix)(text)).text == text


def test_a_line_of_several_keeps_its_number() -> None:
    text = 'first\n{"output": "one\\ntwo\\nRuntimeError: CUDA error: no kernel image is available"}\nlast'
    paste = Paste.of(text)
    assert [paste.number(place) for place in range(len(paste.lines))] == [1, 2, 2, 2, 2, 2, 3]
    assert read_text(text).observed_errors[0].line == 2


def test_a_broken_line_is_quoted_whole() -> None:
    text = broken(80)(ERRORS["driver-libraries-in-image"])
    assert errors_in(read_text(text)) == [ERRORS["driver-libraries-in-image"]]


def test_a_broken_line_in_another_language_is_quoted_as_it_was_written() -> None:
    path = f"ImportError: /srv/envs/{'a' * 40}/lib/python3.10/site-packages/torch/lib/libcudnn_ops_infer"
    rest = ".so.8: Kann die Shared-Object-Datei nicht \u00f6ffnen: Datei oder Verzeichnis nicht gefunden"
    (error,) = read_text(f"{path}\n{rest}").observed_errors
    assert error.text.endswith("infer.so.8: cannot open shared object file: No such file or directory")
    assert error.as_written == f"{path} {rest}"


@cases(
    "line", r'LoadLibrary failed with error 126 when trying to load "E:\ai\new\nvidia\onnxruntime_providers_cuda.dll"',
    r"bin\Debug\net6.0\runtimes\win-x64\native\onnxruntime_providers_cuda.dll", r'printf("CUDA error\n");',
)  # fmt: skip
def test_a_path_and_a_program_are_no_quoted_output(line: str) -> None:
    assert Paste.of(line).lines == (line,)


@cases("text",
    "- NVIDIA driver 550.54\nThe GPU is an A100.\nIt works.\nThat is all.",
    "2025-03-02 11:22:33,123 - ERROR - CUDA error\nmore\nand more\nand more",
)  # fmt: skip
def test_what_stands_before_few_lines_stays(text: str) -> None:
    assert Paste.of(text).text == text


def test_rows_of_a_table_are_no_broken_line() -> None:
    assert Paste.of("\n".join([f"| {'GPU':<70} |"] * 4)).rejoined == ()
