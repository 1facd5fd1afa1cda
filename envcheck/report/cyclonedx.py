"""The report as a bill of materials of the GPU stack: CycloneDX 1.6, by its own library (extra ``sbom``).

GPUs are devices, the driver is a device driver, toolkits are platforms, distributions and copies of CUDA's libraries
are libraries. What was found of one is a property of it, and what was found of the machine of the whole.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from envcheck.errors import UsageError
from envcheck.model.checks import Check, Report
from envcheck.model.snapshot import Snapshot, items_in
from envcheck.report import Format, Options
from envcheck.report.page.plain import fingerprint
from envcheck.report.page.subject import gpu_name, judged_environment
from envcheck.text.clean import clean

if TYPE_CHECKING:
    from cyclonedx.model import Property
    from cyclonedx.model.component import Component

FORMAT = Format(
    shows="a CycloneDX 1.6 bill of materials of the GPU stack, with what was found (needs the extra 'sbom')",
    suffix="cdx.json",
    syntax="json",
    targets=False,
    shared=True,
)


def render(report: Report, _options: Options) -> str:
    """``report`` as CycloneDX; raise UsageError without the library."""
    try:
        from cyclonedx.model.bom import Bom
        from cyclonedx.model.component import Component, ComponentType
        from cyclonedx.output.json import JsonV1Dot6
    except ImportError:
        raise UsageError("--format cyclonedx needs the extra 'sbom': pip install 'gpu-envcheck[sbom]'") from None
    found = [check for check in report.checks if check.status in ("fail", "warn", "unknown", "note")]
    parts = [*_components(report, found)]
    bom = Bom(components=parts, serial_number=uuid.UUID(fingerprint(report.created + report.headline)[:32]))
    bom.metadata.timestamp = dt.datetime.fromtimestamp(0, dt.timezone.utc)
    with suppress(ValueError):  # a saved report may say anything
        bom.metadata.timestamp = dt.datetime.fromisoformat(report.created)
    bom.metadata.component = Component(
        name=_text(report.host or "machine"), type=ComponentType.PLATFORM, bom_ref="machine"
    )
    bom.metadata.tools.components.add(
        Component(name="envcheck", version=report.tool.version, type=ComponentType.APPLICATION)
    )
    bom.register_dependency(bom.metadata.component, parts)
    named = {prop.value for part in parts for prop in part.properties}
    rest = [prop for prop in _properties(found) if prop.value not in named]
    bom.metadata.properties.update(
        [_property("verdict", report.verdict), _property("headline", report.headline), *rest]
    )
    document = msgspec.json.decode(JsonV1Dot6(bom).output_as_string())
    about = document.pop("metadata")  # first, and in it the tool, by which such a file is known for envcheck's
    first = {key: document.pop(key) for key in ("$schema", "bomFormat", "specVersion")}
    ordered = {**first, "metadata": {"tools": about.pop("tools"), **about}, **document}
    return msgspec.json.format(msgspec.json.encode(ordered), indent=2).decode() + "\n"


def _components(report: Report, found: list[Check]) -> Iterator[Component]:
    from cyclonedx.model.component import Component, ComponentType
    from packageurl import PackageURL

    snapshot, environment = report.snapshot or Snapshot(), judged_environment(report)

    def component(kind: ComponentType, name: str, version: str | None, reference: str, *about: Property) -> Component:
        name, version = _text(name), _text(version or "") or None
        purl = PackageURL("pypi", name=name, version=version) if reference.startswith("pypi") else None
        return Component(type=kind, name=name, version=version, purl=purl, bom_ref=reference, properties=about)

    for number, gpu in enumerate(report.gpus):
        about = [check for check in found if check.subject.kind == "gpu" and check.subject.index == gpu.index]
        yield component(ComponentType.DEVICE, gpu_name(gpu), gpu.vbios, f"gpu-{number}", *_properties(about))
    if snapshot.driver and snapshot.driver.release:
        about = [check for check in found if check.layer in ("driver", "kernel")]
        release = snapshot.driver.release
        yield component(ComponentType.DEVICE_DRIVER, "nvidia-driver", release, "driver", *_properties(about))
    for number, toolkit in enumerate(items_in(snapshot.toolkits)):
        place = _property("path", toolkit.path)
        yield component(ComponentType.PLATFORM, "cuda-toolkit", toolkit.version, f"toolkit-{number}", place)
    for number, each in enumerate((environment.distributions if environment else None) or ()):
        about = [check for check in found if check.subject.key.rpartition(":")[2] == each.name]
        reference = f"{'conda' if each.channel == 'conda' else 'pypi'}-{number}"
        yield component(ComponentType.LIBRARY, each.name, each.version, reference, *_properties(about))
    for number, library in enumerate(items_in(snapshot.libraries)):
        version = library.loaded or library.on_disk or library.declared
        place = _property("path", library.path)
        yield component(ComponentType.LIBRARY, f"lib{library.family}", version, f"library-{number}", place)


def _properties(checks: list[Check]) -> Iterator[Property]:
    yield from (_property(f"check:{check.status}:{check.rule}", check.title) for check in checks)


def _property(name: str, value: str) -> Property:
    from cyclonedx.model import Property

    return Property(name=_text(f"envcheck:{name}"), value=_text(value))


def _text(foreign: str) -> str:
    return clean(foreign[:1000])
