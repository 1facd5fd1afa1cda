"""What looks like a secret, and every place of a report that may hold one."""

import types
from pathlib import Path
from time import process_time
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envcheck.cli.main import main
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.tables.messages import SecretRow
from envcheck.model.checks import Report
from envcheck.model.snapshot import ObservedError, Snapshot, Variables
from envcheck.redact import mask_secrets, redact
from envcheck.redact.secrets import MASK, masked, masked_value
from envcheck.report.saved import read_report
from tests import thorough
from tests.every import cases, every, every_tabled
from tests.report.examples import report

S = "Zq9xW7vT3kLm"  # A secret without any shape of its own


@every_tabled
def test_names_that_tell(name: str) -> None:
    assert masked_value(name, "x") == MASK
    assert S not in masked(f"export {name}={S}; done")


@every_tabled
def test_names_that_tell_nothing(name: str) -> None:
    assert masked_value(name, "/a/b") == "/a/b"
    assert masked(f"{name}=/a/b") == f"{name}=/a/b"


@every_tabled
def test_values_that_go(text: str) -> None:
    _assert_gone(text.replace("SECRET", S))


@every(f"read: {(S * 6)[:64]}, then", f"{(S * 6)[:64]}\n{(S + '/+') * 5}", f'"{(S * 6)[:70]}"')
def test_long_values_that_go(text: str) -> None:
    _assert_gone(text)


def _assert_gone(text: str) -> None:
    once = masked(text)
    assert S not in once
    safe = mask_secrets(report([], Snapshot(observed_errors=(ObservedError(text=text, source="x"),))))
    assert S not in msgspec.json.encode(safe).decode()
    assert MASK in once
    assert masked(once) == once


@every_tabled
def test_what_diagnoses_stays(text: str) -> None:
    assert masked(text) == text


@every("a", "token", "TOKEN_", "pwd=", "password is ", "eyJaaaaaaaa-", "eyJaaaaaaaa.", "setenv TOKEN", "%3D",
        "%3Atoken", "a%3A%2F%2Fb", "login ", "wandb login -a ", "api key ", "key=", "sk-", "http://a:", "mysql -p ",
        "{", "key is ", "mot de ", "密码", " -u a ", "cookie ")  # fmt: skip
def test_cost_grows_with_the_length(unit: str) -> None:
    """Eight times the text takes at most about eight times as long; a square would take 64 times."""

    def cost(length: int) -> float:
        text = "password=x " + unit * (length // len(unit))
        took = []
        for _ in range(2):
            began = process_time()
            masked(text)
            took.append(process_time() - began)
        return min(took)

    assert cost(24_000) < 24 * max(cost(3_000), 0.002), unit


_LETTERS = {"letters": "aB3", "capitals": "AB3", "word": "a-B3", "dotted": "aB3.", "base64": "aB3+"}


@every(load_matrix().secrets)
def test_every_key_of_the_matrix(row: SecretRow) -> None:
    for start in row.starts:
        key = start + (_LETTERS[row.of] * 200)[: row.least] + "aB3"
        assert masked(f"said {key}, then") in (f"said {MASK}, then", f"said {MASK}aB3, then"), start
        assert masked(start) == start


@given(st.text(alphabet="akeyPT_=:-\"' u/@.p", max_size=60))
def test_masking_twice_changes_nothing(text: str) -> None:
    assert masked(masked(text)) == masked(text)


def test_saved_reports_are_compared_without_their_secrets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in (1, 2):
        values = {"CUDA_CACHE_PATH": f"https://ada:{S}{number}@x.example", "NVIDIA_API_KEY": f"{S}{number}"}
        found = report([], Snapshot(variables=Variables(values=values, complete=True)))
        (tmp_path / f"{number}.json").write_bytes(msgspec.json.encode(found))
    files = [str(tmp_path / f"{number}.json") for number in (1, 2)]
    for form in ("text", "json"):
        main(["diff", *files, "--format", form])
        assert S not in capsys.readouterr().out


# --- Every place of a report that holds text, and every shape of a secret: nothing of it is left --------------------
UUID = "ab-12345678-9abc-4def-8123-456789abcdef"
SHAPES = [
    f"https://ada:{S}@host", f"https://ada:{S}/a@ss@host/path", f"https://ada:p/a@{S}@host/path",
    f"https://ada:a/b@c/d@{S}@index.example/simple", f"https://ada:p@/{S}@host:8080/simple",
    f"https://ada@corp.example:{S}/x@y@host/path", f"torch @ git+https://ada:{S}/e@c@git.example/o/r.git@main",
    f"https://conda.anaconda.org/t/{S}/channel", f"https://repo.example/conda/t/{S}/main/linux-64",
    f"https://conda.anaconda.org/t/{S}/", f"https://conda.anaconda.org/t/{S}", f"conda.anaconda.org/t/tk-{S}/pkgs/main",
    f"https://x.example/t/{UUID}", f"HF_TOKEN={S}", f"Authorization: Bearer {S}", f"2.5.1+hf_{S}{S}",
    *(f"{row.starts[0]}{('aB3' if row.of != 'capitals' else 'AB3') * 40}"[:200] for row in load_matrix().secrets),
]  # fmt: skip


def sample(hint: Any, text: str) -> Any:
    """A value of the type that says ``text`` wherever it may say anything."""
    if get_origin(hint) is Literal:
        return get_args(hint)[-1]
    arguments = [each for each in get_args(hint) if each not in (type(None), Ellipsis)]
    if get_origin(hint) in (Union, types.UnionType):
        return sample(arguments[0], text)
    if get_origin(hint) is tuple:
        return tuple(sample(each, text) for each in arguments)
    if get_origin(hint) is dict:
        return {sample(arguments[0], text): sample(arguments[1], text)}
    if hint is str:
        return text
    if hint in (int, float, bool):
        return 1 if hint is not bool else True
    kind = get_origin(hint) or hint
    parameters: dict[Any, Any] = dict(zip(getattr(kind, "__parameters__", []), arguments, strict=False))
    fields = {name: parameters.get(each, each) for name, each in get_type_hints(kind).items()}
    own = {field.name for field in msgspec.structs.fields(kind)}
    filled = {
        name: sample(_bound(each, parameters), text)
        for name, each in fields.items()
        if name in own and not (kind is Report and name == "schema_version")
    }
    return kind(**filled)


def _bound(hint: Any, parameters: dict[Any, Any]) -> Any:
    """``tuple[T, ...]`` with what ``T`` is."""
    return hint[tuple(parameters.values())] if parameters and getattr(hint, "__parameters__", []) else hint


def said(text: str) -> Report:
    report: Report = sample(Report, text)
    return report


def test_the_sample_says_it_in_every_kind_of_place() -> None:
    """So that the tests below can fail."""
    told = msgspec.json.encode(said("needle")).decode()
    for place in (
        '"version":"needle"',
        '"rule":"needle"',
        '"installer":"needle"',
        '{"needle":"needle"}',
        '"unit":"needle"',
    ):
        assert place in told


@every(lambda: [(mask_secrets, text) for text in SHAPES] + [(redact, text) for text in thorough.sample(SHAPES)])
def test_no_place_keeps_a_secret(change: Any, text: str) -> None:
    told = msgspec.json.encode(change(said(text))).decode()
    assert MASK in told
    assert S not in told
    assert UUID not in told
    assert text not in told


def test_a_saved_report_is_masked_alike() -> None:
    encoded = msgspec.json.encode(said(f"https://ada:{S}@host"))
    assert S not in msgspec.json.encode(mask_secrets(read_report(encoded))).decode()


_PASSWORD = st.text(alphabet="aZ9/@-_!", min_size=1, max_size=12)


@given(_PASSWORD, _PASSWORD, st.sampled_from(["index.example", "localhost", "10.1.2.3", "host"]))
def test_a_password_may_hold_slashes_and_at_signs(before: str, after: str, host: str) -> None:
    assert S not in masked(f"https://ada:{before}{S}{after}@{host}:8080/simple")


@cases(
    "text",
    "https://forums.developer.nvidia.com/t/jetpack-6-1-install-pytorch-2-5-1/318629",
    "https://discuss.pytorch.org/t/a-topic/1234/7, and more",
    "https://discuss.pytorch.org/t/install-cuda-12-4-on-ubuntu-22-04",
    "/mnt/t/data/torch",
    "https://repo.example/x/y/t",
)
def test_a_topic_of_a_forum_and_a_folder_stay(text: str) -> None:
    assert masked(text) == text


def test_a_reference_behind_a_login_stays() -> None:
    assert masked(f"git+https://ada:{S}@git.example/o/r.git@v1.2") == f"git+https://{MASK}@git.example/o/r.git@v1.2"
