"""``nvidia-smi -q`` in text: constructed in the layouts of several drivers; what the XML of a real machine says."""

from __future__ import annotations

import time

import msgspec
import pytest

from envcheck.importers import read_text
from envcheck.snapshot import Driver, Ecc, Gpu, Mig, Pcie, Power, Process, RowRemap, Temperature, Throttle
from tests.importers.pasting import errors_in, gpus_in, recorded

SOURCE = "pasted text"
MIB = 1024 * 1024
WHOLE = recorded("constructed_smi_query.txt")


def one(body: str, head: str = "") -> Gpu:
    (found,) = gpus_in(f"{head}GPU 00000000:2D:00.0\n{body}")
    return found


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
    assert both.gpus is not None
    assert len(both.gpus.items) == 1
    assert both.disagreements == ()


def test_a_section_alone() -> None:
    text = (
        "$ nvidia-smi -q -d TEMPERATURE\n"
        "Driver Version                            : 465.27\n"
        "CUDA Version                              : 11.3\n"
        "GPU 00000000:2D:00.0\n"
        "    Temperature\n"
        "        GPU Current Temp                  : 56 C\n"
        "        GPU Shutdown Temp                 : 102 C\n"
        "        GPU Slowdown Temp                 : 97 C\n"
        "        GPU Max Operating Temp            : 57 C\n"
        "        GPU Target Temperature            : N/A\n"
    )
    snapshot = read_text(text)
    assert snapshot.driver == Driver(source=SOURCE, installed=True, release="465.27", cuda="11.3")
    assert gpus_in(text) == (
        Gpu(
            source=SOURCE,
            pci_bus_id="0000:2d:00.0",
            temperature=Temperature(source=SOURCE, gpu=56, slowdown=97, shutdown=102, gpu_max=57),
        ),
    )
    assert snapshot.gpus is not None
    assert not snapshot.gpus.complete


def test_older_names() -> None:
    found = one(
        "    Clocks Throttle Reasons\n"
        "        Idle                        : Not Active\n"
        "        SW Power Cap                : Active\n"
        "        HW Slowdown                 : Active\n"
        "            HW Thermal Slowdown     : Active\n"
        "            HW Power Brake Slowdown : Not Active\n"
        "        Unknown                     : Active\n"
        "    Power Readings\n"
        "        Power Draw                  : 249.43 W\n"
        "        Power Limit                 : 250.00 W\n"
        "        Default Power Limit         : 250.00 W\n"
        "        Enforced Power Limit        : 250.00 W\n"
        "    GPU Reset Status\n"
        "        Reset Required              : Yes\n"
        "        Drain and Reset Recommended : No\n"
        "    Ecc Errors\n"
        "        Volatile\n"
        "            Double Bit\n"
        "                Device Memory       : 2\n"
        "                Total               : 3\n"
        "    Retired Pages\n"
        "        Single Bit ECC              : 1\n"
        "        Double Bit ECC              : 2\n"
        "        Pending                     : Yes\n"
    )
    assert found.throttle == Throttle(source=SOURCE, reasons=("sw_power_cap", "hw_slowdown", "hw_thermal_slowdown"))
    assert found.power == Power(source=SOURCE, draw=249.43, limit=250, limit_default=250)
    assert found.recovery_action == "gpu_reset"
    assert found.ecc == Ecc(source=SOURCE, volatile_uncorrected=3, retired_pages=3, retirement_pending=True)


def test_link_widths_and_remapped_rows() -> None:
    found = one(
        "    PCI\n"
        "        GPU Link Info\n"
        "            PCIe Generation\n"
        "                Max                 : 4\n"
        "                Current             : 1\n"
        "            Link Width\n"
        "                Max                 : 16x\n"
        "                Current             : 4x\n"
        "    Remapped Rows\n"
        "        Correctable Error           : 0\n"
        "        Uncorrectable Error         : 2\n"
        "        Pending                     : Yes\n"
        "        Remapping Failure Occurred  : No\n"
    )
    assert found.pcie == Pcie(source=SOURCE, generation=1, generation_max=4, width=4, width_max=16)
    assert found.row_remap == RowRemap(source=SOURCE, corrected=0, uncorrected=2, pending=True, failed=False)


def test_what_a_gpu_does_not_have() -> None:
    found = one("    Fan Speed   : N/A\n    Remapped Rows   : N/A\n    MIG Mode\n        Current  : N/A\n")
    assert found.not_supported == ("fan", "mig", "row_remap")


def test_processes_each_with_its_own_lines() -> None:
    found = one(
        "    Processes\n"
        "        GPU instance ID             : N/A\n"
        "        Process ID                  : 1700\n"
        "            Type                    : G\n"
        "            Name                    : /usr/lib/xorg/Xorg --flag=1 : 2\n"
        "            Used GPU Memory         : 47 MiB\n"
        "        GPU instance ID             : N/A\n"
        "        Process ID                  : 2042\n"
        "            Type                    : C\n"
        "            Used GPU Memory         : 159 MiB\n"
    )
    assert found.processes == (
        Process(source=SOURCE, pid=1700, kind="graphics", memory=47 * MIB),
        Process(source=SOURCE, pid=2042, kind="compute", memory=159 * MIB),
    )


@pytest.mark.parametrize(
    ("devices", "count"),
    [
        ("    MIG Devices   : None\n", 0),
        ("    MIG Device\n        Index   : 0\n    MIG Device\n        Index   : 1\n", 2),
    ],
)
def test_mig_devices(devices: str, count: int) -> None:
    found = one(f"    MIG Mode\n        Current   : Enabled\n        Pending   : Enabled\n{devices}")
    assert found.mig is not None
    assert found.mig.enabled
    assert found.mig.instances is not None
    assert len(found.mig.instances) == count


def test_two_gpus_and_what_stands_around_them() -> None:
    text = (
        "Attached GPUs          : 2\n"
        "GPU 00000000:3B:00.0\n    Product Name    : Tesla T4\n"
        "GPU 00000000:AF:00.0\n    Product Name    : Tesla V100\n"
        "PyTorch version: 2.4.0+cu121\n"
        "    Product Name    : of nobody\n"
    )
    assert [(gpu.index, gpu.pci_bus_id, gpu.name) for gpu in gpus_in(text)] == [
        (0, "0000:3b:00.0", "Tesla T4"),
        (1, "0000:af:00.0", "Tesla V100"),
    ]


def test_a_second_report_is_not_read_into_the_first() -> None:
    later = WHOLE.replace("33 C", "88 C")
    assert gpus_in(WHOLE + later) == gpus_in(WHOLE)
    assert gpus_in(WHOLE + later.partition("\n")[2]) == gpus_in(WHOLE)


def test_indentation_that_was_lost_costs_only_the_sections() -> None:
    flat = "\n".join(line.strip() for line in WHOLE.splitlines())
    (found,) = gpus_in(flat)
    assert (found.name, found.uuid, found.minor) == ("NVIDIA H200", "GPU-00000000-1111-2222-3333-444444444444", 0)
    assert found.temperature is None


HOSTILE = (
    "A " * 500_000,
    "Section\n" * 100_000,
    "GPU 00000000:2D:00.0\n" * 50_000,
    "".join(f"GPU {number:08x}:2D:00.0\n" for number in range(50_000)),
    " " * 2000 + "A : 1\n" * 9999,
    "".join(f"{' ' * depth}Section\n" for depth in range(3000)),
    "    MIG Device\n" * 50_000,
)


@pytest.mark.parametrize("body", HOSTILE, ids=lambda body: repr(body[:30]))
def test_hostile_text_is_read_in_time(body: str) -> None:
    begun = time.monotonic()
    read_text(f"GPU 00000000:2D:00.0\n{body}")
    assert time.monotonic() - begun < 40
