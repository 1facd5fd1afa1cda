"""Other machines, mail, and hardware addresses in all spellings: gone from what is meant for others."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from envcheck.compat.load import load_matrix
from envcheck.redact import redact
from tests.every import cases, every
from tests.report.examples import EXAMPLES
from tests.test_machines import CONSTRUCTED, RECORDED, report_on
from tests.test_redact import saying, seen_after, told
from tests.thorough import examples


@every(
    ("https://nexus.corp.example:8443/simple/", "https://host-1:8443/simple/"),
    ("http://nexus/x and ssh://git@nexus/y", "http://host-1/x and ssh://***@host-1/y"),
    ("https://docs.nvidia.com/a https://github.com/a/b@main", "https://docs.nvidia.com/a https://github.com/a/b@main"),
    ("ada.l@corp.example wrote", "user@host-1 wrote"),
    ("ada@node3:~/x$ python", "user@host-1:~/x$ python"),
    ("[ada@node3 x]$ python", "[user@host-1 x]$ python"),
    ("root@c0ffee12ab34:/workspace# python", "root@host-1:/workspace# python"),
    ("scp x ada@node3:/y", "scp x user@host-1:/y"),
    ("ssh -p 22 ada@node3", "ssh -p 22 user@host-1"),
    ("node7:123:456 [0] NCCL INFO x; on node7 too", "host-1:123:456 [0] NCCL INFO x; on host-1 too"),
    ("[node7:01234] x", "[host-1:01234] x"),
    ("Nov  2 10:11:12 node7 kernel: NVRM: Xid", "Nov  2 10:11:12 host-1 kernel: NVRM: Xid"),
    ("2026-11-22T10:11:12.123+01:00 node7 kernel: x", "2026-11-22T10:11:12.123+01:00 host-1 kernel: x"),
    ("MASTER_ADDR=node7 x", "MASTER_ADDR=host-1 x"),
    ("cd ~ada/x", "cd ~user/x"),
    ("file:///opt/x", "file:///opt/x"),
    *((text, text) for text in ("cuda-init@machine memcpy@GLIBC_2.14", "a@@libcudart.so.12 numpy@1.26")),
    *((text, text) for text in ("pip~=24.0 /x/~orch/y @torch.jit", "name @ https://github.com/a")),
    ("[rank0:123] [0000:1b:00.0] x.py:12:34", "[rank0:123] [0000:1b:00.0] x.py:12:34"),
    ("http://localhost:8000/ http://127.0.0.1/", "http://localhost:8000/ http://127.0.0.1/"),
)
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
        "::ffff:10.1.2.3",
        "::ffff:0a01:0203",
        "64:ff9b::10.1.2.3",
        "fe80::1a2b:3c4d%eth0",
        "febf::1%25ib0",
        "fd12:3456::17",
    ),
)
def test_addresses_in_all_spellings(address: str) -> None:
    assert seen_after(f"on {address} now") == "on ip-1 now"
    assert seen_after(f"http://[{address}]:80/") == "http://[ip-1]:80/" if "%" in address else True


@cases("text", "mac=aabbccddeeff", "ether: AABBCCDDEEFF", "node_guid: 0x9c63c00300f1a2b4", "hwaddr aabbccddeeff")
def test_a_hardware_address_without_signs_between(text: str) -> None:
    assert "ip-1" in seen_after(text)


@cases("text",
    "0000:1b:00.0 00000000:1B:00.0", "sha256 9f86d081884c7d65", "2024-11-22-10-11-12 1234.5678.9012",
    "12:30:01 2.5.1.20241122",
    "uuid 5818afbd-93e1-6488-ffb4-e55ad89d9abc", "commit aabbccddeeff", "c10::Error at::native std::abc")  # fmt: skip
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
