"""``nvidia-smi -q -x``: a recorded report, constructed ones of other formats, and documents that mean harm."""

import time

import pytest

from envcheck.errors import UsageError
from envcheck.importers import read_text
from envcheck.model import snapshot as facts
from envcheck.model.snapshot import Driver, Ecc, Gpu, GpuFabric, Memory, Mig, MigInstance, Power, Process, Temperature
from tests.every import cases
from tests.importers.pasting import gpus_in, recorded, told
from tests.known import Expected, fields, known

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


def one(inner: str) -> Gpu:
    (found,) = gpus_in(smi(gpu(inner)))
    return found


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


# --- constructed: other formats -----------------------------------------------------------------------------------
@cases("about, inner, expected",
    ("element names of older formats: one power section, throttle reasons, one number for SRAM, reset status",
     ("<power_readings><power_draw>49.44 W</power_draw><power_limit>255.00 W</power_limit>"
     "<default_power_limit>255.00 W</default_power_limit><enforced_power_limit>250.00 W</enforced_power_limit>"
     "<min_power_limit>105.00 W</min_power_limit><max_power_limit>314.00 W</max_power_limit></power_readings>"
     "<clocks_throttle_reasons><clocks_throttle_reason_gpu_idle>Not Active</clocks_throttle_reason_gpu_idle>"
     "<clocks_throttle_reason_sw_power_cap>Active</clocks_throttle_reason_sw_power_cap>"
     "<clocks_throttle_reason_display_clocks_setting>Active</clocks_throttle_reason_display_clocks_setting>"
     "</clocks_throttle_reasons>"
     "<ecc_errors><volatile><sram_correctable>1</sram_correctable><sram_uncorrectable>2</sram_uncorrectable>"
     "<dram_correctable>3</dram_correctable><dram_uncorrectable>4</dram_uncorrectable></volatile></ecc_errors>"
     "<gpu_reset_status><reset_required>Yes</reset_required>"
     "<drain_and_reset_recommended>No</drain_and_reset_recommended></gpu_reset_status>"
     "<gpu_part_number>900-21001-0000-000</gpu_part_number>"
     "<temperature><gpu_temp>40 C</gpu_temp><gpu_temp_max_threshold>95 C</gpu_temp_max_threshold>"
     "<gpu_temp_slow_threshold>92 C</gpu_temp_slow_threshold>"
     "<gpu_temp_max_gpu_threshold>88 C</gpu_temp_max_gpu_threshold><memory_temp>N/A</memory_temp></temperature>"),
     {"power": Power(source=SOURCE, draw=49.44, limit=250, limit_default=255, limit_min=105, limit_max=314),
      "throttle": facts.Throttle(source=SOURCE, reasons=("sw_power_cap", "display_clock_setting")),
      "ecc": Ecc(source=SOURCE, volatile_corrected=4, volatile_uncorrected=6), "recovery_action": "gpu_reset",
      "part_number": "900-21001-0000-000", "not_supported": ("temperature.memory",),
      "temperature": Temperature(source=SOURCE, gpu=40, slowdown=92, shutdown=95, gpu_max=88)}),
    ("ECC totals of the oldest formats",
     ("<ecc_errors><volatile><single_bit><device_memory>5</device_memory><total>5</total></single_bit>"
     "<double_bit><total>1</total></double_bit></volatile></ecc_errors>"),
     {"ecc": Ecc(source=SOURCE, volatile_corrected=5, volatile_uncorrected=1)}),
    ("split SRAM errors add up",
     ("<ecc_errors><volatile><sram_uncorrectable_parity>1</sram_uncorrectable_parity>"
     "<sram_uncorrectable_secded>2</sram_uncorrectable_secded><dram_uncorrectable>N/A</dram_uncorrectable>"
     "</volatile></ecc_errors>"), {"ecc": Ecc(source=SOURCE, volatile_uncorrected=3), "not_supported": ()}),
    *((f"what the GPU does not have is said to be absent: {refusal}",
       f"<ecc_mode><current_ecc>{refusal}</current_ecc></ecc_mode><fan_speed>{refusal}</fan_speed>",
       {"ecc": None, "fan": None, "not_supported": ("ecc", "fan")})
      for refusal in ("N/A", "[N/A]", "Not Supported", "[Not Supported]")),
    ("a section that is only N/A is absent whole",
     "<remapped_rows>N/A</remapped_rows><mig_mode><current_mig>N/A</current_mig></mig_mode>",
     {"row_remap": None, "mig": None, "not_supported": ("mig", "row_remap")}),
    *((f"what was not answered is unknown and not absent: {silence}",
       f"<compute_mode>{silence}</compute_mode><persistence_mode>{silence}</persistence_mode>",
       {"compute_mode": None, "persistence_mode": None, "not_supported": ()})
      for silence in ("Requested functionality has been deprecated", "[Insufficient Permissions]", "")),
    ("an error in the place of a value is kept as one",
     "<product_name>NVIDIA A100</product_name><fan_speed>GPU is lost</fan_speed><uuid>GPU is lost</uuid>",
     {"name": "NVIDIA A100", "uuid": None, "fan": None, "errors.code": (15,), "not_supported": (),
      "errors.name": ("NVML_ERROR_GPU_IS_LOST",)}),
    ("MIG devices",
     ("<mig_mode><current_mig>Enabled</current_mig><pending_mig>Enabled</pending_mig></mig_mode>"
     "<mig_devices><mig_device><index>0</index><gpu_instance_id>1</gpu_instance_id>"
     "<device_attributes><shared><multiprocessor_count>60</multiprocessor_count></shared></device_attributes>"
     "<fb_memory_usage><total>40448 MiB</total></fb_memory_usage></mig_device></mig_devices>"
     "<utilization><gpu_util>N/A</gpu_util></utilization>"),
     {"mig": Mig(source=SOURCE, enabled=True, pending=True,
                 instances=(MigInstance(source=SOURCE, memory=40448 * MIB, sm_count=60),)), "utilisation": None}),
    ("MIG mode without a device has an empty list of them",
     "<mig_mode><current_mig>Enabled</current_mig></mig_mode><mig_devices>\n\tNone\n\t</mig_devices>",
     {"mig": Mig(source=SOURCE, enabled=True, instances=())}),
    ("processes",
     ("<processes><process_info><pid>21</pid><type>C</type><process_name>python</process_name>"
     "<used_memory>123 MiB</used_memory></process_info><process_info><pid>22</pid><type>C+G</type>"
     "<used_memory>N/A</used_memory></process_info></processes>"),
     {"processes": (Process(source=SOURCE, pid=21, kind="compute", memory=123 * MIB), Process(source=SOURCE, pid=22))}),
    *((f"a recovery action: {said}", f"<gpu_recovery_action>{said}</gpu_recovery_action>", {"recovery_action": action})
      for said, action in (("None", "none"), ("Reset", "gpu_reset"), ("Reboot", "node_reboot"),
                           ("Drain and Reset", "drain_and_reset"))),
    ("a failed fabric",
     ("<fabric><state>Completed</state><status>Unknown Error</status><health><bandwidth>Degraded</bandwidth>"
     "<route_unhealthy>False</route_unhealthy><access_timeout_recovery>True</access_timeout_recovery>"
     "<incorrect_configuration>Incorrect SysGUID</incorrect_configuration></health></fabric>"),
     {"fabric.state": "completed", "fabric.status": None,
      "fabric.health": ("degraded_bandwidth", "access_timeout_recovery", "incorrect_sysguid")}),
    ("a healthy fabric", "<fabric><state>Completed</state><status>Success</status></fabric>",
     {"fabric": GpuFabric(source=SOURCE, state="completed", status=0, status_name="Success")}),
    ("a name cannot carry terminal codes",
     "<product_name>NVIDIA &#x9b;31mL4&#x202e;\x1b]0;title\x07</product_name>", {"name": "NVIDIA 31mL4"}),
)  # fmt: skip
def test_a_gpu(about: str, inner: str, expected: Expected) -> None:
    assert fields(one(inner), expected) == expected


@cases("about, text, expected",
    ("names of newer drivers for the two versions",
     ("<nvidia_smi_log><kmd_version>610.43.02</kmd_version><cuda_umd_version>13.3</cuda_umd_version>"
     "<attached_gpus>0</attached_gpus></nvidia_smi_log>"),
     {"driver": Driver(source=SOURCE, installed=True, release="610.43.02", cuda="13.3"), "gpus.items": (),
      "gpus.complete": True}),
    ("GPUs chosen by their user have no index and are not all", smi(gpu(""), attached=2),
     {"gpus.complete": False, "gpus.items.index": (None,), "gpus.items.label": (None,)}),
    ("a domain beyond four digits is kept", smi(gpu("", bus="00010000:3B:00.0")),
     {"gpus.items.pci_bus_id": ("10000:3b:00.0",)}),
    ("attribute defaults of an internal subset have no effect",
     ('<!DOCTYPE nvidia_smi_log [<!ATTLIST gpu id CDATA "00000000:AA:00.0">]>\n<nvidia_smi_log>'
     "<attached_gpus>1</attached_gpus><gpu><product_name>NVIDIA L4</product_name></gpu></nvidia_smi_log>"),
     {"gpus.items.pci_bus_id": (None,)}),
)  # fmt: skip
def test_a_report(about: str, text: str, expected: Expected) -> None:
    assert told(text, expected) == expected


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
