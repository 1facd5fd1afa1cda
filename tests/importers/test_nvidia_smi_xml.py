"""``nvidia-smi -q -x``: a recorded report, constructed ones of other formats, and documents that mean harm."""

import time

import pytest

from envcheck.errors import UsageError
from envcheck.importers import read_text
from envcheck.model import snapshot as facts
from envcheck.model.snapshot import Driver, Ecc, Gpu, GpuFabric, Memory, Mig, Power, Temperature
from tests.every import cases
from tests.importers.pasting import gpus_in, recorded, told
from tests.known import known

SMI = recorded("h200_smi.xml")
MIB = 1024 * 1024
SOURCE = "pasted text"


def smi(*gpus: str, attached: int | None = None, head: str = "") -> str:
    """A constructed report."""
    count = len(gpus) if attached is None else attached
    body = "".join(gpus)
    return (
        '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n'
        f"<nvidia_smi_log><driver_version>535.104.12</driver_version>{head}<attached_gpus>{count}</attached_gpus>"
        f"{body}</nvidia_smi_log>\n"
    )


def gpu(inner: str, bus: str = "00000000:3B:00.0") -> str:
    return f'<gpu id="{bus}"><pci><pci_bus_id>{bus}</pci_bus_id></pci>{inner}</gpu>'


# --- a real report ------------------------------------------------------------------------------------------------
def test_every_field_of_a_recorded_gpu() -> None:
    seconds = ("sw_power_cap", "sync_boost", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")
    assert gpus_in(SMI) == (
        Gpu(
            source=SOURCE, pci_bus_id="0000:00:06.0", uuid="GPU-00000000-1111-2222-3333-444444444444", label="pasted-0",
            index=0, minor=0, name="NVIDIA H200", brand="nvidia", architecture="hopper", pci_device_id="10de:2335",
            pci_subsystem_id="10de:18bf", serial="1650000012345", vbios="96.00.A5.00.1A",
            part_number="692-2G520-0282-000", gsp_firmware="580.159.04", performance_state="P0",
            compute_mode="default", persistence_mode=True, virtualization="passthrough", recovery_action="none",
            addressing_mode="none",
            memory=Memory(source=SOURCE, total=143771 * MIB, reserved=616 * MIB, used=0, free=143156 * MIB),
            bar1=Memory(source=SOURCE, total=262144 * MIB, used=MIB, free=262143 * MIB),
            ecc=Ecc(
                source=SOURCE, enabled=True, pending=True, volatile_corrected=0, volatile_uncorrected=0,
                aggregate_corrected=0, aggregate_uncorrected=0,
            ),
            row_remap=facts.RowRemap(source=SOURCE, corrected=0, uncorrected=0, pending=False, failed=False),
            mig=Mig(source=SOURCE, enabled=False, pending=False, instances=()),
            clocks=facts.Clocks(
                source=SOURCE, sm=435e6, sm_max=1980e6, memory=3201e6, memory_max=3201e6, sm_application=1980e6,
                sm_application_default=1980e6,
            ),
            power=Power(source=SOURCE, draw=92.82, limit=700, limit_default=700, limit_min=200, limit_max=700),
            temperature=Temperature(source=SOURCE, gpu=33, memory=33),
            throttle=facts.Throttle(source=SOURCE, reasons=("gpu_idle",), seconds=dict.fromkeys(seconds, 0)),
            pcie=facts.Pcie(
                source=SOURCE, generation=5, generation_max=5, generation_device_max=5, width=16, width_max=16,
                replays=0,
            ),
            fabric=GpuFabric(source=SOURCE, state="not_supported"), utilisation=0, memory_utilisation=0, processes=(),
            not_supported=("ecc.retired_pages", "ecc.retirement_pending", "fan", "pcie.upstream_generation_max"),
        ),
    )  # fmt: skip


def test_the_driver_of_a_recorded_report() -> None:
    expected = {
        "driver": Driver(source=SOURCE, installed=True, release="580.159.04", cuda="13.0"),
        "gpus.complete": True,
        "observed_errors": (),
    }
    assert told(SMI, expected) == expected


def test_the_table_of_the_same_machine_agrees() -> None:
    """One paste that holds both reports: the same GPU, and nothing that is contradicted."""
    both = read_text(SMI + recorded("h200_smi.txt") + recorded("h200_collect_env.txt"))
    assert len(known(both.gpus).items) == 1
    assert both.disagreements == ()


def test_a_name_cannot_carry_terminal_codes() -> None:
    (found,) = gpus_in(smi(gpu("<product_name>NVIDIA &#x9b;31mL4&#x202e;\x1b]0;title\x07</product_name>")))
    assert found.name == "NVIDIA 31mL4"


# --- broken and hostile documents ---------------------------------------------------------------------------------
def test_what_stands_before_the_cut_is_read() -> None:
    whole = smi(gpu("<product_name>NVIDIA L4</product_name>"), gpu("<product_name>NVIDIA L40</product_name>"))
    expected = {
        "gpus.items.name": ("NVIDIA L4",), "gpus.complete": False, "runs.name": ("nvidia-smi -q -x",),
        "runs.status": ("failed",), "runs.detail": ("the document is cut off at line 3",),
    }  # fmt: skip
    assert told(whole[: whole.index("NVIDIA L40")], expected) == expected


def test_a_document_without_a_fact_is_not_recognised_and_the_message_says_what_it_was() -> None:
    with pytest.raises(UsageError, match=r"nvidia-smi -q -x: the document is cut off at line 1"):
        read_text("<nvidia_smi_log><driver_version>535")


BILLION_LAUGHS = (
    '<?xml version="1.0"?>\n<!DOCTYPE nvidia_smi_log [\n<!ENTITY a "ha">\n'
    + "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">\n' for n in range(12))
    + "]>\n<nvidia_smi_log><driver_version>535.104.12</driver_version><gpu><product_name>&m;</product_name></gpu>"
    "</nvidia_smi_log>"
)
EXTERNAL_ENTITY = (
    '<!DOCTYPE nvidia_smi_log [<!ENTITY file SYSTEM "file:///etc/passwd">]>\n<nvidia_smi_log>'
    "<driver_version>535.104.12</driver_version><gpu><product_name>&file;</product_name></gpu></nvidia_smi_log>"
)


@cases("text", BILLION_LAUGHS, EXTERNAL_ENTITY)
def test_no_entity_is_ever_expanded(text: str) -> None:
    started = time.monotonic()
    snapshot = read_text(text)
    assert time.monotonic() - started < 10
    assert (snapshot.driver, snapshot.gpus) == (Driver(source=SOURCE, installed=True, release="535.104.12"), None)
    assert "undefined entity" in snapshot.runs[0].detail


@cases("text", "<nvidia_smi_log>" + "<a>" * 1_000_000, "<nvidia_smi_log>" + "<a/>" * 1_000_000 + "</nvidia_smi_log>")
def test_deep_and_endless_documents_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="the document was refused"):
        read_text(text)


def test_an_empty_report_says_nothing() -> None:
    with pytest.raises(UsageError):
        read_text("<nvidia_smi_log></nvidia_smi_log>")
    assert read_text(smi()) != facts.Snapshot()
