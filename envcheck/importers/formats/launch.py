"""How the program was started: environment variables, Slurm jobs, container commands and images, Kubernetes nodes.

A text that asks for a GPU anywhere does not tell how what it is about was started, and one that names several images
says of none that it is used.
"""

from __future__ import annotations

import re

import msgspec

from envcheck.importers.importer import (
    Rank,
    environment,
    importer,
    of_framework,
    stated_cuda,
    stated_cudnn,
    with_environment,
)
from envcheck.importers.paste import SOURCE, Paste
from envcheck.importers.readings import facts_in
from envcheck.importers.wording import wording
from envcheck.knowledge.images import Image, image_of
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.names import canonical
from envcheck.model.snapshot import (
    OF_FRAMEWORK_IMAGE,
    OF_IMAGE,
    Distribution,
    Driver,
    Listing,
    Platform,
    Snapshot,
    Told,
    Variables,
)
from envcheck.redact.secrets import masked_value
from envcheck.text.lazy import lazy_pattern

_PRINTED = lazy_pattern(r"(?:\$|#|>) ?(?:echo|printenv) [\"']?\$?\{?([A-Z][A-Z0-9_]{3,60})\}?[\"']?$")
"""A question whose answer is the next line."""
_FINDS = lazy_pattern(r"\bfound [1-9][0-9]{0,2} CUDA devices|\bFound device [0-9]{1,2} with properties")
"""What programs say that find GPUs."""
_LIST = lazy_pattern(r"(?:.{0,40}\W)?(CUDA_VISIBLE_DEVICES): \[([0-9, ]{0,60})\]\s*$")
"""What Lightning logs: the variable as a list of Python."""
_DEVICES = lazy_pattern(r"-?[0-9][0-9,]{0,60}")
_OF_COMMANDS = ("CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH")  # of which more than one line decides
_LONGEST_LINE, _MOST_VARIABLES = 600, 500
_LONGEST_TEXT, _SHOWN = 1 << 20, 120


@importer("environment variables", Rank.OUTPUT)
def read_variables(paste: Paste) -> Snapshot:
    # The variable that selects GPUs counts where all of a text agrees: before commands, in code, in sentences.
    lines = [place for place, line in enumerate(paste.lines) if _OF_COMMANDS[0] in line]
    devices = {
        facts.variables.values["CUDA_VISIBLE_DEVICES"]
        for place in lines
        for facts in facts_in("environment variables", paste.lines[place][:_LONGEST_LINE])
        if facts.variables
    }
    for place in lines:
        if _PRINTED.search(paste.lines[place].strip()) and place + 1 < len(paste.lines):
            devices.update(answer[0] for answer in [_DEVICES.fullmatch(paste.lines[place + 1].strip())] if answer)
    values = {"CUDA_VISIBLE_DEVICES": next(iter(devices))} if len(devices) == 1 else {}
    asked = ""
    for line in paste.lines:
        found = _setting(f"{asked}={line.strip()}" if asked and asked not in _OF_COMMANDS else line)
        printed = _PRINTED.search(line[:_SHOWN].strip()) if "echo " in line or "printenv " in line else None
        asked = printed[1] if printed else ""
        if found and len(values) < _MOST_VARIABLES:
            setting = _LIST.match(line) or found
            values.setdefault(found[1], masked_value(found[1], setting[2].strip("\"'")))
    for place, line in enumerate(paste.lines) if "LD_LIBRARY_PATH" not in values else ():
        pair = "\n".join(paste.lines[place : place + 2])[:_LONGEST_LINE] if "LD_LIBRARY_PATH" in line else ""
        if path := wording("path-of-loader").search(pair):
            values["LD_LIBRARY_PATH"] = masked_value("LD_LIBRARY_PATH", path[2] or path[3])
            break
    told = None
    of_gpus = (line[:_LONGEST_LINE] for line in paste.lines if "CUDA_VISIBLE_DEVICES=" in line)
    # A command hides every GPU from itself, in a text where another program finds some.
    hidden = any(map(wording("gpus-hidden-on-purpose").search, of_gpus))
    if hidden and any(_FINDS.search(line[:_LONGEST_LINE]) for line in paste.lines):
        values.pop("CUDA_VISIBLE_DEVICES", None)
        told = Told(source=SOURCE, hidden_on_purpose=True)
    return Snapshot(variables=Variables(source=SOURCE, values=values) if values else None, told=told)


def _setting(line: str) -> re.Match[str] | None:
    """The name and the value of a variable that a line sets."""
    if found := wording("variable-set").match(line.strip()):
        return found
    text = line[:_LONGEST_LINE]
    if " set" in text and (stated := wording("variable-told").search(text)):
        return stated
    in_code = wording("variable-set-in-python").match(text) if "os.environ[" in text else None
    return in_code if in_code and in_code[1] != "CUDA_VISIBLE_DEVICES" else None


_COMMAND = lazy_pattern(r"(?:^|[$#>] ?|`)(?:srun|salloc|sbatch)(?: .{0,300})?$", re.MULTILINE)
_DENIED = lazy_pattern(r"\b(?:not|n't|without|no|never|forgot(?:ten)?)\b.{0,30}--(?:gres|gpus)\S{0,20}", re.IGNORECASE)
"""A sentence that says that the request is missing."""


@importer("Slurm job", Rank.MESSAGE)
def read_slurm_job(paste: Paste) -> Snapshot:
    """Batch scripts and commands of Slurm that ask for no GPU. A partition or a constraint is no request: Slurm shows a
    job the GPUs that it asks for as a generic resource.
    """
    # The first line that tells how the job was started, where none asks for a GPU.
    text = paste.text[:_LONGEST_TEXT]
    if not any(map(text.__contains__, ("#SBATCH", "srun", "salloc", "sbatch"))):
        return Snapshot()
    text = _DENIED.sub("", text)
    found = re.search(r"^[ \t]{0,8}#SBATCH +-\S.{0,200}$", text, re.MULTILINE) or _COMMAND.search(text)
    asked = found[0].strip("$#>` ") if found and not wording("gpu-asked-of-slurm").search(text) else None
    return Snapshot(told=Told(source=SOURCE, job_without_gpu=asked[:_SHOWN]) if asked is not None else None)


_OF_APPTAINER = lazy_pattern(r"\b(?:apptainer|singularity) |--nv")


@importer("container command", Rank.MESSAGE)
def read_container_command(paste: Paste) -> Snapshot:
    """Commands and compose files that start a container without a GPU, and logs that ``docker compose`` prefixed."""
    text, command = paste.text[:_LONGEST_TEXT], None
    if any(map(text.lower().__contains__, ("docker", "podman", "nerdctl", "apptainer", "singularity"))):
        command = wording("image-build").search(text)
        others = wording("option-left-out").sub("", wording("command-works").sub("", text))
        if command is None and not wording("gpu-given-to-container").search(others):
            command = wording("container-started").search(text) or wording("option-left-out").search(text)
    found = wording("service-of-compose").search(text) if "services:" in text else None
    # A compose file that gives no service a GPU counts, whatever other commands of the text do.
    service = found["image"] if found and not wording("gpu-given-to-service").search(text) else None
    if command is None and service is None and not paste.of_compose:
        return Snapshot()
    asked = command[0].strip("$#>` ") if command else service
    shown = f"started without a GPU: {asked[:_SHOWN]}" if asked else f"log of {paste.of_compose}"
    return Snapshot(
        platform=Platform(
            source=SOURCE,
            os="linux",
            container="apptainer" if command and _OF_APPTAINER.search(command[0]) else "docker",
            container_evidence=shown,
            started_without_gpu=True if asked else None,
        )
    )


_IMAGE = lazy_pattern(
    r"(?:^|[\s\"'=`(])(?:docker\.io/)?(?P<name>[a-z0-9.-]{2,60}(?:/[a-z0-9._-]{2,60}){1,3}):(?P<tag>[A-Za-z0-9][\w.-]{2,100})(?=$|[\s\"'`,;)@])"
)
_NOT_RUN = lazy_pattern(r"error|not found|manifest|pull access|unable|fail", re.IGNORECASE)
_LONGEST_IMAGE_LINE, _MOST_IMAGES = 600, 8


@importer("container image", Rank.PROSE)
def read_image(paste: Paste) -> Snapshot:
    """Container images whose tag says what they hold: ``FROM pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime``."""
    found: dict[str, Image] = {}
    lines = [line[:_LONGEST_IMAGE_LINE] for line in paste.statements if ":" in line and "/" in line]
    for match in (match for line in lines if not _NOT_RUN.search(line) for match in _IMAGE.finditer(line)):
        named = image_of(load_matrix(), f"{match['name']}:{match['tag']}")
        if named is not None and named.row is not None and len(found) < _MOST_IMAGES:  # the matrix can read its tag
            found[named.name] = named
    if len(found) != 1:
        return Snapshot()
    (image,) = found.values()
    versions = image.holds
    cuda, cudnn = versions.get("cuda"), versions.get("cudnn")
    framework = image.row.frameworks.get(image.name.rpartition(":")[0]) if image.row else None
    if framework:
        version = versions.get(framework)
        minor = ".".join(cuda.split(".")[:2]) if cuda else None
        gpu_build = False if cuda else None
        return of_framework(framework, version=version, cuda=minor, cpu_only=gpu_build)
    package = canonical(image.name.partition(":")[0].rpartition("/")[2])
    told_by = OF_FRAMEWORK_IMAGE if load_matrix().has_role(package, "framework") else OF_IMAGE
    items = (*((stated_cuda(cuda, told_by=told_by),) if cuda else ()), *((stated_cudnn(cudnn),) if cudnn else ()))
    libraries = Listing(items=items) if items else None
    packages = {name: version for name, version in versions.items() if load_matrix().has_role(name, "framework")}
    if not packages:
        return Snapshot(libraries=libraries)
    listed = tuple(Distribution(source=SOURCE, name=name, version=version) for name, version in packages.items())
    return msgspec.structs.replace(with_environment(environment(distributions=listed)), libraries=libraries)


_LABEL = lazy_pattern(
    r"nvidia\.com/cuda\.driver(?:-version)?\.(?P<part>full|major|minor|rev(?:ision)?)[\"']?[=:]\s?[\"']?(?P<value>[0-9][0-9.]{0,14})"
)


@importer("Kubernetes node", Rank.OUTPUT)
def read_kubernetes_node(paste: Paste) -> Snapshot:
    """The labels that GPU feature discovery gives a node, as ``kubectl describe node`` or ``get node -o yaml`` shows
    them; labels that differ from node to node, or are incomplete, tell nothing.
    """
    values: dict[str, str] = {}
    labels = _LABEL.finditer(paste.text[:_LONGEST_TEXT]) if "nvidia.com/cuda.driver" in paste.text else ()
    for label in labels:
        part = label["part"].removesuffix("ision")
        if values.setdefault(part, label["value"]) != label["value"]:
            return Snapshot()
    numbers = ".".join(values[part] for part in ("major", "minor", "rev") if part in values)
    release = values.get("full") or (numbers if values.keys() >= {"major", "minor"} else None)
    return Snapshot(driver=Driver(source=SOURCE, release=release) if release else None)
