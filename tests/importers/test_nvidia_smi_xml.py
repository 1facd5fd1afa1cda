"""``nvidia-smi -q -x``: a recorded report, constructed ones of other formats, and documents that mean harm."""

from __future__ import annotations

import time

import pytest

from envcheck.errors import UsageError
from envcheck.importers import read_text
from envcheck.model.snapshot import (
    Clocks,
    Driver,
    Ecc,
    Gpu,
    GpuFabric,
    Memory,
    Mig,
    MigInstance,
    Pcie,
    Power,
    Process,
    RowRemap,
    Snapshot,
    Temperature,
    Throttle,
)
from tests.every import cases
from tests.importers.pasting import gpus_in, recorded

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
    assert gpus_in(SMI) == (
        Gpu(
            source=SOURCE,
            pci_bus_id="0000:00:06.0",
            uuid="GPU-00000000-1111-2222-3333-444444444444",
            label="pasted-0",
            index=0,
            minor=0,
            name="NVIDIA H200",
            brand="nvidia",
            architecture="hopper",
            pci_device_id="10de:2335",
            pci_subsystem_id="10de:18bf",
            serial="1650000012345",
            vbios="96.00.A5.00.1A",
            part_number="692-2G520-0282-000",
            gsp_firmware="580.159.04",
            performance_state="P0",
            compute_mode="default",
            persistence_mode=True,
            virtualization="passthrough",
            recovery_action="none",
            addressing_mode="none",
            memory=Memory(source=SOURCE, total=143771 * MIB, reserved=616 * MIB, used=0, free=143156 * MIB),
            bar1=Memory(source=SOURCE, total=262144 * MIB, used=MIB, free=262143 * MIB),
            ecc=Ecc(
                source=SOURCE,
                enabled=True,
                pending=True,
                volatile_corrected=0,
                volatile_uncorrected=0,
                aggregate_corrected=0,
                aggregate_uncorrected=0,
            ),
            row_remap=RowRemap(source=SOURCE, corrected=0, uncorrected=0, pending=False, failed=False),
            mig=Mig(source=SOURCE, enabled=False, pending=False, instances=()),
            clocks=Clocks(
                source=SOURCE,
                sm=435e6,
                sm_max=1980e6,
                memory=3201e6,
                memory_max=3201e6,
                sm_application=1980e6,
                sm_application_default=1980e6,
            ),
            power=Power(source=SOURCE, draw=92.82, limit=700, limit_default=700, limit_min=200, limit_max=700),
            temperature=Temperature(source=SOURCE, gpu=33, memory=33),
            throttle=Throttle(
                source=SOURCE,
                reasons=("gpu_idle",),
                seconds={
                    "sw_power_cap": 0,
                    "sync_boost": 0,
                    "sw_thermal_slowdown": 0,
                    "hw_thermal_slowdown": 0,
                    "hw_power_brake_slowdown": 0,
                },
            ),
            pcie=Pcie(
                source=SOURCE,
                generation=5,
                generation_max=5,
                generation_device_max=5,
                width=16,
                width_max=16,
                replays=0,
            ),
            fabric=GpuFabric(source=SOURCE, state="not_supported"),
            utilisation=0,
            memory_utilisation=0,
            processes=(),
            not_supported=("ecc.retired_pages", "ecc.retirement_pending", "fan", "pcie.upstream_generation_max"),
        ),
    )


def test_the_driver_of_a_recorded_report() -> None:
    snapshot = read_text(SMI)
    assert snapshot.driver == Driver(source=SOURCE, installed=True, release="580.159.04", cuda="13.0")
    assert snapshot.gpus is not None
    assert snapshot.gpus.complete
    assert snapshot.observed_errors == ()


def test_the_table_of_the_same_machine_agrees() -> None:
    """One paste that holds both reports: the same GPU, and nothing that is contradicted."""
    both = read_text(SMI + recorded("h200_smi.txt") + recorded("h200_collect_env.txt"))
    assert both.gpus is not None
    assert len(both.gpus.items) == 1
    assert both.disagreements == ()


# --- constructed: other formats -----------------------------------------------------------------------------------


def test_element_names_of_older_formats() -> None:
    """One power section, throttle reasons, one number for SRAM, reset status."""
    found = one(
        "<power_readings><power_draw>49.44 W</power_draw><power_limit>255.00 W</power_limit>"
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
        "<gpu_temp_max_gpu_threshold>88 C</gpu_temp_max_gpu_threshold><memory_temp>N/A</memory_temp></temperature>"
    )
    assert found.power == Power(source=SOURCE, draw=49.44, limit=250, limit_default=255, limit_min=105, limit_max=314)
    assert found.throttle == Throttle(source=SOURCE, reasons=("sw_power_cap", "display_clock_setting"))
    assert found.ecc == Ecc(source=SOURCE, volatile_corrected=4, volatile_uncorrected=6)
    assert (found.recovery_action, found.part_number) == ("gpu_reset", "900-21001-0000-000")
    assert found.temperature == Temperature(source=SOURCE, gpu=40, slowdown=92, shutdown=95, gpu_max=88)
    assert found.not_supported == ("temperature.memory",)


def test_ecc_totals_of_the_oldest_formats() -> None:
    found = one(
        "<ecc_errors><volatile><single_bit><device_memory>5</device_memory><total>5</total></single_bit>"
        "<double_bit><total>1</total></double_bit></volatile></ecc_errors>"
    )
    assert found.ecc == Ecc(source=SOURCE, volatile_corrected=5, volatile_uncorrected=1)


def test_split_sram_errors_add_up() -> None:
    found = one(
        "<ecc_errors><volatile><sram_uncorrectable_parity>1</sram_uncorrectable_parity>"
        "<sram_uncorrectable_secded>2</sram_uncorrectable_secded><dram_uncorrectable>N/A</dram_uncorrectable>"
        "</volatile></ecc_errors>"
    )
    assert (found.ecc, found.not_supported) == (Ecc(source=SOURCE, volatile_uncorrected=3), ())


@cases("refusal", "N/A", "[N/A]", "Not Supported", "[Not Supported]")
def test_what_the_gpu_does_not_have_is_said_to_be_absent(refusal: str) -> None:
    found = one(f"<ecc_mode><current_ecc>{refusal}</current_ecc></ecc_mode><fan_speed>{refusal}</fan_speed>")
    assert found.ecc is None
    assert found.fan is None
    assert found.not_supported == ("ecc", "fan")


def test_a_section_that_is_only_na_is_absent_whole() -> None:
    found = one("<remapped_rows>N/A</remapped_rows><mig_mode><current_mig>N/A</current_mig></mig_mode>")
    assert (found.row_remap, found.mig, found.not_supported) == (None, None, ("mig", "row_remap"))


@cases("silence", "Requested functionality has been deprecated", "[Insufficient Permissions]", "")
def test_what_was_not_answered_is_unknown_and_not_absent(silence: str) -> None:
    found = one(f"<compute_mode>{silence}</compute_mode><persistence_mode>{silence}</persistence_mode>")
    assert (found.compute_mode, found.persistence_mode, found.not_supported) == (None, None, ())


def test_an_error_in_the_place_of_a_value_is_kept_as_one() -> None:
    found = one("<product_name>NVIDIA A100</product_name><fan_speed>GPU is lost</fan_speed><uuid>GPU is lost</uuid>")
    assert (found.name, found.uuid, found.fan) == ("NVIDIA A100", None, None)
    assert [(error.code, error.name) for error in found.errors] == [(15, "NVML_ERROR_GPU_IS_LOST")]
    assert found.not_supported == ()


def test_mig_devices() -> None:
    found = one(
        "<mig_mode><current_mig>Enabled</current_mig><pending_mig>Enabled</pending_mig></mig_mode>"
        "<mig_devices><mig_device><index>0</index><gpu_instance_id>1</gpu_instance_id>"
        "<device_attributes><shared><multiprocessor_count>60</multiprocessor_count></shared></device_attributes>"
        "<fb_memory_usage><total>40448 MiB</total></fb_memory_usage></mig_device></mig_devices>"
        "<utilization><gpu_util>N/A</gpu_util></utilization>"
    )
    assert found.mig == Mig(
        source=SOURCE,
        enabled=True,
        pending=True,
        instances=(MigInstance(source=SOURCE, memory=40448 * MIB, sm_count=60),),
    )
    assert found.utilisation is None


def test_mig_mode_without_a_device_has_an_empty_list_of_them() -> None:
    found = one("<mig_mode><current_mig>Enabled</current_mig></mig_mode><mig_devices>\n\tNone\n\t</mig_devices>")
    assert found.mig == Mig(source=SOURCE, enabled=True, instances=())


def test_processes() -> None:
    found = one(
        "<processes><process_info><pid>21</pid><type>C</type><process_name>python</process_name>"
        "<used_memory>123 MiB</used_memory></process_info><process_info><pid>22</pid><type>C+G</type>"
        "<used_memory>N/A</used_memory></process_info></processes>"
    )
    assert found.processes == (
        Process(source=SOURCE, pid=21, kind="compute", memory=123 * MIB),
        Process(source=SOURCE, pid=22),
    )


@cases("said, action",
    ("None", "none"), ("Reset", "gpu_reset"), ("Reboot", "node_reboot"), ("Drain and Reset", "drain_and_reset"),
)  # fmt: skip
def test_the_recovery_action(said: str, action: str) -> None:
    assert one(f"<gpu_recovery_action>{said}</gpu_recovery_action>").recovery_action == action


def test_a_failed_fabric() -> None:
    found = one(
        "<fabric><state>Completed</state><status>Unknown Error</status><health><bandwidth>Degraded</bandwidth>"
        "<route_unhealthy>False</route_unhealthy><access_timeout_recovery>True</access_timeout_recovery>"
        "<incorrect_configuration>Incorrect SysGUID</incorrect_configuration></health></fabric>"
    )
    assert found.fabric is not None
    assert (found.fabric.state, found.fabric.status) == ("completed", None)
    assert found.fabric.health == ("degraded_bandwidth", "access_timeout_recovery", "incorrect_sysguid")


def test_a_healthy_fabric() -> None:
    found = one("<fabric><state>Completed</state><status>Success</status></fabric>")
    assert found.fabric == GpuFabric(source=SOURCE, state="completed", status=0, status_name="Success")


def test_names_of_newer_drivers_for_the_two_versions() -> None:
    text = (
        "<nvidia_smi_log><kmd_version>610.43.02</kmd_version><cuda_umd_version>13.3</cuda_umd_version>"
        "<attached_gpus>0</attached_gpus></nvidia_smi_log>"
    )
    snapshot = read_text(text)
    assert snapshot.driver == Driver(source=SOURCE, installed=True, release="610.43.02", cuda="13.3")
    assert snapshot.gpus is not None
    assert (snapshot.gpus.items, snapshot.gpus.complete) == ((), True)


def test_gpus_chosen_by_their_user_have_no_index_and_are_not_all() -> None:
    snapshot = read_text(smi(gpu(""), attached=2))
    assert snapshot.gpus is not None
    assert not snapshot.gpus.complete
    assert [(found.index, found.label) for found in snapshot.gpus.items] == [(None, None)]


def test_a_domain_beyond_four_digits_is_kept() -> None:
    (found,) = gpus_in(smi(gpu("", bus="00010000:3B:00.0")))
    assert found.pci_bus_id == "10000:3b:00.0"


# --- broken and hostile documents ---------------------------------------------------------------------------------


def test_what_stands_before_the_cut_is_read() -> None:
    whole = smi(gpu("<product_name>NVIDIA L4</product_name>"), gpu("<product_name>NVIDIA L40</product_name>"))
    snapshot = read_text(whole[: whole.index("NVIDIA L40")])
    assert snapshot.gpus is not None
    assert [found.name for found in snapshot.gpus.items] == ["NVIDIA L4"]
    assert not snapshot.gpus.complete
    assert [(run.name, run.status, run.detail) for run in snapshot.runs] == [
        ("nvidia-smi -q -x", "failed", "the document is cut off at line 3")
    ]


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
    assert snapshot.driver == Driver(source=SOURCE, installed=True, release="535.104.12")
    assert snapshot.gpus is None
    assert "undefined entity" in snapshot.runs[0].detail


def test_attribute_defaults_of_an_internal_subset_have_no_effect() -> None:
    text = (
        '<!DOCTYPE nvidia_smi_log [<!ATTLIST gpu id CDATA "00000000:AA:00.0">]>\n'
        "<nvidia_smi_log><attached_gpus>1</attached_gpus><gpu><product_name>NVIDIA L4</product_name></gpu>"
        "</nvidia_smi_log>"
    )
    assert gpus_in(text)[0].pci_bus_id is None


@cases("text", "<nvidia_smi_log>" + "<a>" * 1_000_000, "<nvidia_smi_log>" + "<a/>" * 1_000_000 + "</nvidia_smi_log>")
def test_deep_and_endless_documents_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="the document was refused"):
        read_text(text)


def test_a_name_cannot_carry_terminal_codes() -> None:
    found = one("<product_name>NVIDIA &#x9b;31mL4&#x202e;\x1b]0;title\x07</product_name>")
    assert found.name == "NVIDIA 31mL4"


def test_an_empty_report_says_nothing() -> None:
    with pytest.raises(UsageError):
        read_text("<nvidia_smi_log></nvidia_smi_log>")
    assert read_text(smi()) != Snapshot()
