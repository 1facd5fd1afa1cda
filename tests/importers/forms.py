"""One set of facts in the forms in which people paste it, and other facts without an error line, with what follows."""

from pathlib import Path

from tests.documents import texts

_DOCUMENT = Path(__file__).with_name("data") / "forms.txt"
FORMS: dict[str, tuple[str, tuple[str, ...]]] = {
    name: (text, tuple(expected.split(", "))) for name, expected, text in texts(_DOCUMENT.read_text(encoding="utf-8"))
}
"""Name of the form → the text, and the rules that may be its primary cause (``none``: nothing is wrong)."""
