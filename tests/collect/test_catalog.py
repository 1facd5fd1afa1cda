"""A header is read as data, whatever else is in the file, and what is wrong with one is said in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from envcheck.collect.catalog import ProbeSpec, all_probes
from envcheck.errors import EnvcheckError

FIELDS = {
    "title": "Kernel module",
    "kind": "file",
    "seconds": 5,
    "uses": "files",
    "scopes": ["node", "container"],
    "fills": ["kernel", "driver.release"],
}
SPEC = ProbeSpec(
    name="kernel",
    title="Kernel module",
    kind="file",
    seconds=5.0,
    uses="files",
    scopes=("node", "container"),
    fills=("kernel", "driver.release"),
)
LONG = "{\n" + "".join(f"    {key!r}: {value!r},  # {{\n" for key, value in FIELDS.items()) + "}"
ODD = "{\n" + "".join(f"    {key!r}: {value!r},\n" for key, value in FIELDS.items()) + "    # {}\n}"


def write(folder: Path, text: str, name: str = "kernel.py") -> Path:
    file = folder / name
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    "header", [repr(FIELDS), LONG, ODD], ids=["one line", "usual", "comment that looks like an end"]
)
def test_header_is_read_without_running_the_file(tmp_path: Path, header: str) -> None:
    mark = tmp_path / "mark"
    before = f"'''PROBE = {{}} is the header.'''\nopen({str(mark)!r}, 'w')\nraise SystemExit\n"
    write(tmp_path, f"{before}PROBE = {header}\nother = {{}}\n")
    write(tmp_path, "not Python at all", "_helper.py")
    write(tmp_path, "not Python at all", "readme.txt")
    assert all_probes(tmp_path) == (SPEC,)
    assert not mark.exists()


def test_all_fields(tmp_path: Path) -> None:
    write(tmp_path, f"PROBE = { ({**FIELDS, 'early': True, 'seconds': 0.5, 'seconds_per_gpu': 3})!r}\n")
    (spec,) = all_probes(tmp_path)
    assert (spec.early, spec.seconds, spec.seconds_per_gpu) == (True, 0.5, 3.0)


def test_probes_come_by_name(tmp_path: Path) -> None:
    for name in ("zeta.py", "alpha.py", "beta_2.py"):
        write(tmp_path, f"PROBE = {FIELDS!r}\n", name)
    assert [spec.name for spec in all_probes(tmp_path)] == ["alpha", "beta_2", "zeta"]


WRONG = {
    "no header": ("x = 1", "there is no assignment of a dict display to PROBE"),
    "in a function": (f"def f():\n    PROBE = {FIELDS!r}", "there is no assignment of a dict display to PROBE"),
    "computed": ("PROBE = dict(title='x')", "there is no assignment of a dict display to PROBE"),
    "not literal": ("PROBE = {'title': str(1)}", "it holds something that is not a literal"),
    "unpacked": ("PROBE = {**{}}", "it holds something that is not a literal"),
    "not Python": ("\nPROBE = {'title': 'x'", "'{' was never closed (line 2)"),
    "empty": ("PROBE = {}", "Object missing required field `title`"),
    "unknown field": (f"PROBE = { ({**FIELDS, 'speed': 1})!r}", "Object contains unknown field `speed`"),
    "own name": (f"PROBE = { ({**FIELDS, 'name': 'x'})!r}", "its name is the name of its file and cannot be set"),
    "kind": (f"PROBE = { ({**FIELDS, 'kind': 'net'})!r}", "Invalid enum value 'net' - at `$.kind`"),
    "scope": (f"PROBE = { ({**FIELDS, 'scopes': ['all']})!r}", "Invalid enum value 'all' - at `$.scopes[0]`"),
    "no scope": (f"PROBE = { ({**FIELDS, 'scopes': []})!r}", "Expected `array` of length >= 1 - at `$.scopes`"),
    "seconds": (f"PROBE = { ({**FIELDS, 'seconds': '5'})!r}", "Expected `float`, got `str` - at `$.seconds`"),
    "no time": (f"PROBE = { ({**FIELDS, 'seconds': 0})!r}", "Expected `float` > 0.0 - at `$.seconds`"),
    "fills": (f"PROBE = { ({**FIELDS, 'fills': ['gpu.name']})!r}", "no section of the Snapshot holds 'gpu.name'"),
    "early driver": (
        f"PROBE = { ({**FIELDS, 'kind': 'driver', 'early': True})!r}",
        "only a probe of kind 'file' can be early",
    ),
    "tries": (
        f"PROBE = { ({**FIELDS, 'kind': 'bench', 'tries': ['torch']})!r}",
        "only a probe that runs in an environment tries frameworks",
    ),
    "per": (f"PROBE = { ({**FIELDS, 'per': 'gpu'})!r}", "only a probe of kind 'bench' has the key 'per'"),
    "runs_in": (
        f"PROBE = { ({**FIELDS, 'runs_in': 'environment'})!r}",
        "only a probe of kind 'bench' has the key 'runs_in'",
    ),
    "key": ("PROBE = {1: 2}", "the key 1 is not text"),
}


@pytest.mark.parametrize("what", WRONG)
def test_malformed_header_is_one_sentence_with_the_file(tmp_path: Path, what: str) -> None:
    text, problem = WRONG[what]
    file = write(tmp_path, text)
    with pytest.raises(EnvcheckError) as caught:
        all_probes(tmp_path)
    assert str(caught.value) == f"the probe {file} has no usable header PROBE: {problem}"


def test_name_that_is_no_identifier(tmp_path: Path) -> None:
    write(tmp_path, f"PROBE = {FIELDS!r}", "kernel copy.py")
    with pytest.raises(EnvcheckError, match="the name of the file is not a Python identifier"):
        all_probes(tmp_path)


def test_file_that_cannot_be_decoded(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(EnvcheckError, match=r"kernel\.py has no usable header PROBE: 'utf-8' codec"):
        all_probes(tmp_path)
