"""Facts in the messages of programs and in prose, constructed after those programs."""

from envcheck.importers import read_text
from envcheck.importers.prose.mentions import models
from tests.every import every, every_tabled, tabled
from tests.importers.pasting import errors_in, word

LINES = (
    "RuntimeError: CUDA error: no kernel image is available for execution on the device",
    "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory",
    "NVRM: Xid (PCI:0000:b3:00): 79, pid='<unknown>', GPU has fallen off the bus.",
    "Failed to initialize NVML: Driver/library version mismatch",
    "modprobe: FATAL: Module nvidia not found in directory /lib/modules/5.15.0-84-generic",
    "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service",
    "Minimum and Maximum cuda capability supported by this version of PyTorch is",
    "Loaded runtime CuDNN library: 8.5.0 but source was compiled with: 8.6.0.", "No devices were found",
    "cudaGetDeviceCount returned 100", 'level=INFO msg="Dynamic LLM libraries" runners=[cpu]',
    "        HW Thermal Slowdown         : Active",
    "docker: Error response from daemon: could not select device driver",
    "Cuda failure 802 'system not yet initialized'",
    "ptxas application ptx input, line 9; fatal   : Unsupported .version 8.1; current version is '8.0'",
    "NVRM:  information.  The 595.71.05 NVIDIA driver will ignore",
)  # fmt: skip


@every(LINES)
def test_lines_that_speak_of_a_failure(line: str) -> None:
    assert errors_in(read_text(f"before\n{line}\nafter\n")) == [line.strip()]
    assert read_text(f"before\n{line}\nafter\n").observed_errors[0].line == 2


@tabled
def test_lines_that_do_not(line: str) -> None:
    assert read_text(f"{line}\nUbuntu 22.04\n").observed_errors == ()


def test_a_repeated_line_counts_once_and_their_number_is_bounded() -> None:
    assert len(read_text("RuntimeError: boom\n" * 50).observed_errors) == 1
    many = read_text("".join(f"RuntimeError: boom {number}\n" for number in range(5_000)))
    assert [error.text for error in many.observed_errors] == [f"RuntimeError: boom {n}" for n in (0, 1, 4998, 4999)]
    many = read_text("".join(f"RuntimeError: boom {word(number)}\n" for number in range(5_000)))
    assert [error.line for error in many.observed_errors] == [*range(1, 101), *range(4901, 5001)]
    assert all(len(error.text) <= 2_000 for error in read_text("error " * 9_000).observed_errors)


@every_tabled
def test_what_looks_like_an_old_model_is_none(line: str) -> None:
    assert not list(models(line))


@every_tabled
def test_a_computer_is_no_gpu(line: str, named: list[str]) -> None:
    assert [name for _, name in models(line)] == named
