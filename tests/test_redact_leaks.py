"""Reports and texts of others: nothing of names and secrets is left, and no pattern is slow."""

import ast
import json
import re
from pathlib import Path

import msgspec
import pytest

from envcheck.model.checks import Evidence, Report
from envcheck.model.snapshot import ObservedError, Variables
from envcheck.redact import redact
from envcheck.report import FORMATS, Options, render
from envcheck.report.saved import read_report
from tests.every import cases
from tests.syntax import tree
from tests.test_machines import report_on

USER, HOST, ADDRESS = "zedkayova", "gpu-prod-42", "10.77.31.9"
DOMAIN = f"{HOST}.dc1.corp.example"
UUID, SERIAL = "GPU-deadbeef-1234-5678-9abc-def012345678", "1654422007315"
MIG, ETHERNET, LOCAL = "MIG-aaaabbbb-cccc-dddd-eeee-ffff00001111", "de:ad:be:ef:12:34", "fd12:3456:789a::17"
PASSWORD = "S3cr3tPw_zz"
SECRETS = (
    "hf_QwErTyUiOpAsDfGhJkLz", PASSWORD, "sk-abcdefghij0123456789KLMN", "AKIAABCDEFGHIJKLMNOP", "wJalrXUtnFEMIK7MD",
)  # fmt: skip
NAMES = (USER, HOST, ADDRESS, UUID, UUID.removeprefix("GPU-"), SERIAL, MIG, ETHERNET, LOCAL)

SAID = (
    f"/home/{USER}/p/.venv/lib/python3.11/site-packages/torch/lib/libtorch.so: cannot open",
    f"/scratch/{USER}/run.log: failed",
    rf"C:\Users\{USER}\p failed",
    f"ssh {USER}@{DOMAIN} failed; ~{USER}/x; uid=1000({USER}) gid=1000; USER={USER} LOGNAME='{USER}' user: {USER}",
    f"NCCL WARN connect to {ADDRESS}<29500> failed; http://{ADDRESS}:8080/x; bind {LOCAL}; link {ETHERNET}",
    f"[{HOST}:12345] Error on {DOMAIN}",
    f"NVRM: Xid on {UUID} serial {SERIAL}, {UUID.removeprefix('GPU-')}, {MIG}",
    f"export HF_TOKEN={SECRETS[0]}; OPENAI_API_KEY='{SECRETS[2]}'; AWS {SECRETS[3]}",
    f"aws_secret_access_key = {SECRETS[4]}",
    f"--index-url https://{USER}:{PASSWORD}@index.corp.example/simple; mysql://root:{PASSWORD}@{ADDRESS}/db",
    f"Authorization: Basic {PASSWORD}; --password {PASSWORD}; PASSWORD: {PASSWORD}",
)
VARIABLES = {
    "MASTER_ADDR": HOST,
    "NCCL_COMM_ID": f"{ADDRESS}:1234",
    "KUBERNETES_SERVICE_HOST": ADDRESS,
    "SLURM_JOB_USER": USER,
    "USER": USER,
    "LD_LIBRARY_PATH": f"/home/{USER}/lib:/opt/x",
    "CUDA_VISIBLE_DEVICES": UUID,
    "HTTP_PROXY": f"http://{USER}:{PASSWORD}@{ADDRESS}:3128",
    "HF_TOKEN": SECRETS[0],
    "WANDB_API_KEY": SECRETS[4],
}


def telling() -> Report:
    """A recorded machine on which everything says who and where."""
    found = report_on("h200")
    snapshot = found.snapshot
    assert snapshot is not None
    assert snapshot.gpus is not None
    assert snapshot.platform is not None
    first = msgspec.structs.replace(snapshot.gpus.items[0], uuid=UUID, serial=SERIAL)
    snapshot = msgspec.structs.replace(
        snapshot,
        gpus=msgspec.structs.replace(snapshot.gpus, items=(first, *snapshot.gpus.items[1:])),
        platform=msgspec.structs.replace(snapshot.platform, host=DOMAIN),
        variables=Variables(source="process", values=VARIABLES, complete=True),
        observed_errors=tuple(ObservedError(source=f"file /home/{USER}/log", text=text) for text in SAID),
    )
    seen = tuple(Evidence(what="log", value=text) for text in SAID)
    return msgspec.structs.replace(
        found, host=DOMAIN, snapshot=snapshot, headline=SAID[3],
        checks=tuple(msgspec.structs.replace(check, evidence=seen, message=SAID[5]) for check in found.checks),
        probes=tuple(msgspec.structs.replace(run, detail=SAID[4], noise="\n".join(SAID)) for run in found.probes),
    )  # fmt: skip


@pytest.mark.parametrize("form", FORMATS)
@cases("asked", None, True)
def test_nothing_leaks(form: str, asked: bool | None) -> None:  # noqa: FBT001
    page = render(telling(), form, Options(verbose=True, redact=asked))
    hidden = (*SECRETS, *NAMES) if asked or FORMATS[form].shared else SECRETS
    assert [name for name in hidden if name in page] == []


def test_what_is_hidden_is_in_the_page_otherwise() -> None:
    """So that the test above can fail."""
    page = json.loads(render(telling(), "json"))
    assert [name for name in NAMES if name not in json.dumps(page, ensure_ascii=False).replace("\\\\", "\\")] == []


def test_a_redacted_report_that_is_read_and_redacted_again_stays_the_same() -> None:
    once = redact(telling())
    again = read_report(render(once, "json").encode())
    assert redact(again) == again == once


# --- Patterns for other people's text: none whose work grows with the square of empty lines -------------------------
ROOT = Path(__file__).resolve().parents[1]
ACROSS_LINES = re.compile(r"\^(?:\\s|\[[^\]]*(?:\\s|\\n)[^\]]*\])(?:[*+]|\{\d+,\})")
"""``^`` of every line, and at once what may run on over all following empty lines."""


@cases("folder", "probes", "envcheck")
def test_no_line_begins_with_what_crosses_lines(folder: str) -> None:
    """In any call of ``re`` that reads text line by line."""
    found = [
        f"{path.relative_to(ROOT)}:{call.lineno}: {written}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        if re.search(r"MULTILINE|\(\?m", path.read_text(encoding="utf-8"))
        for call in ast.walk(tree(path))
        if isinstance(call, ast.Call) and getattr(getattr(call.func, "value", None), "id", "") == "re"
        if re.search(r"MULTILINE|\(\?m", written := ast.unparse(call).replace(r"\\", "\\"))
        if ACROSS_LINES.search(written)
    ]
    assert not found


def test_such_a_pattern_is_seen() -> None:
    assert ACROSS_LINES.search(r"^\s*exec")
    assert ACROSS_LINES.search(r"^[\s>]*exec")
    assert not ACROSS_LINES.search(r"^[ \t]*exec\s*$")
