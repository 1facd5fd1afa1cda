"""GPU models by name in a line, as data sheets, tools and people write them; the matrix decides what is one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from envcheck.importers.prose.languages import words_for
from envcheck.knowledge.gpu_names import find_model

_SUFFIX = r"(?:Ti|SUPER|D|M|S)?(?:[ -]?SUPER)?"
_MODEL = re.compile(
    r"(?<![\w-])(?:(?:NVIDIA|GeForce|Tesla|Quadro|TITAN)[ -]){0,3}"
    rf"(?:(?:RTX[ -]?(?:PRO[ -])?|GTX[ -]?|GT[ -])[0-9]{{3,4}}(?:[A-Z]|{_SUFFIX})|RTX[ -]?A[0-9]{{3,4}}|"
    r"TITAN[ -](?:RTX|Xp|X(?: \(Pascal\))?|V|Black|Z)|DGX[ -]Spark|[0-9]{4} Ada|"
    r"(?P<jetson>(?:Jetson[ -]AGX|Jetson|AGX)[ -](?:Orin|Xavier|Thor|Nano|TX[12]|T[45]000)|Orin[ -]N(?:X|ano))|"
    r"(?P<short>[AHBLKMPTV][0-9]{1,4}[A-Z]{0,2}|GB[0-9]{2,3}|GH[0-9]{3}|MX[0-9]{3}|9[0-9]0MX))(?!\w|\.\w)"
    r"(?:[ -](?:Ti|SUPER|PCIe|SXM[0-9]?|NVL|Laptop|Mobile|GPU|Ada|SFF|Pro|Blackwell|Generation|Server|Workstation|"
    r"Edition|Max-Q|D|XP|NX|Nano|[0-9]{1,3} ?GB)(?!\w)){0,6}",
    # Letters of other scripts adjoin a name without a blank: only ASCII makes words here.
    re.IGNORECASE | re.ASCII,
)
_NUMBER = r"(?:10[5-8]0|16[56]0|20[678]0|30[5-9]0|40[5-9]0|50[5-9]0)(?: ?(?:ti|super|d)\b){0,2}"

_LAPTOP = re.compile(r"[ -]?(?:laptop|mobile)\b", re.IGNORECASE)
_OF_GPUS = re.compile(r"\b(?:GPUs?|NVIDIA|Tesla|card|nodes?|cluster|cuda)\b", re.IGNORECASE)
_OWNED = re.compile(
    r"\b(?:have|got|own|using|use|with|on|my|our|run(?:ning)?) (?:an? |the |my |our |[1-9] ?x ?|single |dual ){0,2}$",
    re.IGNORECASE,
)
"""What must stand beside, or before, a name as short as A10."""
_SHORT, _NEAR = 3, 40


@cache
def _number_alone() -> re.Pattern[str]:
    """The number of a GeForce without its family, where what stands beside tells that it is one."""
    card = words_for("graphics-card")
    return re.compile(
        rf"\b(?:my|an?|the|single|dual|on|one|two|[1-9] ?x|GeForce|NVIDIA|GPU) (?:new |single )?(?P<model>{_NUMBER})"
        r"(?!\w|\.\w| ?Mi?B)"
        r"|(?<![\w.-])(?P<named>[1-5][0-9]{2}0 ?(?:ti|super)(?: super)?)(?![\w.])"
        rf"|(?<![\w.-])(?P<sized>{_NUMBER})(?=[ -]?(?:RTX|laptop|mobile|[0-9]{{1,2}} ?GB)\b)"
        r"|^\W{0,6}(?:[\w ]{0,20}\bGPU\b|(?:graphics|video|display)[ _]?(?:card|adapter)|VGA|card|accelerator|"
        rf"{card})[^:=|\n]{{0,30}}[:=|]\s?(?P<labelled>{_NUMBER})(?![\w.])"
        rf"|(?:{card}|\b(?:GPU|(?:graphics|video) cards?))(?:型[号號])?\s?(?:is|ist|est|es|é|[是为為は는은])?"
        rf"\s?(?P<beside>{_NUMBER})(?!\w|\.\w| ?Mi?B)"
        rf"|(?<![\w.-])(?P<times>(?!1){_NUMBER}) ?[x\xd7*] ?[1-8](?![\w.])"
        rf"|[单單双雙两兩一二三四八0-9][张張卡块塊]\s?(?P<counted>{_NUMBER})(?!\w|\.\w)"
        rf"|(?<![\w.-])(?P<before>{_NUMBER})\s?(?:的|の)?(?={card}|GPUs?\b(?![ -]hours)|(?:graphics|video) cards?\b)",
        re.IGNORECASE | re.ASCII,
    )


def models(part: str) -> Iterator[tuple[int, str]]:
    """The models that a part of a line names, with the place of each."""
    beside = _OF_GPUS.search(part) is not None
    for found in _MODEL.finditer(part):
        name, short = found[0].strip(" -"), found["short"]
        if short and short == name and name[-1:] in "sS" and find_model(name) is None:
            name = short = name[:-1]  # several: "a node with H100s"
        if short and len(short) <= _SHORT and not beside and not _OWNED.search(part[: found.start()][-_NEAR:]):
            continue
        if (short or found["jetson"]) and find_model(name) is None:
            continue
        yield found.start(), name if short else " ".join(re.split(r"[ -]+", name))
    for found in _number_alone().finditer(part):
        number = next(text for text in found.groups() if text)
        if find_model(number):
            laptop = " Laptop GPU" if _LAPTOP.match(part[found.end() :]) else ""
            yield found.start(), f"{'RTX' if number[0] in '2345' else 'GTX'} {number}{laptop}"


def same_model(name: str) -> str:
    """What two ways to write one model have in common."""
    row = find_model(name)
    return row.name if row else name.lower()
