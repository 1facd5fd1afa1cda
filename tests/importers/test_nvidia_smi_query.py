"""``nvidia-smi`` in text: ``-q`` in the layouts of several drivers, its table, ``--version`` and ``-L``."""

import time

import msgspec
import pytest

from envcheck.importers import read_text
from envcheck.model import snapshot as facts
from envcheck.model.snapshot import Driver, Ecc, Gpu, Memory, Mig, Pcie, Platform, Power, Process, Temperature
from tests.documents import texts
from tests.every import cases
from tests.importers.pasting import errors_in, gpus_in, recorded, told
from tests.known import Expected, fields, known

SOURCE = "pasted text"
MIB = 1024 * 1024
WHOLE = recorded("constructed_smi_query.txt")
SECTIONS = {name: f"{text}\n" for name, _, text in texts(recorded("constructed_smi_sections.txt"))}


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
    assert len(known(both.gpus).items) == 1
    assert both.disagreements == ()


@cases("about, body, expected",
    ("older names", SECTIONS["older names"],
     {"throttle": facts.Throttle(source=SOURCE, reasons=("sw_power_cap", "hw_slowdown", "hw_thermal_slowdown")),
      "power": Power(source=SOURCE, draw=249.43, limit=250, limit_default=250), "recovery_action": "gpu_reset",
      "ecc": Ecc(source=SOURCE, volatile_uncorrected=3, retired_pages=3, retirement_pending=True)}),
    ("widths of links and remapped rows", SECTIONS["link and rows"],
     {"pcie": Pcie(source=SOURCE, generation=1, generation_max=4, width=4, width_max=16),
      "row_remap": facts.RowRemap(source=SOURCE, corrected=0, uncorrected=2, pending=True, failed=False)}),
    ("a link without the section above it",
     ("    GPU Link Info\n        PCIe Generation\n            Max      : 4\n            Current  : 4\n"
      "        Link Width\n            Max      : 16x\n            Current  : 1x\n"),
     {"pcie": Pcie(source=SOURCE, generation=4, generation_max=4, width=1, width_max=16)}),
    ("what a GPU does not have",
     "    Fan Speed   : N/A\n    Remapped Rows   : N/A\n    MIG Mode\n        Current  : N/A\n",
     {"not_supported": ("fan", "mig", "row_remap")}),
    ("processes, each with its own lines", SECTIONS["processes"],
     {"processes": (Process(source=SOURCE, pid=1700, kind="graphics", memory=47 * MIB),
                    Process(source=SOURCE, pid=2042, kind="compute", memory=159 * MIB))}),
)  # fmt: skip
def test_sections(about: str, body: str, expected: Expected) -> None:
    assert fields(one(body), expected) == expected


@cases("devices, count",
    ("    MIG Devices   : None\n", 0),
    ("    MIG Device\n        Index   : 0\n    MIG Device\n        Index   : 1\n", 2),
)  # fmt: skip
def test_mig_devices(devices: str, count: int) -> None:
    mig = known(one(f"    MIG Mode\n        Current   : Enabled\n        Pending   : Enabled\n{devices}").mig)
    assert (mig.enabled, len(known(mig.instances))) == (True, count)


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
def driver_in(text: str) -> Driver:
    return known(read_text(text).driver)


TABLE = """\
|   0  NVIDIA GeForce RTX 3090        Off |   00000000:01:00.0 Off |                  N/A |
|  0%   41C    P8             32W /  350W |   20000MiB /  24576MiB |    100%   E. Process |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+
"""
PROCESSES = """\
|    0   N/A  N/A      1732      G   /usr/lib/xorg/Xorg                              9MiB |
|    0   N/A  N/A   2211234    M+C   python train.py                                 N/A |
|    0     31337      C   nvidia-cuda-mps-server                            25MiB |
|    7   N/A  N/A         8      C   of a GPU that the table does not list           1MiB |
"""


def test_a_recorded_table_of_eight_gpus() -> None:
    listing = known(read_text(recorded("h200x8_smi.txt")).gpus)
    assert listing.complete
    assert [gpu.index for gpu in listing.items] == list(range(8))
    assert listing.items[7].pci_bus_id == "0000:00:0d.0"
    assert read_text(recorded("h200x8_smi.txt")).observed_errors == ()


@cases("banner, release, cuda",
    ("| NVIDIA-SMI 390.48                 Driver Version: 390.59                    |", "390.59", None),
    ("| NVIDIA-SMI 450.66       Driver Version: 450.66       CUDA Version: 11.0     |", "450.66", "11.0"),
    ("| NVIDIA-SMI 530.46                 Driver Version: 531.61       CUDA Version: 12.1     |", "531.61", "12.1"),
    ("| NVIDIA-SMI 610.43.02     KMD Version: 610.43.02     CUDA UMD Version: 13.3     |", "610.43.02", "13.3"),
    ("| NVIDIA-SMI 440.59   Driver Version: 440.59   CUDA Version: N/A |", "440.59", None),
    ("Driver Version: 450.80.02    CUDA Version: 11.0", "450.80.02", "11.0"),
    ("NVIDIA-SMI: 450.80.02", "450.80.02", None),
)  # fmt: skip
def test_banners(banner: str, release: str, cuda: str | None) -> None:
    assert (driver_in(banner).release, driver_in(banner).cuda) == (release, cuda)


@cases("about, text, expected",
    ("a section alone", SECTIONS["alone"],
     {"driver": Driver(source=SOURCE, installed=True, release="465.27", cuda="11.3"), "gpus.complete": False,
      "gpus.items": (Gpu(source=SOURCE, pci_bus_id="0000:2d:00.0",
          temperature=Temperature(source=SOURCE, gpu=56, slowdown=97, shutdown=102, gpu_max=57)),)}),
    ("two GPUs and what stands around them",
     ("Attached GPUs          : 2\nGPU 00000000:3B:00.0\n    Product Name    : Tesla T4\n"
     "GPU 00000000:AF:00.0\n    Product Name    : Tesla V100\n"
     "PyTorch version: 2.4.0+cu121\n    Product Name    : of nobody\n"),
     {"gpus.items.index": (0, 1), "gpus.items.pci_bus_id": ("0000:3b:00.0", "0000:af:00.0"),
      "gpus.items.name": ("Tesla T4", "Tesla V100")}),
    ("a recorded table", recorded("h200_smi.txt"),
     {"driver": Driver(source=SOURCE, installed=True, release="580.159.04", cuda="13.0"), "platform": None,
      "gpus.items": (Gpu(
          source=SOURCE, pci_bus_id="0000:00:06.0", label="pasted-0", index=0, name="NVIDIA H200",
          persistence_mode=True, ecc=Ecc(source=SOURCE, enabled=True, volatile_uncorrected=0),
          memory=Memory(source=SOURCE, used=0, total=143771 * MIB), power=Power(source=SOURCE, draw=99, limit=700),
          mig=Mig(source=SOURCE, enabled=False), performance_state="P0", utilisation=0.0, compute_mode="default"),)}),
    ("a table tells state, use, compute mode and processes", TABLE + PROCESSES,
     {"gpu.performance_state": "P8", "gpu.utilisation": 1.0, "gpu.compute_mode": "exclusive_process",
      "gpu.processes.pid": (1732, 2211234, 31337), "gpu.processes.kind": ("graphics", "compute", "compute"),
      "gpu.processes.memory": (9 * MIB, None, 25 * MIB), "gpu.processes.mps_server": (False, False, True)}),
    ("nothing is known of processes without their table", TABLE, {"gpu.processes": None}),
    ("the report of versions",
     ("NVIDIA-SMI version  : 550.54.14\nNVML version        : 550.54\nDRIVER version      : 550.54.14\n"
     "CUDA Version        : 12.4\n"),
     {"driver": Driver(source=SOURCE, installed=True, release="550.54.14", cuda="12.4", nvml_version="550.54")}),
    ("a CUDA version in prose is not the driver's", "NVIDIA Driver Version: 510.60.02\nCUDA Version: 11.5\n",
     {"driver.cuda": None}),
    ("a cut name is no name",
     ("|   0  NVIDIA GeForce ...  Off  | 00000000:09:00.0  On |                  N/A |\n"
     "| 30%   45C    P0    58W / 170W |    490MiB / 12288MiB |     12%      Default |\n"),
     {"gpu.name": None, "gpu.persistence_mode": False, "gpu.ecc": None,
      "gpu.memory": Memory(source=SOURCE, used=490 * MIB, total=12288 * MIB)}),
    ("the only GPU takes the name that the text gives elsewhere",
     "GPU: RTX 3060\n|   0  NVIDIA GeForce ...  Off  | 00000000:09:00.0  On |                  N/A |\n",
     {"gpus.items.name": ("RTX 3060",)}),
    ("only Windows has a column for the driver's model",
     ("| NVIDIA-SMI 551.78                 Driver Version: 551.78         CUDA Version: 12.4     |\n"
     "| GPU  Name                     TCC/WDDM  | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n"
     "|   0  NVIDIA GeForce RTX 4080      WDDM  |   00000000:01:00.0  On |                  N/A |\n"),
     {"platform": Platform(source=SOURCE, os="windows"), "gpus.items.name": ("NVIDIA GeForce RTX 4080",),
      "gpus.items.persistence_mode": (None,)}),
    ("a row that was left out leaves the list open", "|   1  Tesla T4   Off | 00000000:00:05.0 Off |    0 |\n",
     {"gpus.complete": False}),
    ("a list of GPUs with UUIDs and MIG devices",
     ("GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-0e153505-8466-b46e-c83c-8251dbfbcacd)\n"
     "  MIG 3g.40gb     Device  0: (UUID: MIG-0a1b2c3d-0000-1111-2222-333344445555)\n"
     "GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-1e153505-8466-b46e-c83c-8251dbfbcacd)\n"),
     {"gpus.items.index": (0, 1),
      "gpus.items.uuid": ("GPU-0e153505-8466-b46e-c83c-8251dbfbcacd", "GPU-1e153505-8466-b46e-c83c-8251dbfbcacd"),
      "gpus.items.mig": (Mig(source=SOURCE, enabled=True, instances=(facts.MigInstance(
          source=SOURCE, name="3g.40gb", uuid="MIG-0a1b2c3d-0000-1111-2222-333344445555"),)), None)}),
    ("a CSV with a sum of reasons, of which the moment of the most use counts",
     ("timestamp, name, clocks.current.sm [MHz], clocks.max.sm [MHz], power.draw [W], power.limit [W], "
      "power.default_limit [W], utilization.gpu [%], clocks_throttle_reasons.active\n"
      "2024/05/01 10:00:01.101, Tesla V100, 135 MHz, 1530 MHz, 30.10 W, 150.00 W, 300.00 W, 0 %, 0x0000000000000001\n"
      "2024/05/01 10:00:01.103, Tesla V100, 1530 MHz, 1530 MHz, 60.00 W, 300.00 W, 300.00 W, 9 %, 0x0000000000000000\n"
      "2024/05/01 10:00:02.101, Tesla V100, 660 MHz, 1530 MHz, 149.10 W, 150.00 W, 300.00 W, 98 %, 0x0000000000000024\n"
      "2024/05/01 10:00:02.103, Tesla V100, 135 MHz, 1530 MHz, 60.00 W, 300.00 W, 300.00 W, 0 %, 0x0000000000000001\n"),
     {"gpus.items.index": (0, 1), "gpus.items.clocks.sm": (660e6, 1530e6), "gpus.items.utilisation": (0.98, 0.09),
      "gpus.items.power.limit_default": (300.0, 300.0),
      "gpus.items.throttle.reasons": (("sw_power_cap", "sw_thermal_slowdown"), ())}),
    ("a CSV without a name, known by its units",
     "pstate, clocks.current.graphics [MHz], remapped_rows.pending\nP8, 210 MHz, Yes\n",
     {"gpu.performance_state": "P8", "gpu.clocks.sm": 210e6, "gpu.row_remap.pending": True}),
    ("a CSV known by its bus ids",
     "gpu_bus_id, remapped_rows.uncorrectable, remapped_rows.pending\n00000000:07:00.0, 1, 1\n00000000:0F:00.0, 0, 0\n",
     {"gpus.items.row_remap.pending": (True, False), "gpus.items.pci_bus_id": ("0000:07:00.0", "0000:0f:00.0")}),
    ("columns of dmon, of which the row of the most use counts",
     ("# gpu   pwr gtemp mtemp    sm   mem  mclk  pclk\n# Idx     W     C     C     %     %   MHz   MHz\n"
      "    0    42    51     -     3     0  9501   210\n    1    30    40     -     0     0   405   210\n"
      "    0   341    66    78   100    61  9501  1860\n"),
     {"gpus.items.index": (0, 1), "gpus.items.utilisation": (1.0, 0.0), "gpus.items.clocks.sm": (1860e6, 210e6),
      "gpus.items.power.draw": (341.0, 30.0), "gpus.items.temperature.memory": (78.0, None)}),
    ("the processes of pmon",
     ("# gpu        pid  type    sm   mem   command\n# Idx          #   C/G     %     %   name\n"
      "    0     201455     C    48    22   tritonserver\n    0       1522     G     0     0   Xorg\n"
      "    0     318870     C    50    31   python\n    1          -     -     -     -   -\n"),
     {"gpus.items.index": (0,), "gpu.processes.pid": (201455, 1522, 318870),
      "gpu.processes.kind": ("compute", "graphics", "compute")}),
    ("nvcc's version",
     "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 12.1, V12.1.105\n",
     {"toolkits.items": (facts.Toolkit(source=SOURCE, path="unknown folder", version="12.1.105", on_path=True),),
      "toolkits.complete": False}),
)  # fmt: skip
def test_what_a_text_says(about: str, text: str, expected: Expected) -> None:
    assert told(text, expected) == expected


MIG_MODE = """\
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|   0  NVIDIA A100-SXM4-40GB          On  |   00000000:07:00.0 Off |                   On |
| N/A   34C    P0             55W /  400W |      38MiB /  40960MiB |     N/A      Default |
|                                         |                        |              Enabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA A100-SXM4-40GB          On  |   00000000:0F:00.0 Off |                   On |
| N/A   33C    P0             52W /  400W |       0MiB /  40960MiB |     N/A      Default |
|                                         |                        |              Enabled |
+-----------------------------------------+------------------------+----------------------+
|   2  NVIDIA A100-SXM4-40GB          On  |   00000000:47:00.0 Off |                    0 |
| N/A   33C    P0             52W /  400W |       0MiB /  40960MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
"""
BOX = """\
| MIG devices:                                                                            |
+------------------+----------------------------------+-----------+-----------------------+
| GPU  GI  CI  MIG |                     Memory-Usage |        Vol|        Shared         |
|      ID  ID  Dev |                       BAR1-Usage | SM     Unc| CE ENC  DEC  OFA  JPG |
|==================+==================================+===========+=======================|
"""
INSTANCES = """\
|  0    1   0   0  |              19MiB / 19968MiB    | 42      0 |  3   0    2    0    0 |
|                  |                 0MiB / 32767MiB  |           |                       |
+------------------+----------------------------------+-----------+-----------------------+
|  0    2   0   1  |              19MiB / 19968MiB    | 42      0 |  3   0    2    0    0 |
|                  |                 0MiB / 32767MiB  |           |                       |
+------------------+----------------------------------+-----------+-----------------------+
"""
EMPTY = """\
|  No MIG devices found                                                                   |
+-----------------------------------------------------------------------------------------+
"""


@cases("below, counts",
    (BOX + INSTANCES, [2, 0, None]), (BOX + EMPTY, [0, 0, None]), (BOX + EMPTY + "\n| Processes:  |\n", [0, 0, None]),
    (BOX + INSTANCES[: INSTANCES.rindex("\n+")], [None, None, None]), (BOX, [None, None, None]),
    ("", [None, None, None]), ids=["instances", "none", "none, and more below", "cut off", "cut off at once", "no box"],
)  # fmt: skip
def test_the_box_of_mig_devices(below: str, counts: list[int | None]) -> None:
    """The box lists what the GPUs in MIG mode have; one that is cut off says nothing of them."""
    modes = [gpu.mig for gpu in gpus_in(MIG_MODE + below)]
    assert [mig is not None and mig.enabled for mig in modes] == [True, True, False]
    assert [None if mig is None or mig.instances is None else len(mig.instances) for mig in modes] == counts
