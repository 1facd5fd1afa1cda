"""Redaction: what goes, what stays, hosts and mail, and that the same name is always the same pseudonym."""

import itertools
import json
import time

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from envcheck.knowledge.load import load_matrix
from envcheck.model.checks import Evidence, Report
from envcheck.model.snapshot import (
    Distribution,
    Environment,
    Gpu,
    Library,
    Listing,
    ObservedError,
    Platform,
    ProbeRun,
    Snapshot,
    Variables,
)
from envcheck.redact import is_redacted, mask_secrets, redact
from envcheck.redact.secrets import masked, masked_value
from envcheck.report import FORMATS, Options, Pages, render
from envcheck.text.encode import encode
from tests.every import cases, every, every_tabled, tabled
from tests.known import known
from tests.report.examples import EXAMPLES, about, check, gpu, machine, report, torch_build
from tests.report.foreign import ATTACKS, carrying
from tests.test_machines import CONSTRUCTED, RECORDED, report_on
from tests.thorough import examples

UUID = "GPU-5818afbd-93e1-6488-ffb4-e55ad89d9abc"
MIG = "MIG-0d1e2f3a-1111-2222-3333-444455556666"


def saying(*texts: str, **snapshot: object) -> Report:
    """A report whose only check saw ``texts``."""
    seen = check("gpu-lost", "fail", evidence=tuple(Evidence(what="log", value=text) for text in texts))
    return report([seen], Snapshot(**snapshot), host="node17.corp.example")  # type: ignore[arg-type]


def told(found: Report) -> list[str]:
    return [evidence.value for evidence in found.checks[0].evidence]


def seen_after(text: str, *homes: str, **snapshot: object) -> str:
    return told(redact(saying(text, **snapshot), homes))[0]


@every_tabled
def test_users_go_by_the_place_of_their_homes(text: str, shown: str) -> None:
    assert seen_after(text) == shown


def test_a_home_elsewhere_is_known_when_it_is_named() -> None:
    assert seen_after("/data/ada/p and /srv/ada/q", "/data/ada") == "/home/user/p and /srv/user/q"
    assert seen_after("/data/ada/p") == "/data/ada/p"


def test_the_judged_environments_owner_is_the_first_user() -> None:
    judged = Environment(key="/home/zoe/.venv", judged=True)
    text = seen_after("/home/ada/x /home/zoe/y", environments=Listing(items=(judged,), complete=True))
    assert text == "/home/user2/x /home/user/y"


@every(
    (f"lost {UUID}", "lost GPU-redacted-93ff020b"),
    ("CUDA_VISIBLE_DEVICES=GPU-5818afbd", "CUDA_VISIBLE_DEVICES=GPU-redacted-93ff020b"), (MIG, "MIG-redacted-"),
    ("serial 1652826071615", "serial serial-93ff020b"),
    ("0000:1b:00.0 fell off the bus", "0000:1b:00.0 fell off the bus"), ("node17.corp.example: Xid", "host: Xid"),
    ("on node17, at 12:00", "on host, at 12:00"), ("node170", "node170"),
)  # fmt: skip
def test_gpus_and_hosts_go_and_bus_ids_stay(text: str, shown: str) -> None:
    found = Gpu(uuid=UUID, serial="1652826071615", pci_bus_id="0000:1b:00.0", index=0)
    assert seen_after(text, gpus=Listing(items=(found,), complete=True)).startswith(shown)


def test_a_host_that_is_a_common_word_goes_where_it_is_the_host_alone() -> None:
    hidden = redact(msgspec.structs.replace(saying("runs in a vm"), host="vm"))
    assert (hidden.host, told(hidden)) == ("host", ["runs in a vm"])
    odd = redact(msgspec.structs.replace(EXAMPLES["healthy"](), host="torch"))
    assert odd.host == "host"
    assert "torch 2.11.0+cu130" in render(odd, "text")


@every_tabled
def test_addresses_go_and_versions_stay(text: str, shown: str) -> None:
    assert seen_after(text) == shown


def test_what_programs_print_holds_addresses_and_installed_versions_are_none() -> None:
    library = Library(path="/x/libcurand.so", family="curand", declared="10.3.5.147")
    package = Distribution(name="nvidia-curand-cu12", version="10.3.5.147")
    snapshot = {
        "libraries": Listing(items=(library,), complete=True),
        "environments": Listing(items=(Environment(key="/e", distributions=(package,)),), complete=True),
        "observed_errors": (ObservedError(text="no route 10.0.0.9, curand 10.3.5.147"),),
        "variables": Variables(values={"NCCL_COMM_ID": "10.0.0.9:1", "MASTER_ADDR": "gpu-a"}, complete=True),
    }
    hidden = redact(saying("10.0.0.9 again, 10.3.5.147", **snapshot))
    assert told(hidden) == ["ip-1 again, 10.3.5.147"]
    assert hidden.snapshot is not None
    assert hidden.snapshot.observed_errors[0].text == "no route ip-1, curand 10.3.5.147"
    assert known(hidden.snapshot.variables).values == {"NCCL_COMM_ID": "ip-1:1", "MASTER_ADDR": "host"}


def test_a_host_that_a_variable_names_is_hidden_in_its_finding_too() -> None:
    shown = (Evidence(what="log", value="no file has the host 'zugspitze'"), Evidence("NCCL_COMM_ID", "zugspitze:2950"))
    given = report([check("network-name-unknown", "warn", evidence=shown)], Snapshot(), host="node17.corp.example")
    assert told(redact(given)) == ["no file has the host 'host-1'", "host:2950"]


SECRET_TEXTS = (
    ("HF_TOKEN=hf_abc", "HF_TOKEN=***"), ("export WANDB_API_KEY='abc def'", "export WANDB_API_KEY='***'"),
    ('{"password": "hunter2"}', '{"password": "***"}'), ("login --token abc", "login --token ***"),
    ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
    ("https://ada:hunter2@x.example/simple", "https://***@x.example/simple"),
    ("--index-url=https://tok@x.example", "--index-url=https://***@x.example"), ("hf_abcdefghijklmnopqrst", "***"),
    ("ghp_abcdefghijklmnopqrstuv in a line", "*** in a line"), ("eyJhbGciOiJI.eyJzdWIiOiIx.abcdefghij", "***"),
    ("TOKENIZERS_PARALLELISM=false", "TOKENIZERS_PARALLELISM=false"),
    ("keyboard = x, monkey: y, https://docs.nvidia.com/a@b", "keyboard = x, monkey: y, https://docs.nvidia.com/a@b"),
    ("https://docs.nvidia.com/cuda/", "https://docs.nvidia.com/cuda/"),
)  # fmt: skip


@every(SECRET_TEXTS)
def test_secrets_in_texts(text: str, shown: str) -> None:
    assert masked(text) == shown


@cases("name", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "API_KEY", "DB_PASSWORD", "MY_PASSWD", "PGPW_PW")
def test_variables_with_telling_names(name: str) -> None:
    assert masked_value(name, "x") == "***"


@cases("name", "PATH", "NCCL_IB_PKEY", "TOKENIZERS_PARALLELISM", "KEYBOARD", "CUDA_VISIBLE_DEVICES")
def test_variables_that_tell_nothing(name: str) -> None:
    assert masked_value(name, "0") == "0"


SECRET = "correct-horse-battery"


@every(itertools.product(FORMATS, [None, False, True]))
def test_no_format_lets_a_secret_out(form: str, redacted: bool | None) -> None:  # noqa: FBT001
    values = {"HF_TOKEN": SECRET, "PIP_INDEX_URL": f"https://ada:{SECRET}@x.example"}
    run = ProbeRun(name="nvml", status="failed", detail=f"DB_PASSWORD={SECRET}", noise=f"--token {SECRET}")
    base = saying(f"API_KEY={SECRET}", variables=Variables(values=values, complete=True), platform=Platform())
    found = msgspec.structs.replace(base, probes=(run,), headline=f"password: {SECRET}")
    assert SECRET not in render(found, form, Options(redact=redacted, verbose=True))


def test_shared_formats_hide_names_and_machine_formats_do_not() -> None:
    found = EXAMPLES["driver-too-old"]()
    for form in FORMATS:
        shown = "/home/ada" in render(found, form, Options(verbose=True))
        tells_places = form not in ("nagios", "node-problem-detector", "slurm-reason")  # a line that names no place
        assert shown == (tells_places and not FORMATS[form].shared), form
        assert "/home/ada" not in render(found, form, Options(redact=True))


def test_formats_of_one_report_are_as_each_alone_and_redact_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = EXAMPLES["driver-too-old"]()
    ways = list(
        itertools.product(FORMATS, [Options(), Options(redact=True, homes=("/srv/ada",)), Options(redact=False)])
    )
    alone = [render(found, form, options) for form, options in ways]
    made: list[tuple[str, ...]] = []

    def counted(report: Report, homes: tuple[str, ...]) -> Report:
        made.append(homes)
        return redact(report, homes)

    monkeypatch.setattr("envcheck.redact.redact", counted)
    pages = Pages(found)
    assert [pages.render(form, options) for form, options in ways] == alone
    assert sorted(made) == [(), ("/srv/ada",)]


SECRETS = [text for text, shown in SECRET_TEXTS if text != shown]


@given(st.lists(st.tuples(st.sampled_from(SECRETS), st.text(max_size=9), st.integers(0, 299)), max_size=5))
@settings(max_examples=examples(60))
def test_among_many_records_none_is_passed_over(hidden: list[tuple[str, str, int]]) -> None:
    """Most are asked about together; a secret in any of them, in whatever text, goes as it would alone."""
    texts = [f"/env/lib/{number}.dist-info" for number in range(300)]
    for secret, before, place in hidden:
        texts[place] = f"{before} {secret}"
    errors = tuple(ObservedError(source="pasted text", text=text, line=None) for text in texts)
    shown = mask_secrets(saying("", observed_errors=errors)).snapshot
    assert [error.text for error in known(shown).observed_errors] == [masked(text) for text in texts]


def test_names_of_secrets_count_among_many_records() -> None:
    for name, value in (("DB_PW", "a"), ("SENTRY_DSN", "b"), ("MY_KEY", "c"), ("BASIC_AUTH", "d")):
        errors = [ObservedError(source="log", text="fine", read={"text": "log"}) for _ in range(40)]
        errors[17] = ObservedError(source="log", text="fine", read={name: value})
        shown = mask_secrets(saying("", observed_errors=tuple(errors))).snapshot
        assert known(shown).observed_errors[17].read == {name: "***"}


def test_a_report_without_secrets_is_left_as_it_is() -> None:
    for name in (*RECORDED, *(f"constructed/{name}" for name in CONSTRUCTED)):
        found = report_on(name)
        assert mask_secrets(found) is found, name


@every(EXAMPLES)
def test_redacting_twice_changes_nothing_and_the_result_is_a_report(name: str) -> None:
    once = redact(EXAMPLES[name]())
    assert redact(once) == once
    assert is_redacted(once)
    assert msgspec.json.decode(encode(once), type=Report) == once


def test_the_same_machine_gets_the_same_pseudonyms_in_every_report() -> None:
    first, second = gpu(0, uuid=UUID, serial="1652826071615"), gpu(1, uuid=UUID.replace("5818", "9999"))
    one = redact(report([check("gpu-lost", "fail", subject=about(first))], machine((first, second), torch_build())))
    two = redact(report([], machine((second, first), None), host="elsewhere-2"))
    assert one.snapshot is not None
    assert one.snapshot.gpus is not None
    assert two.snapshot is not None
    assert two.snapshot.gpus is not None
    assert [gpu.uuid for gpu in one.snapshot.gpus.items] == [gpu.uuid for gpu in reversed(two.snapshot.gpus.items)]
    assert one.checks[0].subject.uuid == one.snapshot.gpus.items[0].uuid


def test_ids_stay_joined() -> None:
    hidden = redact(EXAMPLES["driver-too-old"]())
    identities = {found.id for found in hidden.checks}
    assert hidden.primary_check in identities
    assert {found.explained_by for found in hidden.checks if found.explained_by} <= identities


@every(ATTACKS)
def test_hostile_texts_can_be_redacted(attack: str) -> None:
    json.loads(encode(redact(carrying(EXAMPLES["driver-too-old"](), attack), ["/data/" + attack.replace("/", "")])))


@settings(max_examples=60)
@given(st.text(max_size=40), st.text(min_size=1, max_size=12))
def test_any_host_user_and_text(text: str, name: str) -> None:
    once = redact(msgspec.structs.replace(saying(text, f"/home/{name}/x"), host=name), [f"/data/{name}"])
    assert redact(once) == once


@every("x", "TOKEN", "key", "/home/", "://", "1.", "a:", "/Users/a ", "GPU-")
def test_long_texts_cost_no_more_than_their_length(part: str) -> None:
    """Seconds would mean that a pattern runs over the text again and again."""
    text = part * (100_000 // len(part))
    started = time.monotonic()
    redact(saying(text, f"token {text}"))
    assert time.monotonic() - started < 25


# --- Other machines, mail -------------------------------------------------------------------------------------------
@every_tabled
def test_other_machines_and_mail(text: str, shown: str) -> None:
    assert seen_after(text) == shown


def test_the_index_that_everybody_installs_from_is_no_secret() -> None:
    addresses = [source.address for source in load_matrix().sources.values()]
    (index,) = {address.split()[0].lower() for address in addresses if "/" not in address}
    public = f"Looking in indexes: https://{index}.org/simple, https://files.{index}.org/x"
    assert seen_after(public) == public
    for private in (f"{index}.corp", f"{index}.corp.example", f"{index}.local", f"{index}.org.corp.example", index):
        assert seen_after(f"https://{private}/simple") == "https://host-1/simple"


@every(
    *("aa:bb:cc:dd:ee:ff", "AA-BB-CC-DD-EE-FF", "aabb.ccdd.eeff", "b8:ce:f6:03:00:f1:a2:b4", "b8-ce-f6-03-00-f1"),
    *(
        "::ffff:10.1.2.3", "::ffff:0a01:0203", "64:ff9b::10.1.2.3", "fe80::1a2b:3c4d%eth0", "febf::1%25ib0",
        "fd12:3456::17",
    ),
)  # fmt: skip
def test_addresses_in_all_spellings(address: str) -> None:
    assert seen_after(f"on {address} now") == "on ip-1 now"
    assert seen_after(f"http://[{address}]:80/") == "http://[ip-1]:80/" if "%" in address else True


@cases("text", "mac=aabbccddeeff", "ether: AABBCCDDEEFF", "node_guid: 0x9c63c00300f1a2b4", "hwaddr aabbccddeeff")
def test_a_hardware_address_without_signs_between(text: str) -> None:
    assert "ip-1" in seen_after(text)


@tabled
def test_what_diagnoses_stays(text: str) -> None:
    assert seen_after(text) == text


def test_a_report_about_nobody_names_no_other_host() -> None:
    """What envcheck itself says cites public pages only."""
    for name in (*RECORDED, *(f"constructed/{name}" for name in CONSTRUCTED)):
        hidden = redact(report_on(name))
        told = [fix.command or "" for check in hidden.checks for fix in check.fixes]
        told += [source.address for check in hidden.checks for source in check.sources]
        assert not [text for text in told if "host-1" in text], name


_PIECES = (
    "ada", "node3", "@", ":", "~/", " ", "[", "]$", "http://", "corp.example", "host-1", "ip-1", "\n", "ssh ", "user",
    ".", "/", "-7",
)  # fmt: skip


@settings(max_examples=examples(300))
@given(st.lists(st.sampled_from(_PIECES), max_size=9).map("".join))
@example("http://http://@ada@")
def test_redacting_twice_changes_nothing(text: str) -> None:
    once = redact(saying(text))
    assert told(redact(once)) == told(once)


def test_the_examples_stay_joined() -> None:
    for make in EXAMPLES.values():
        hidden = redact(make())
        assert {check.id for check in hidden.checks} >= {hidden.primary_check} - {None}
