"""What looks like a secret: values under telling names, credentials in addresses, and keys of well-known shapes."""

from __future__ import annotations

import re

MASK = "***"

_TELLING = r"TOKEN|SECRET|PASS(?:WORD|WD|PHRASE)|PASSWORD|CREDENTIALS?|AUTHORIZATION|(?:API|ACCESS|PRIVATE|SECRET)_?KEY"
_NAME = re.compile(rf"{_TELLING}|AUTH|(?:^|_)KEY(?:$|_)|(?:^|_)PW(?:$|_)|DSN$", re.IGNORECASE)
_HARMLESS = re.compile(r"TOKENIZERS_|^NCCL_|_AUTHOR$", re.IGNORECASE)

_ASSIGNED = re.compile(
    rf"""(?P<name>
            (?:(?<![\w.-])[A-Za-z_][\w.-]{{0,80}}?(?:{_TELLING}|_KEY|_AUTH)S?
              | \b(?:TOKEN|SECRET|PASSW(?:OR)?D|PASSPHRASE|API_?KEY|AUTHORIZATION) )
            ["']?\s*[=:]\s*(?:(?:Bearer|Basic|Token)\s+)?
          | --?(?:token|password|passwd|secret|api-key)[=\s]\s*
          | \bBearer\s+ )
        (?P<value>"[^"]*"|'[^']*'|[^\s"',;&]+)""",
    re.IGNORECASE | re.VERBOSE,
)
"""``HF_TOKEN=…``, ``password: …``, ``--token …``, ``Authorization: Bearer …`` within a text."""

_LOGIN = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,30}://)(?P<login>[^\s/@\"'<>]{1,300})@")

_SHAPES = re.compile(
    r"""(?<![\w-])(?:
        hf_[A-Za-z0-9]{16,} | gh[pousr]_[A-Za-z0-9]{20,} | github_pat_\w{20,} | glpat-[\w-]{16,} |
        sk-[\w-]{20,} | nvapi-[\w-]{20,} | pypi-AgE[\w-]{20,} | xox[abprs]-[\w-]{10,} | (?:AKIA|ASIA)[0-9A-Z]{16} |
        eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}
    )(?![\w-])""",
    re.VERBOSE,
)

_HINTS = (
    *("token", "secret", "passw", "passphrase", "credential", "authori", "key", "auth", "bearer", "://", "hf_", "ghp_"),
    *("gho_", "ghu_", "ghs_", "ghr_", "github_", "glpat-", "sk-", "nvapi-", "pypi-", "xox", "akia", "asia", "eyj"),
)
"""Every text that the patterns change has one of these; most have none, and are passed over at once."""


_NAME_HINTS = ("pw", "dsn")
"""Every name under which a value is masked has one of these, or one of the others."""


def masked(text: str) -> str:
    """``text`` with every secret in it replaced by ``***``."""
    return _masked(text) if _has_any(_HINTS, text) else text


def holds_none(encoded: str) -> bool:
    """Whether there is surely no secret in records of which this is the JSON, which writes the hints as they are."""
    return not _has_any(_HINTS + _NAME_HINTS, encoded)


def _has_any(hints: tuple[str, ...], text: str) -> bool:
    lowered = text.lower()
    for hint in hints:  # noqa: SIM110  asked of every text of a report
        if hint in lowered:
            return True
    return False


def _masked(text: str) -> str:
    text = _LOGIN.sub(rf"\g<scheme>{MASK}@", text)
    text = _ASSIGNED.sub(_assigned, text)
    return _SHAPES.sub(MASK, text)


def masked_value(name: str, value: str) -> str:
    """``value`` of a variable called ``name``."""
    if value and _NAME.search(name) and not _HARMLESS.search(name):
        return MASK
    return masked(value)


def _assigned(match: re.Match[str]) -> str:
    value = match["value"]
    quote = value[0] if value[0] in "'\"" else ""
    if _HARMLESS.search(match["name"]) or value.strip(quote or None) in ("", MASK):
        return match[0]
    return f"{match['name']}{quote}{MASK}{quote}"
