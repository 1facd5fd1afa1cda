"""What keys do: bound, told on one page, and offered in the palette."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from envcheck.tui.tabs import TABS

BINDINGS: list[BindingType] = [
    Binding("q", "quit", "quit"),
    Binding("question_mark", "keys", "keys"),
    *(Binding(str(number), f"tab('{name}')", name, show=False) for number, name in enumerate(TABS, 1)),
    Binding("j", "move(1)", "down", show=False),
    Binding("k", "move(-1)", "up", show=False),
    Binding("c", "copy", "copy fix"),
    Binding("d", "deep", "deep"),
    Binding("b", "bench(False)", "bench"),
    Binding("B", "bench(True)", "bench all", show=False),
    Binding("r", "again", "re-run"),
    Binding("x", "cancel", "cancel", show=False),
    Binding("ctrl+c", "cancel", "cancel", show=False, system=True),
    Binding("e", "export", "export"),
    Binding("g", "gpus", "GPUs", show=False),
    Binding("p", "environments", "environments", show=False),
    Binding("o", "open", "open", show=False),
    Binding("equals_sign", "compare", "compare", show=False),
    Binding("t", "look", "dark or light", show=False),
    Binding("slash", "search", "search"),
    Binding("escape", "leave_field", "leave the field", show=False),
]

KEYS = """\
1 2 3 4      overview, performance, matrix, facts
j k  arrows  up and down            enter  all about a finding
c            copy the command that mends it
r            examine again; in the facts, on a probe: that probe alone
d            deep: import each framework and let it compute on the GPU
b  B         measure the main figures; measure everything
x            cancel what is under way
g  p         the GPUs; the environments, and judge another one
e            export: JSON, Markdown, HTML, a picture ...
o  =         open a saved report; compare with a saved report
/            search the facts; in the matrix: ask something else
t            dark or light          ctrl+p  all commands
q            leave

Nothing is changed on this machine: fixes are shown, never run."""

COMMANDS = (
    ("Examine again", "Run all probes (r)", "again"),
    ("Try frameworks", "Import each and let it compute on the GPU (d)", "deep"),
    ("Measure", "The main figures (b)", "bench(False)"),
    ("Measure everything", "Some minutes (B)", "bench(True)"),
    ("Cancel", "End what is under way (x)", "cancel"),
    ("Copy the fix", "The command that mends the selected finding (c)", "copy"),
    ("Search", "The facts (/)", "search"),
    ("Export", "JSON, Markdown, HTML, a picture (e)", "export"),
    ("Open a saved report", "(o)", "open"),
    ("Compare with a saved report", "(=)", "compare"),
    ("GPUs", "One by one (g)", "gpus"),
    ("Environments", "Judge another one (p)", "environments"),
    ("Dark or light", "(t)", "look"),
)
"""Title, what it does, action."""
