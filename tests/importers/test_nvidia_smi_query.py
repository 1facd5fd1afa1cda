"""``nvidia-smi`` in text: ``-q`` in the layouts of several drivers, its table, ``--version`` and ``-L``."""

import time

import msgspec
import pytest

from envcheck.importers import read_text
from envcheck.model.snapshot import Mig
from tests.importers.pasting import errors_in, gpus_in, recorded
from tests.known import fields, known

SOURCE = "pasted text"
WHOLE = recorded("constructed_smi_query.txt")


def test_the_text_says_what_the_xml_says() -> None:
    (of_xml,) = gpus_in(recorded("h200_smi.xml"))
    (of_text,) = gpus_in(WHOLE)
    # The text has no list of MIG devices where the mode is off.
    assert of_text == msgspec.structs.replace(of_xml, mig=Mig(source=SOURCE, enabled=False, pending=False))
    assert read_text(WHOLE).driver == read_text(recorded("h200_smi.xml")).driver
    assert errors_in(read_text(WHOLE)) == []
    assert [run.status for run in read_text(WHOLE).runs] == ["ok"]


def test_text_xml_and_table_of_one_machine_are_one_gpu() -> None:
    both = read_text(WHOLE + recorded("h200_smi.xml") + recorded("h200_smi.txt"))
    assert len(known(both.gpus).items) == 1
    assert both.disagreements == ()


def test_a_second_report_is_not_read_into_the_first() -> None:
    later = WHOLE.replace("33 C", "88 C")
    assert gpus_in(WHOLE + later) == gpus_in(WHOLE)
    assert gpus_in(WHOLE + later.partition("\n")[2]) == gpus_in(WHOLE)


def test_indentation_that_was_lost_costs_only_the_sections() -> None:
    expected = {"name": "NVIDIA H200", "uuid": "GPU-00000000-1111-2222-3333-444444444444", "minor": 0}
    (found,) = gpus_in("\n".join(line.strip() for line in WHOLE.splitlines()))
    assert fields(found, expected) == expected
    assert found.temperature is None


HOSTILE = (
    "A " * 500_000, "Section\n" * 100_000, "GPU 00000000:2D:00.0\n" * 50_000,
    "".join(f"GPU {number:08x}:2D:00.0\n" for number in range(50_000)), " " * 2000 + "A : 1\n" * 9999,
    "".join(f"{' ' * depth}Section\n" for depth in range(3000)), "    MIG Device\n" * 50_000,
)  # fmt: skip


@pytest.mark.parametrize("body", HOSTILE, ids=lambda body: repr(body[:30]))
def test_hostile_text_is_read_in_time(body: str) -> None:
    begun = time.monotonic()
    read_text(f"GPU 00000000:2D:00.0\n{body}")
    assert time.monotonic() - begun < 40


# --- nvidia-smi's table, ``--version`` and ``-L`` -------------------------------------------------------------------
def test_a_recorded_table_of_eight_gpus() -> None:
    listing = known(read_text(recorded("h200x8_smi.txt")).gpus)
    assert listing.complete
    assert [gpu.index for gpu in listing.items] == list(range(8))
    assert listing.items[7].pci_bus_id == "0000:00:0d.0"
    assert read_text(recorded("h200x8_smi.txt")).observed_errors == ()
