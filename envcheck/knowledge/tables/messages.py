"""Tables of text: lines that name a problem, what helps, how people and programs word things, secrets."""

from typing import Annotated, Any, Literal

import msgspec

from envcheck.knowledge.tables import Row


class FragmentRow(Row, frozen=True, kw_only=True):
    """A part that patterns of error lines share, or what rules look for in the lines of a text."""

    id_of = "fragment/{0.name}"
    name: str  # As patterns write it between double braces, and as code asks for it
    pattern: str


class ErrorRow(Row, frozen=True, kw_only=True):
    """Lines that name a problem."""

    id_of = "error/{0.priority}"
    problem: str  # Name of the rule
    priority: Annotated[int, msgspec.Meta(ge=1)]  # Of several rows that match a line, the lowest names its problem
    said_by: Literal["driver-answered", "framework-ran"]
    status: Literal["fail", "warn", "note"] = "fail"  # What the line alone proves
    lines: tuple[str, ...] = ()  # Regular expressions; case does not count
    codes: tuple[int, ...] = ()  # With which a call of CUDA's driver or runtime ends
    after: tuple[str, ...] = ()  # Problems whose consequence such a line is: beside one of them it says nothing new
    beside: str = ""  # What another line of the same text must match, where one line alone does not tell the problem
    unless: str = ""  # What no line of the same text may match: it shows that there is no problem, or another one
    programs: dict[str, str] = {}  # Whose line it is, if another's than PyTorch's: names, and what such lines match
    costs_speed: bool = False
    """Whether it tells what costs speed by design: its note is a warning where another line says that a program is
    slow."""


class FixText(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fix that is the same on every machine."""

    text: str
    command: tuple[str, ...] = ()
    who: Literal["user", "root", "cluster-admin"] = "user"
    risk: str = ""


class RuleRow(Row, frozen=True, kw_only=True):
    """What follows from the finding of a rule that has a function, and what helps wherever it is found."""

    id_of = "rule/{0.name}"
    name: str
    explains: tuple[str, ...] = ()  # Names of the rules whose findings are consequences of it
    explains_failing: tuple[str, ...] = ()  # Further consequences of its failures, but not of its warnings
    told_by: tuple[str, ...] = ()
    """The rules that report the same fault more fully; they explain it where they name the same packages (or files)."""
    yields_to: tuple[str, ...] = ()
    """Names of the rules whose findings on the same subject, or the machine, suppress its own; ``*``: any."""
    fixes: tuple[FixText, ...] = ()  # Offered where the rule's outcome has none, and no function finds them


class ProblemRow(RuleRow, frozen=True, kw_only=True):
    """A problem that error lines alone reveal: a rule without a function, whose page is ``docs/rules/NAME.md``."""

    id_of = "problem/{0.name}"
    title: str  # The problem in a sentence, without a full stop
    layer: Literal["gpu", "kernel", "driver", "fabric", "container", "toolkit", "library", "framework"]
    scope: Literal["node", "container", "env"] = "env"
    since: str = "0.1"  # The minor release of envcheck that brought it


class RemedyFix(FixText, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A fix with words of the text and facts of the machine, each between braces: without one of them it is none."""

    installs: tuple[str, ...] = ()  # Requirements; ``command`` is then that of the environment's installer
    removes: tuple[str, ...] = ()
    index: str = ""
    build: tuple[str, ...] = ()  # Options for what is compiled
    variables: tuple[str, ...] = ()
    again: bool = False  # Also where the same release is there, and without what it requires
    then: bool = False  # Whether it is the next step after the fix before it, and no alternative
    when: str = ""  # What a line must match, or a word of the machine after its name, as ``vllm 0.11.0``: the program
    otherwise: bool = False  # Whether it stands in for the fix before it, where that one is not offered

    def __post_init__(self) -> None:
        if not self.installs and (self.variables or self.build or self.index):
            raise ValueError("variables, build and index are for what it installs, and it installs nothing")


class RemedyRow(Row, frozen=True, kw_only=True):
    """What ends reports of one kind, where it says more than what the rule offers for its problem."""

    id_of = "remedy/{0.name}"
    name: str
    problems: tuple[str, ...]  # Names of the rules whose findings it remedies
    lines: tuple[str, ...] = ()
    """One of these regular expressions matches a line of the text; groups with a name are words. None: any text."""
    beside: str = ""  # What another line of the text must match; its groups are words too
    unless: str = ""  # What no line of the text may match
    facts: dict[str, str] = {}  # Words of the machine: what each must match whole, or which word of the text it is
    title: str = ""  # The problem in a sentence, where that of the rule says too much or too little
    message: str = ""  # What such lines mean
    fixes: tuple[RemedyFix, ...]


class FailureRow(Row, frozen=True, kw_only=True):
    """Words by which a line is known to speak of a failure, whatever it means."""

    id_of = "failure/{0.where}"
    where: Literal["word", "anywhere", "as-written", "request", "harmless"]
    """``word``, at the beginning of a word, and ``anywhere``: in lower case. ``as-written``; ``request``, as written
    too: the line asks for CUDA. ``harmless``: the line speaks of no failure after all; case does not count.
    """
    patterns: tuple[str, ...]  # Regular expressions


class ReadingRow(Row, frozen=True, kw_only=True):
    """A line of pasted text, and what it tells."""

    id_of = "reading/{0.importer}/{0.name}"
    importer: str  # The format that it belongs to, which a report names
    name: str
    rank: Literal["output", "message", "prose"]
    """What counts where two formats tell different things: output of a tool before a message before prose."""
    has: tuple[str, ...] = ()  # Texts in lower case of which a line has one: the patterns are tried on such lines alone
    patterns: tuple[str, ...]  # Regular expressions; the first that matches in the line, or a whole answer, counts
    unless: str = ""  # Regular expression of lines that tell it of something else: a wish, a requirement
    beside: str = ""  # What else the text has, in lower case
    above: str = ""  # Regular expression of the line above
    asked: str = ""  # Regular expression for the question in Python to which the patterns are answers
    fills: dict[str, Any]  # The records and their fields: ``{driver = {cuda = "{major}.{minor}"}}``, by the groups


class StepRow(Row, frozen=True, kw_only=True):
    """What to do next about a failed trial whose error names no problem by itself."""

    id_of = "step/{0.priority}"
    priority: Annotated[int, msgspec.Meta(ge=1)]  # Where several rows match an error, the lowest priority is shown
    lines: tuple[str, ...]  # Regular expressions; case does not count
    text: str
    command: tuple[str, ...] = ()  # ``PYTHON`` and ``MODULE``: the environment's interpreter, the imported module


class SpokenRow(Row, frozen=True, kw_only=True):
    """How the name of a component is written."""

    id_of = "spoken/{0.name}"
    name: str  # The component, by its name in other rows
    pattern: str  # Regular expression for the whole name; case does not count


class WordingRow(Row, frozen=True, kw_only=True):
    """How people and programs word something that is looked for in text."""

    id_of = "wording/{0.name}"
    name: str  # As code asks for it, and as other patterns write it between double braces
    flags: str = ""  # ``i``: case does not count; ``m``: ``^`` and ``$`` are a line's; ``a``: only ASCII makes words
    patterns: tuple[str, ...]  # Alternatives of one regular expression


class WordRow(Row, frozen=True, kw_only=True):
    """Words of other languages in sentences about a machine."""

    id_of = "word/{0.means}"
    means: Literal["driver", "version", "graphics-card", "system", "answers", "own", "another", "wanted"]
    """``answers``: between a question and its answer; ``own``: says that something is here; ``another``: the sentence
    is about another machine, a wish or a condition; ``wanted``: before a version that is asked for or gone.
    """
    said: dict[str, tuple[str, ...]]  # Regular expressions, by the name of the locale; case does not count


class TranslationRow(Row, frozen=True, kw_only=True):
    """How a system program words a message in other languages."""

    id_of = "translation/{0.english}"
    english: str  # As it is printed without a locale; ``{1}``, ``{2}`` stand for words that both texts hold
    said: dict[str, tuple[str, ...]]  # The same, by the name of the locale; more than one where releases differ


class XidRow(Row, frozen=True, kw_only=True):
    """An event that NVIDIA's kernel module logs by its number."""

    id_of = "xid/{0.number}"
    number: Annotated[int, msgspec.Meta(ge=1)]
    name: str  # What the driver calls it
    kind: Literal[
        "program", "consequence", "memory", "link", "bus", "firmware", "microcontroller", "hang", "power", "recovery",
        "other", "unused",
    ]  # fmt: skip
    """``program``: most often a program's fault; ``consequence``: of an earlier event."""
    action: Literal[
        "restart-program", "reset", "reboot", "check-links", "check-hardware", "update", "see-earlier", "see-text",
        "support", "none",
    ]  # fmt: skip
    """What NVIDIA says to do first."""
    problem: str  # Name of the rule about it


class AnswerRow(Row, frozen=True, kw_only=True):
    """A status that the driver's own libraries return."""

    id_of = "answer/{0.api}/{0.code}"
    api: Literal["cuda", "nvml"]  # ``CUresult``, and what the runtime adds to it, or ``nvmlReturn_t``
    code: Annotated[int, msgspec.Meta(ge=1)]
    problem: str  # Name of the rule that explains it most exactly
    meaning: str


class SecretRow(Row, frozen=True, kw_only=True):
    """Keys that are known by how they begin."""

    id_of = "secret/{0.name}"
    name: str  # Whose they are
    starts: tuple[Annotated[str, msgspec.Meta(pattern=r"^[\w.~-]{3,}$")], ...]
    of: Literal["letters", "capitals", "word", "dotted", "base64"]  # What follows is made of
    least: Annotated[int, msgspec.Meta(ge=8, le=500)]  # Characters of it, at least
