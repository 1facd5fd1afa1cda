"""What sentences and labels say of this machine: its system, GPUs of other makers, whether a framework finds a GPU.

In prose a system counts only if a line begins with it, a label for it, or a prompt. What PyTorch answered counts where
it stands in the same line as the question, in any words; what a line of code tests, and what somebody expects or asks,
is no answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from envcheck.importers.formats.operating_system import from_title
from envcheck.importers.importer import Rank, importer, joined, of_framework
from envcheck.importers.paste import SOURCE, Paste
from envcheck.importers.prose.languages import whole_words_for, words_for
from envcheck.importers.readings import facts_in
from envcheck.model.snapshot import Driver, Platform, Snapshot, Told
from envcheck.text.lazy import lazy_pattern

_BULLET = " \t-*•#>`|"
_LONGEST_NAME, _LONGEST_LIST = 300, 160

_PERSONAL = lazy_pattern(
    r"\b(?:(?:my|the|our) (?:system|OS|operating system|PC|machine|laptop|computer) (?:is|runs|has) |"
    r"(?:I'?m|I am|we'?re|we are|I|we) (?:(?:now|currently|still) )?"
    r"(?:(?:running|run|using|use|working|work)(?: on| under)?|on) )(?:an? )?"
    r"(Windows (?:10|11)|Ubuntu [0-9]{2}\.[0-9]{2}|Debian [0-9]{1,2}|Fedora [0-9]{2})\b"
    r"(?!.{0,80}\b(?:docker|container|VM|virtual|host)\b)",
    re.IGNORECASE,
)
_NAME_OF_SYSTEM = lazy_pattern(
    r"(?:[A-Z][\w!./-]*|(?:linux|ubuntu|windows|win|centos|debian|fedora)[0-9.]*)"
    r"(?: [A-Z0-9(][\w.()-]*){0,6}(?:[,;\uff0c\uff1b]|\s*$)"
)
"""A name with at most a version, and no sentence."""
_WSL = lazy_pattern(r"\bWSL ?2?\b")


@cache
def _os() -> re.Pattern[str]:
    labels = r"(?:OS(?: name)?|operating system|edition|platform|system)(?: ?[:=]\s{0,30}|\t| {8,40})"
    others = rf"(?:(?:{words_for('own')})的?\s?)?(?:{words_for('system')})\s?"
    others += r"(?:[:=]\s{0,30}|ist |est |es |é |[是为為は은는]\s?)?"
    return re.compile(rf"(?:{labels}|{others})?([A-Za-z].{{2,100}})", re.IGNORECASE)


_PROSE = "system in prose"


@importer(_PROSE, Rank.PROSE)
def read_system(paste: Paste) -> Snapshot:
    """The system in prose: "Ubuntu 20.04, Python 3.8", "OS: Windows 11", "WSL2 under Windows", and the prompts of
    Windows and of Docker's containers.
    """
    return joined(map(_system, paste.statements))


def _system(line: str) -> Snapshot | None:
    text = line[:_LONGEST_NAME].strip(_BULLET)
    if not text:
        return None
    # In a list the system may stand anywhere: "tensorflow 2.10, Windows 10, CUDA 11.2".
    parts = (
        [part.strip(_BULLET) for part in re.split(r"[,;|\uff0c\uff1b。]| / ", text)]
        if len(text) <= _LONGEST_LIST
        else []
    )
    return next((found for part in (text, *parts[1:]) if (found := _platform(part))), None)


def _platform(text: str) -> Snapshot | None:
    """The system, from a line that begins with its name or labels it; "Windows 11 WSL2" is Linux under Windows."""
    found = _os().match(text)
    platform = from_title(found[1]) if found and _NAME_OF_SYSTEM.match(found[1]) else None
    platform = platform or next((facts.platform for facts in facts_in(_PROSE, text)), None)
    if platform is None and (own := _PERSONAL.search(text)):
        platform = from_title(own[1])
    if platform is not None and platform.wsl is None and _WSL.search(text):
        platform = Platform(source=SOURCE, os="linux", wsl=True)
    return Snapshot(platform=platform) if platform else None


_OTHER_GPU = lazy_pattern(
    r"\b(?:(?:AMD|ATI) )?Radeon(?:\(TM\)|™)?(?: (?:RX|Pro|HD|VII|R[579]|Vega)\b)?"
    r"(?: (?:[0-9]{1,4}[A-Z]{0,3}|XTX?|GRE|M|VII|Graphics)\b){0,3}"
    r"|\b[Rr][Xx] ?(?:[4-7][0-9]{2}0|[45][678]0|9[0-9]{3})(?: ?XTX?| ?M)?\b|\bVega ?(?:56|64|[0-9]{1,2})\b"
    r"|\b(?:AMD )?Instinct MI[0-9]{2,3}\w?|\bMI(?:50|60|100|210|250X?|300[AX]|325X)\b"
    r"|\bIntel(?:\(R\)|®| R| Corporation)?(?: integrated)? (?:Arc|UHD|HD|[Il]ri(?:s|sh)|Xe|[Gg]raphics)\b(?:\(R\))?"
    r"(?: (?:Graphics|Xe|Plus|Pro|[A-Z]?[0-9]{3,4}[A-Z]?)\b){0,3}"
    r"|\bArc A[357][0-9]0M?\b"
    r"|\b(?:Apple|Mac(?:Book| ?Mini| Studio)\b[\w ]{0,12}) M[1-5](?: (?:Pro|Max|Ultra))?\b"
    r"|\bgfx(?:9|10|11|12)[0-9]{1,2}[0-9a-f]?\b"
    r"|(?<=[Hh]ave )(?:only )?(?:an? )?(?:AMD|amd|Intel|intel|ATI) (?:GPU|gpu|(?:[Gg]raphics |[Vv]ideo )?card)\b"
    r"|\b(?:AMD|amd|Intel|intel|ATI) (?:GPU|gpu|(?:[Gg]raphics |[Vv]ideo )?card)"
    r"(?= (?:that )?(?:I|we) (?:am |are )?(?:us|hav))"
    r"|(?<=using )(?:AMD|amd|ATI) (?:hardware|GPUs?|gpus?|cards?)\b"
    r"|(?<=[Mm]y )(?:AMD|amd|Intel|intel|ATI) (?:GPU|gpu|(?:[Gg]raphics |[Vv]ideo )?card)\b"
    r"|\bMTT S[0-9]{2,4}\b|\bAscend ?(?:310|910)\w{0,3}\b|\bMLU[0-9]{3}\b|\bMetaX C[0-9]{3}\b",
    re.ASCII,
)
_SIGNS_OF_OTHERS = (
    "Radeon", "RX", "Rx", "rX", "rx", "Vega", "Instinct", "MI", "Intel", "intel", "Arc", "Apple", "Mac", "gfx", "AMD",
    "amd", "ATI", "MTT", "Ascend", "MLU", "MetaX",
)  # fmt: skip
"""One of these stands in each of them."""
_MAC = lazy_pattern(
    r"\b(?:mac ?os(?: ?x)?|os ?x|mac ?book(?: (?:pro|air))?|imac|mac(?: (?:mini|studio|pro))?)\b"
    r"(?![ -]?(?:address|\d*:))|\bapple[ -](?:silicon|seliicon|slicon|m[1-5])\b"
    r"|/private/var/folders/|/opt/homebrew/|/Users/[^/\s]{1,40}/(?:(?:mini|ana)conda|miniforge|\.pyenv|Library)",
    re.IGNORECASE | re.ASCII,
)
"""A Mac by name: since macOS 10.14 none has a GPU that CUDA can use."""
_SIGNS_OF_MAC = ("mac", "os x", "osx", "apple", "/private/var/", "/opt/homebrew/", "/users/")
"""One of these stands in each of them."""
_NO_MAC_ALONE = lazy_pattern(
    r"linux|ubuntu|debian|centos|windows|colab|\bWSL|\bremote|\bcluster|\bservers?\b|\bcloud\b|\bEC2\b|/home/|\bssh\b"
    r"|\bdriver version\b|\b10\.(?:[5-9]|1[0-3])\b|high sierra|\bany platform\b",
    re.IGNORECASE,
)
"""Where a text is about several systems, or about a Mac of the years in which Macs had GPUs of NVIDIA."""
_ASIDE = lazy_pattern(
    r"\b(?:supports?|supported|or|requires?|only|instead|not|no|unlike|if|e\.g\.|compared?|than)\b"
    r"(?!.{0,40}\b(?:I have|I use|we have|my)\b)[^.;]{0,40}$",
    re.IGNORECASE,
)
_MAC_ASIDE = lazy_pattern(
    r"\b(?:supports?|supported|requires?|if|unlike|e\.g\.|than|or|for|use)\b[^.;,]{0,25}$", re.IGNORECASE
)
_NVIDIA = lazy_pattern(r"\b(?:GeForce|RTX|GTX|Quadro|Tesla|TITAN|Jetson|nvidia-smi)\b|\bNVIDIA [A-Z]{0,4}[0-9]")
_TPU = lazy_pattern(
    r"\b(?:on|with|use|using|uses|run\w*) (?:a |the |an? \w{2,10} |my |Google |Kaggle |Colab ){0,3}(?:Cloud )?TPUs?\b"
    r"|\bTPU ?(?:v[2-7]\w{0,2}(?:-[0-9]{1,4})?|VMs?|pods?|nodes?|runtime)\b|\bPJRT_DEVICE=TPU\b|\bjax\[tpu\]"
)
_LONGEST_LINE, _LONGEST_TEXT = 600, 1 << 20


@importer("GPUs of other makers", Rank.PROSE)
def read_other_gpus(paste: Paste) -> Snapshot:
    """GPUs of other makers in any text: a machine that has these alone has no use for builds with CUDA. That a text
    names one says nothing about others; the rule that judges it asks whether the text shows an NVIDIA GPU.
    """
    if _NVIDIA.search(paste.text[:_LONGEST_TEXT]):
        return Snapshot()
    of_tpu = "TPU" in paste.text or "[tpu]" in paste.text
    if of_tpu and any(_TPU.search(line[:_LONGEST_LINE]) for line in paste.statements):
        return Snapshot(told=Told(source=SOURCE, on_tpu=True))
    for line in paste.statements:
        found = any(map(line.__contains__, _SIGNS_OF_OTHERS)) and _OTHER_GPU.search(line[:_LONGEST_LINE])
        if found and not _ASIDE.search(line[: found.start()]):
            return Snapshot(told=Told(source=SOURCE, other_gpu=found[0].strip()))
    lowered = paste.text.lower()
    if not any(map(lowered.__contains__, _SIGNS_OF_MAC)) or _NO_MAC_ALONE.search(paste.text[:_LONGEST_TEXT]):
        return Snapshot()
    for line in paste.statements:
        found = _MAC.search(line[:_LONGEST_LINE])
        if found and not _MAC_ASIDE.search(line[: found.start()]):
            return Snapshot(told=Told(source=SOURCE, other_gpu=f"a Mac ({found[0].strip()})"))
    return Snapshot()


_BETWEEN = (
    r"still|always|also|just|now|only|keeps?|it|return(?:s|ed|ing)?|gives?|gave|me|I|get|got|is|was|stays?|remains?|"
    r"prints?|printed|shows?|says|evaluates to|results? in|but|as"
)

_NO_CUDA = lazy_pattern(
    rf"(?<![\w.])torch\.version\.cuda[`\"']{{0,2}}(?:[\s:=>#`'\"-]|\b(?:{_BETWEEN})\b){{1,12}}None\b"
)
"""What PyTorch answers where it was built without CUDA."""
_NUMBER = lazy_pattern(
    r"(?<![\w.])(?:torch\.cuda\.)?device_count(?:\(\))?[`\"']{0,2}"
    rf"(?:[\s:=>#`'\"-]|\b(?:{_BETWEEN})\b){{1,12}}(?P<answer>[0-9]{{1,3}})(?![\w.])",
    re.IGNORECASE,
)
_LABEL = lazy_pattern(
    r"\W{0,6}(?:is )?(?:(?:py)?torch[ .]?)?(?:cuda|gpu)(?: is)? ?available\W{0,12}"
    r"(?P<answer>true|false|yes|no)\b(?!.{0,20}\bMPS)|"
    r"\W{0,6}(?:py)?torch(?:'s)?[ .]cuda\W{0,8}(?P<other>true|false)\b|"
    r"CUDA {8,40}(?P<checked>None)$",  # as Ultralytics' checks print that PyTorch finds no GPU
    re.IGNORECASE,
)
_NO_ANSWER = lazy_pattern(
    r"\b(?:if|assert|while|elif|should|expect\w*|must|raise|unless|until|before|used to|would|previously|not torch)\b"
    r"|\?\s*$",
    re.IGNORECASE,
)
_SPOKEN = {"pytorch": "torch", "tf": "tensorflow", "keras": "tensorflow"}
_FRAMEWORK = r"(?:py)?torch|tensorflow|tf|keras|jax"
_CANNOT = (
    r"(?:(?:do(?:es)?|did|can|could|will|wo|would|is)(?: ?n[o']t|not)|cannot|never|fail(?:s|ed) to|"
    r"(?:is |was )?unable to|refuses to)"
)
_SEE = r"(?:see|find|detect|recogni[sz]e|use|access|seeing|finding|detecting|recogni[sz]ing|using|pick up)"
_SEES = (
    r"(?:sees|finds|found|detects|detected|lists|shows|gets|only (?:sees|finds|lists|uses|shows)|runs only on|"
    r"falls back to)"
)
_TOLD = lazy_pattern(
    rf"\b(?P<name>{_FRAMEWORK})\b(?:[^.;?\n]|\.(?=[0-9])){{0,40}}?\b{_CANNOT}\b[^.;?\n]{{0,12}}?\b{_SEE}\b"
    r"[^.;?\n]{0,16}?\b(?:GPUs?|CUDA|graphics card)\b"
    rf"|\b(?P<other>{_FRAMEWORK})\b[^.;?\n]{{0,20}}?\b{_SEES}\b"
    r"[^.;?\n]{0,12}?(?:\bno (?:GPUs?|CUDA)\b|\b(?:the |my )?CPU\b)"
    r"|\b(?:GPUs?|CUDA)\b[^.;?\n]{0,20}?\b(?:is |are |was )?not "
    r"(?:visible|available|detected|recogni[sz]ed|found|used)\b"
    rf"[^.;?\n]{{0,12}}?\b(?:in|by|to|from|for|inside|with) (?P<third>{_FRAMEWORK})\b",
    re.IGNORECASE,
)
"""A sentence that says that a framework does not see the GPU."""
_HEDGED = lazy_pattern(
    r"\b(?:if|when|whether|unless|would|should|expect\w*|used to|until|before|in case|which|that|not every|other)\b",
    re.IGNORECASE,
)
_CALL = lazy_pattern(r"(?:torch\.)?cuda[._](?:is_available|device_count)\(\)(?P<printed>\))?[`\"']{0,2}$")
_OF_R = "[1] "
"""What R puts before an answer."""
_GOES_ON = lazy_pattern(rf"(?:{_BETWEEN})\b|\[1\] (?:TRUE|FALSE)$", re.IGNORECASE)
_OF_TENSORFLOW = lazy_pattern(r"name: \"/device:(?P<kind>CPU|GPU|XLA_GPU):[0-9]")


@cache
def _said() -> re.Pattern[str]:
    # Letters of other scripts adjoin the answer without a blank: only ASCII makes words here.
    return re.compile(
        r"(?<![\w.])(?:(?:torch\.)?cuda[._]is_available(?:\(\))?|is_available\(\))[`\"']{0,2}"
        rf"(?:[\s:=>#`'\"-]|\b(?:{_BETWEEN})\b|{whole_words_for('answers')}){{1,12}}"
        r"(?P<answer>true|false)\b",
        re.IGNORECASE | re.ASCII,
    )


_AVAILABILITY = "CUDA's availability"


@importer(_AVAILABILITY, Rank.PROSE)
def read_answers(paste: Paste) -> Snapshot:
    devices = {found["kind"] for line in paste.statements if (found := _OF_TENSORFLOW.search(line[:_LONGEST_LINE]))}
    listed = [of_framework("tensorflow", gpu_available="GPU" in devices)] if devices else []
    return joined((*map(_found_or_not, (*paste.statements, *_broken(paste))), *listed))


def _broken(paste: Paste) -> Iterator[str]:
    """Sentences that go on below a call that stands in a line of its own."""
    for line, below in pairwise(filter(str.strip, paste.lines)) if "cuda" in paste.text else ():
        text = line.strip()[-_LONGEST_LINE:]
        call = _CALL.search(text)
        if not call or not _GOES_ON.match(below.strip()) or (call["printed"] and below[0].isspace()):
            continue
        asked = call[0].rstrip(")") + ")" if call["printed"] else text
        yield f"{asked} {below.strip().removeprefix(_OF_R)[:_LONGEST_LINE]}"


def _found_or_not(line: str) -> Snapshot | None:
    text = line[:_LONGEST_LINE]
    if printed := next(facts_in(_AVAILABILITY, text), None):
        return printed
    if (sentence := _TOLD.search(text)) and not _HEDGED.search(text[: sentence.end()].rpartition(". ")[2]):
        name = next(found for found in sentence.groups() if found).lower()
        return of_framework(_SPOKEN.get(name, name), gpu_available=False)
    return _answer(text) if any(word in text for word in ("available", "AVAILABLE", "orch", "None")) else None


def _answer(text: str) -> Snapshot | None:
    """What PyTorch answered to a question in the same line; a question back is none."""
    asked = (_NO_CUDA.search(text), _said().search(text) or _LABEL.match(text), _NUMBER.search(text))
    match = next(filter(None, asked), None)
    if match is None or _NO_ANSWER.search(text[: match.end()]) or text.rstrip().endswith("?"):
        return None
    if match is asked[0]:
        return of_framework("torch", cpu_only=True)
    answer = next(each for each in match.groups() if each)
    if match is asked[2] and int(answer):
        return Snapshot(driver=Driver(source=SOURCE, cuda_devices=int(answer)))
    return of_framework("torch", gpu_available=answer.lower() in ("true", "yes"))
