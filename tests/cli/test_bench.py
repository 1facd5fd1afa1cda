"""``envcheck bench`` and ``check --bench`` as a user calls them, where there is no GPU."""

import json
from pathlib import Path

import msgspec
import pytest

from envcheck.collect.catalog import all_probes
from envcheck.report import render
from tests.cli.calling import envcheck, refused
from tests.every import cases
from tests.gpu.conftest import _why_not
from tests.report.examples import healthy
from tests.rules.speed.measurements import memory_copy

pytestmark = pytest.mark.skipif(_why_not() is None, reason="a GPU is here: tests/gpu tries it")


def test_without_a_gpu_nothing_is_judged(tmp_path: Path) -> None:
    result = envcheck("bench", cwd=tmp_path)
    assert result.status == 3
    assert result.out.startswith("UNKNOWN  no verdict: no matching CUDA GPU")
    assert result.err == ""


def test_the_report_is_written_all_the_same(tmp_path: Path) -> None:
    result = envcheck("bench", "--full", "--json", "-o", "speed:page.txt", cwd=tmp_path)
    report = json.loads(result.out)
    assert (report["verdict"], report["exit_code"], result.status) == ("unknown", 3, 3)
    benches = [run for run in report["probes"] if run["name"].startswith("bench.")]
    assert {run["status"] for run in benches} == {"skipped"}
    assert len(benches) == len([spec for spec in all_probes() if spec.kind == "bench"])
    assert (tmp_path / "page.txt").read_text().startswith("UNKNOWN")


@cases(
    "arguments, words", (("--quick", "--full"), "not allowed with"),
    (("--only", "frobnication"), "there is no quantity 'frobnication'; envcheck bench --list shows all"),
    (("--only", "gemm, device-memory-copy,frobnication"), "there is no quantity 'frobnication'"),
    (("--gpu", "zero"), "'zero' is not a list of GPU indices"),
    (("--timeout", "-1"), "not a number of seconds above 0"),
    (("--baseline", "missing.json"), "cannot read missing.json"), (("--fail-on", "note"), "invalid choice"),
    (("--frobnicate",), "--frobnicate"),
)  # fmt: skip
def test_bad_input_is_one_sentence(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    assert words in refused("bench", *arguments, cwd=tmp_path)


def test_a_bad_baseline_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text("{}")
    result = envcheck("bench", "--baseline", "old.json", cwd=tmp_path)
    assert result.status == 2
    assert "old.json is not a baseline" in result.err


def test_bad_folders_of_baselines_are_refused(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    found = envcheck("bench", "--baseline", "runs", cwd=tmp_path)
    assert (found.status, found.err) == (2, "envcheck: the folder runs holds no JSON file\n")
    (tmp_path / "runs" / "a.json").write_text("[]")
    assert "runs/a.json is not a baseline" in envcheck("bench", "--baseline", "runs", cwd=tmp_path).err
    for number in range(501):
        (tmp_path / "runs" / f"{number}.json").write_text("")
    assert "holds 502 JSON files; at most 500 are read" in envcheck("bench", "--baseline", "runs", cwd=tmp_path).err


def test_a_run_without_figures_is_left_out_of_a_folder_and_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "busy.json").write_text(render(healthy(), "json"))
    alone = envcheck("bench", "--baseline", "runs/busy.json", cwd=tmp_path)
    assert (alone.status, alone.err) == (
        2,
        "envcheck: runs/busy.json is not a baseline: it holds no figure to compare with\n",
    )
    none = envcheck("bench", "--baseline", "runs", cwd=tmp_path)
    assert none.status == 2
    assert none.err.endswith("envcheck: runs holds no figure to compare with\n")
    figures = msgspec.json.encode([memory_copy()]).decode()
    (tmp_path / "runs" / "base.json").write_text(f'{{"baseline_version": "1.0", "measurements": {figures}}}')
    found = envcheck("bench", "--baseline", "runs", cwd=tmp_path)
    assert found.status == 3
    assert "runs/busy.json is not a baseline: it holds no figure to compare with; it is left out" in found.err


def test_no_baseline_is_written_of_nothing(tmp_path: Path) -> None:
    result = envcheck("bench", "--save-baseline", "base.json", cwd=tmp_path)
    assert result.status == 2
    assert "no figure to compare with later" in result.err
    assert result.out.startswith("UNKNOWN")
    assert not (tmp_path / "base.json").exists()


def test_every_quantity_can_be_asked_for(tmp_path: Path) -> None:
    names = ("l2-read", "gemm", "copy-latency", "latency-device-memory", "fma", "peer-to-peer")
    assert envcheck("bench", *[word for name in names for word in ("--only", name)], cwd=tmp_path).status == 3


def test_a_saved_report_cannot_be_measured(tmp_path: Path) -> None:
    result = envcheck("check", "--bench", "--from", "saved.json", cwd=tmp_path)
    assert result.status == 2
    assert "--bench examines this machine" in result.err


def test_check_with_bench_says_why_nothing_was_measured(tmp_path: Path) -> None:
    report = json.loads(envcheck("check", "--bench", "--json", cwd=tmp_path).out)
    details = {run["detail"] for run in report["probes"] if run["name"].startswith("bench.")}
    assert details == {"no matching CUDA GPU found"}


def test_check_alone_measures_nothing(tmp_path: Path) -> None:
    report = json.loads(envcheck("check", "--json", cwd=tmp_path).out)
    details = {run["detail"] for run in report["probes"] if run["name"].startswith("bench.")}
    assert details == {"bench probes run only when they are asked for"}


def test_help_names_the_options(tmp_path: Path) -> None:
    page = envcheck("bench", "--help", cwd=tmp_path).out
    for option in ("--quick", "--full", "--gpu", "--only", "--force", "--baseline", "--save-baseline", "--timeout"):
        assert option in page
