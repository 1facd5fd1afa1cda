"""What looks like a secret, for every format and wherever a text comes from: the one list.

Values under telling names, credentials in addresses and on command lines, private keys, and keys that are known by how
they begin (``[[secret]]`` in the matrix).
"""

from __future__ import annotations

import re
from functools import cache

import msgspec

from envcheck.text.lazy import lazy_pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envcheck.knowledge.tables.messages import SecretRow

MASK = "***"

_PHRASE = (
    r"PASS(?:WORD|WD|PHRASE|CODE)|PASSWORT|KENNWORT|WACHTWOORD|MOT[ _-]?DE[ _-]?PASSE|CONTRASE(?:N|Ñ)A|SENHA"
    r"|(?<![A-Z])(?:PAROLA|MDP)(?![A-Z])|PASSORD|L(?:O|Ö)SENORD|ADGANGSKODE|SALASANA|HAS(?:L|Ł)O(?![A-Z])|HESLO(?![A-Z])"
    r"|JELSZ(?:O|Ó)|LOZINKA|(?:S|Ş)IFRE|ПАРОЛЬ|密码|密碼|パスワード|비밀번호"
)
"""A password, in the languages in which programs and people write."""
_API_KEY = r"(?:API|ACCESS|PRIVATE|ENCRYPTION)[-_. ]?KEY"
_STRONG = lazy_pattern(
    rf"TOKEN(?!I[ZS])|SECRET|{_PHRASE}|CREDENTIAL|AUTHORIZATION|SESSION_?(?:ID|KEY)|{_API_KEY}"
    r"|(?:DB|PG|SQL|SMTP|IMAP|FTP|LDAP|MAIL|PROXY|REDIS|MONGO|USER|ROOT|ADMIN)_?(?:PASS|PWD|PW)(?![A-Z])",
    re.IGNORECASE,
)
"""Tell of a secret anywhere in a name."""
_WEAK = frozenset(("AUTH", "COOKIE", "COOKIES", "CRED", "CREDS", "DSN", "JWT", "KEY", "KEYS", "OTP", "PASS", "PAT"))
_ENDS = frozenset(("PW", "PWD", "SALT", "SESSION", "SESSIONID", "SESSIONKEY", "SIG", "SIGNATURE", "SID"))
"""Tell of one as a word of a name, or as its last word."""
_WORD = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_HARMLESS = lazy_pattern(r"^-*(?:XLA|TF_XLA|LLVM|MLIR)_|^OLDPWD$|^DESKTOP_SESSION$", re.IGNORECASE)
"""Flags of compilers, whose passes have names, and what every shell sets."""
_PLACE = lazy_pattern(r"(?:^PWD|FILE|PATH|DIR|FOLDER)$", re.IGNORECASE)
_FOLDER = lazy_pattern(r"(?:~|\.{1,2})?(?:[/\\]|$)|[A-Za-z]:[/\\]")
"""``HF_TOKEN_PATH=/run/token`` and the working folder: where something is, and no secret."""
_NO_VALUE = lazy_pattern(
    r"(?:no|not|yes|none|null|nil|unset|missing|required|empty|true|false)\b[.!?]?$", re.IGNORECASE
)
"""``using password: NO`` says whether there is one."""
_SPECIAL = lazy_pattern(r"^-*(?:PAD|EOS|BOS|UNK|SEP|MASK|CLS|STOP)_TOKEN", re.IGNORECASE)  # Tokens of a language model
_NUMBER = lazy_pattern(r"[\d.,]{1,9}[kKmM]?")  # ``max_tokens=4096``: how many, and no key

# Texts: ``re`` compiles each when it is first needed. Most reports need none, and all took longer than the search.
_ASSIGNED = r"""(?ix)
    (?: (?<![\w.-]) | (?<=%[0-9A-F]{2}) )
    (?: (?P<name>[^\W\d][\w.-]{0,80}|(?:API|ACCESS|PRIVATE|SECRET)[ ]KEY|mot[ ]de[ ]passe|--?[A-Za-z][\w.-]{0,80})
            (?P<quote>\\?["']|)(?P<sign>\s*[=:\uff1a]=?>?\s*|%(?:25)?3[DA](?:%(?:25)?2[027])?)
          | (?P<option>--?[A-Za-z][\w.-]{0,80})(?P<gap>[ ]+)(?=[^-\s]) )"""
_VALUE = r"""\{[^{}\s]+\}|\\?"[^"\\]*\\?"|\\?'[^'\\]*\\?'|\\?["'][^\s"'\\]+|[^\s"',;&<>)}\]]+"""
"""``HF_TOKEN=…``, ``"password": "…"``, ``--token …``, ``&X-Amz-Signature=…`` within a text."""
_ENCODED_END = lazy_pattern(r"%(?:25)?(?:2[026]|3B|0A)", re.IGNORECASE)
"""Ends a value in an encoded query: ``token%3D…%26page%3D1``."""
_SPOKEN = rf"""(?ix)(?<![\w.-])(?:
        (?P<password>{_PHRASE}|{_API_KEY}|APIKEY) | (?P<other>TOKEN|SECRET|KEY|CREDENTIALS?))["'`]?
        (?P<gap>\s{{1,8}}(?:is|was|are|ist|lautet|est|es|será|to|of)\b)?[\s:]{{1,8}}
        ["'`]?(?P<value>[^\s"'`<>=()\[\]{{}},;]{{6,}})"""
"""``the password is …``, ``apikey …``: in prose only what looks random is one."""
_HEADER = r"""(?ix)(?P<name>\b(?:(?:proxy-)?authorization|(?:set-)?cookie)\b["']?\s*[:=]\s*["']?
        (?:(?:bearer|basic|token|digest|negotiate|apikey)\s+)?)(?P<value>[^\s"'][^"'\r\n]*)
        |(?P<scheme>\bbearer(?:\s+|%(?:25)?20))(?P<key>[^\s"',;]{6,})"""
"""What follows is secret to the end of the line."""
_HEADERS = ("authorization", "proxy-authorization", "cookie", "set-cookie", "bearer")
_ADDRESSED = r"""(?:(?:[a-z\d-]+\.)+[a-z]{2,}|localhost|\d{1,3}(?:\.\d{1,3}){3})(?::\d{1,5})?(?:[/?\#\s"'<>]|$)"""
"""A host that cannot be part of a password by its looks."""
_REFERENCE = r"""(?!\d{1,3}(?:\.\d{1,3}){3}(?::\d|/))(?:v?\d|sha\d+:|main\b|master\b|HEAD\b)[^\s@"'<>]*(?:[\s"'<>]|$)"""
"""What stands behind the ``@`` of a repository or an image."""
_LOGIN = r"""(?xm)(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,30}://)
        (?:[^\s/"'<>]{1,300}@
          | [^\s/@:\["'<>]{0,99}:(?!\d{1,5}/)[^\s@"'<>]{1,300}@
          | (?!localhost:)[^\s/@:.\["'<>]{0,99}:[^\s@"'<>]{1,300}@(?!REFERENCE)
          | [^\s/@:\["'<>]{0,99}:[^\s@"'<>]{1,300}@(?=(?:[a-z\d-]+\.)+[a-z]{2,}(?:[:/?\#\s"'<>]|$)))
        (?:(?:(?!://)[^\s"'<>]){0,600}@(?=ADDRESSED)
          | (?:(?!ADDRESSED)(?:(?!://)[^\s@"'<>]){0,300}@(?!REFERENCE)){1,8})?""".replace(
    "REFERENCE", _REFERENCE
).replace("ADDRESSED", _ADDRESSED)
_ENCODED_LOGIN = r"(?i)(?P<scheme>[a-z][a-z0-9+.-]{0,30}%3A%2F%2F)(?:(?!%2F|%3F|%40)[^\s\"'<>&]){1,300}%40"
"""A password may hold a slash; what follows a port is a path, unless a name without a domain stands before the port,
or a name with one behind the ``@``. What follows the ``@`` is still password where another one follows, unless a host
with a domain begins there."""
_CHANNEL = r"""(?xi)(?P<host>(?:://[^\s/"'<>]{1,300}|(?<![\w./@-])(?:[\w-]{1,63}\.){1,8}[a-z]{2,24}(?::\d{1,5})?)
        (?:/[^\s/"'<>]{1,100}){0,6}?/t/)(?P<token>[^\s/"'<>?\#]{1,300})(?P<more>/(?!\d+(?:[/?\#\s"'<>),;.]|$)))?"""
"""``/t/TOKEN/`` in the address of a conda channel; in that of a forum a topic and its number follow."""
_UUID = lazy_pattern(r"[0-9a-f]{8}-[0-9a-f]{4}-", re.IGNORECASE)
_COMMAND = r"""(?x)
    (?P<before>(?<!\S)(?:-u|-U|--user|--proxy-user)[\s=]*["']?[^\s:"'/=-][^\s:"'/]{0,99}:)(?!\d+(?:\s|$))
           (?P<login>[^\s"']{1,300})
      | (?P<typed>\bsetenv\s+\w{0,80}?(?:TOKEN|SECRET|PASSW|_KEY)\w{0,80}\s+
          |\bwandb\s+login\s+(?:-\S{1,200}\s+){0,4}(?=[^\s-])
          |\blogin\s+\S+\s+password\s+|<password>)(?P<bare>[^\s<*]+)
      | (?P<program>\b(?:mysql\w*|mariadb[\w-]*|sshpass|7za?|unzip|(?:docker|podman|helm|az|oc)\s[^\n|;&]{0,80}?login)\b
          (?=\s)[^\n|;&]{0,200}?\s-[pP]\s*|(?<!\S)-u\s*[^\s:-]+\s+-p\s*|\bredis-cli\b[^\n|;&]{0,200}?\s-a\s*)(?P<password>[^\s-]\S*)"""
"""``-u user:password``, ``mysql -ppassword``."""
_TYPED = (
    *("-u", "--proxy-user", "setenv", "login", "<password>", "mysql", "mariadb", "sshpass", "7z", "unzip"),
    "redis-cli",
)
"""Each of them has one of these, in small letters."""
_PRIVATE = lazy_pattern(r"(-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)[\s\S]*?(?:(?=-----END)|\Z)")
_BODY = lazy_pattern(r"(?<![\w+/=.-])[A-Za-z0-9+/]{64}(?:[A-Za-z0-9+/]{6}){0,2}(?![\w+/=.-])")
"""A line from the middle of a key: base64 of the length at which PEM, OpenSSH and MIME break it; no digest is one."""
_BODY_LEAST = 64
_FOLDERS = 6  # A text of that length with more slashes is a path
_TICKET = r"eyJ[\w-]{8,2000}\.[\w-]{8,8000}\.[\w-]{8,}"  # JSON Web Token, RFC 7519

_RANDOM_TOLD, _RANDOM_MIXED, _RANDOM = 8, 12, 20
"""Letters and digits from which a word in prose is not a name: after ``is``, in both cases, and in one case."""

_ALPHABETS = {
    "letters": "[A-Za-z0-9]",
    "capitals": "[A-Z0-9]",
    "word": r"[\w-]",
    "dotted": r"[\w.=-]",
    "base64": "[A-Za-z0-9+/_=-]",
}

_ADDRESS = "://"  # It holds a secret only before an ``@``: most addresses are of documentation
_HINTS = (
    *("token", "secret", "passw", "passp", "passc", "credential", "authori", "bearer", _ADDRESS, "-----begin", "eyj"),
    *("dsn", "_key", "-key", ".key", " key", "key=", "key_", "keys_", "key-", "keys=", "apikey", "accesskey", "keyb"),
    *("privatekey", "encryptionkey", "cookie", "cred", "jwt", "auth_", "_auth", "-auth", "auth-", "session_"),
    *("-session", "_session", "sessionid", "sessionkey", "signature", "mysql", "mariadb", "sshpass", " login"),
    *("setenv", "7z ", "7za "),
    *("unzip", "redis-cli", "-u ", "-u=", "--user", "--proxy-user", "%3d", "%3a", "%253d", "kennwort", "wachtwoord"),
    *("mot de passe", "motdepasse", "mot_de_passe", "contrase", "senha", "parola", "mdp", "passord", "senord"),
    *("adgangskode", "salasana", "haslo", "has?o", "heslo", "jelsz", "lozinka", "ifre"),
    *(word + sign for word in ("auth", "otp", "pass", "pat", "pw", "pwd") for sign in ("=", " =", '":', "':")),
    "/t/",
    *(word + sign for word in ("salt", "session", "sid", "sig") for sign in ("=", " =")),
    *("_pass", "-pass", "pass_", "_pw", "_sig", "-sig", "_salt", "_otp", "otp_", "pat_", "_sid", "_pat:"),
)
"""Every text that the patterns change has one of these, in any case, in ASCII and without backslashes; most have none,
and are passed over at once.
"""
_MOST_PIECES, _MOST_TEXTS = 100_000, 1000  # Remembered until there are as many
_FOREIGN = ("пароль", "密码", "密碼", "パスワード", "비밀번호")  # Words that ASCII says nothing of


class Hints(msgspec.Struct, frozen=True):
    """What gives away that there may be a secret."""

    words: tuple[str, ...]
    starts: tuple[str, ...]  # Beginnings of keys, in these letters
    bodies: bool = True  # Whether lines of a key may be there

    def absent(self, text: str) -> bool:
        """Whether there is surely no secret in ``text``, or in records of which it is the JSON."""
        if not text.isascii() and any(word in text.lower() for word in _FOREIGN):
            return False
        text = _plain(text)
        lowered = text.lower().replace("\\", "")
        for word in self.words:
            if word in lowered and (word != _ADDRESS or "@" in text):
                return False
        for start in self.starts:
            if start in text:
                return False
        return not (self.bodies and len(text) >= _BODY_LEAST and any(map(_is_body, _BODY.finditer(text))))


def _is_body(found: re.Match[str]) -> bool:
    """Whether it is base64 of bytes, and no digest in hexadecimal and no path."""
    line = found[0]
    if line.startswith("/") or line.count("/") >= _FOLDERS or re.match("[0-9a-fA-F]{64}", line):
        return False
    capitals, small = sum(map(str.isupper, line)), sum(map(str.islower, line))
    return capitals > 1 and small > 1 and any(map(str.isdigit, line))


def _plain(text: str) -> str:
    """In ASCII, where looking for something costs a fraction."""
    return text if text.isascii() else text.encode("ascii", "replace").decode()


class Texts:
    """The texts of reports that this process looked through: of one machine, or of many alike, most are the same."""

    def __init__(self) -> None:
        self._pieces: set[str] = set()
        self._hints = Hints((_ADDRESS,), ())
        self._clean: set[str] = set()

    def hints_in(self, text: str) -> Hints:
        """Those in ``text``, or in earlier ones; to look for these few in each part of it costs less than for all."""
        # JSON repeats fields and folders: each is looked through once. No hint but the address's holds what parts them.
        pieces = dict.fromkeys(_plain(text).replace(',"', "/").split("/"))
        new = f"/{'/'.join(piece for piece in pieces if piece not in self._pieces)}/"
        self._pieces = self._pieces if len(self._pieces) < _MOST_PIECES else set()
        self._pieces.update(pieces)
        lowered, known, every = new.lower().replace("\\", ""), self._hints, every_hint()
        words = tuple(word for word in every.words if word in known.words or word in lowered)
        self._hints = Hints(words, tuple(start for start in every.starts if start in known.starts or start in new))
        return self._hints

    def clean(self, text: str) -> bool:
        """Whether there is surely no secret in ``text``; ``hints_in`` was asked about the report that it is of."""
        if text not in self._clean and self._hints.absent(text):
            self._clean = self._clean if len(self._clean) < _MOST_TEXTS else set()
            self._clean.add(text)
        return text in self._clean


@cache
def every_hint() -> Hints:
    """All that this module and the matrix know."""
    return Hints(_HINTS, tuple(start for row in _rows() for start in row.starts))


def masked(text: str, hints: Hints | None = None) -> str:
    """``text`` with every secret in it replaced by ``***``; ``hints`` are those of the texts that it is from."""
    if (hints or every_hint()).absent(text):
        return text
    text = _PRIVATE.sub(rf"\1{MASK}", text)
    text = _BODY.sub(lambda found: MASK if _is_body(found) else found[0], text)
    lowered = text.lower()
    # A pattern that cannot match for want of a word is not compiled, which takes longer than all searches.
    if _ADDRESS in text and "@" in text:
        text = re.sub(_LOGIN, rf"\g<scheme>{MASK}@", text)
    if "%3a%2f%2f" in lowered:
        text = re.sub(_ENCODED_LOGIN, rf"\g<scheme>{MASK}%40", text)
    if "/t/" in lowered:
        text = re.sub(_CHANNEL, _in_channel, text)
    if "authorization" in lowered or "cookie" in lowered or "bearer" in lowered:
        text = re.sub(_HEADER, _headed, text)
    # Of what is assigned, only what follows a telling name is passed over: ``https:`` is a name, too.
    pieces, place, left = [], 0, 0
    while match := re.compile(_ASSIGNED).search(text, place):
        place = match.end("name") if match["name"] else match.end("option")
        if _is_telling_in_text(match) and (found := re.compile(_VALUE).match(text, match.end())):
            value = found[0]
            if (match["sign"] or "").startswith("%"):
                value = _ENCODED_END.split(value, maxsplit=1)[0]
            bare = value.strip("\\\"'")
            of_word = ":" in (match["sign"] or "") and _NO_VALUE.match(bare)
            if bare and not bare.startswith(MASK) and not of_word and not _is_harmless(match["name"] or "", bare):
                start = match.end() + value.index(bare)
                pieces += [text[left:start], MASK]
                left = start + len(bare)
            place = max(place, match.end() + len(value))
    text = "".join([*pieces, text[left:]])
    if any(word in lowered for word in _TYPED):
        text = re.sub(_COMMAND, _typed, text)
    text = re.sub(_SPOKEN, _spoken, text)
    begun = tuple(row for row in _rows() if any(start in text for start in row.starts))
    return _keys(begun).sub(MASK, text) if begun or "eyJ" in text else text


def masked_value(name: str, value: str) -> str:
    """``value`` of a variable called ``name``."""
    return MASK if value and _is_telling(name) and not _is_harmless(name, value) else masked(value)


def _is_telling(name: str) -> bool:
    """Whether what is called ``name`` is a secret: ``HF_TOKEN``, ``githubPat``; not PATH, not KEYBOARD."""
    if _STRONG.search(name):
        return _SPECIAL.search(name) is None
    if _HARMLESS.search(name):
        return False
    words = [word.upper() for word in _WORD.findall(name)]
    return not _WEAK.isdisjoint(words) or any(word in _ENDS for word in words[-1:])


def _is_harmless(name: str, value: str) -> bool:
    """Whether ``value`` is a number of tokens, or the place of a secret."""
    if re.search(r"TOKENS?(?:_ID|_PER_\w+)?S?$", name, re.IGNORECASE) and _NUMBER.fullmatch(value):
        return True
    return _PLACE.search(name) is not None and _FOLDER.match(value) is not None


def _is_telling_in_text(match: re.Match[str]) -> bool:
    """Within prose a name tells less: ``key: value`` speaks of some key."""
    name = match["name"] or match["option"]
    if name.lower() in _HEADERS or not _is_telling(name):
        return False
    if _STRONG.search(name) or match["option"] or "_" in name or "-" in name:
        return True
    if ":" in match["sign"]:
        return match["quote"] != "" and name.upper() in ("PASS", "PWD", "PW", "PAT", "AUTH", "OTP", "JWT")
    in_address = match["sign"].startswith("%") or match.string[max(0, match.start() - 1) : match.start()] in ("?", "&")
    if in_address or name.upper() not in ("KEY", "KEYS") or name.isupper():
        return True
    value = re.match(r"[\"']?([A-Za-z0-9]{12,200})(?![\w.])", match.string[match.end() : match.end() + 202])
    return value is not None and _is_random(value[1])


def _in_channel(match: re.Match[str]) -> str:
    """At the end of an address that does not speak of conda, only what looks random is a token."""
    if not match["more"]:
        a_topic = match.string.startswith("/", match.end())
        looks_random = _is_random(match["token"]) or _UUID.search(match["token"])
        if a_topic or not (looks_random or "conda" in match["host"].lower()):
            return match[0]
    return f"{match['host']}{MASK}{match['more'] or ''}"


def _headed(match: re.Match[str]) -> str:
    before, value = (match["name"], match["value"]) if match["name"] else (match["scheme"], match["key"])
    return match[0] if value.startswith(MASK) else f"{before}{MASK}"


def _typed(match: re.Match[str]) -> str:
    before = match["before"] or match["typed"] or match["program"]
    return match[0] if MASK in match[0][len(before) :] else f"{before}{MASK}"


def _is_random(value: str) -> bool:
    mixed = value != value.lower() and value != value.upper() and any(map(str.isdigit, value))
    return value.isalnum() and len(value) >= (_RANDOM_MIXED if mixed else _RANDOM) and not value.isalpha()


def _spoken(match: re.Match[str]) -> str:
    """Digits and letters together, and no version, UUID, address of memory or name with words in it."""
    value = match["value"].rstrip(".:!?")
    letters, digits = re.search("[A-Za-z]", value), re.search(r"\d", value)
    if not (letters and digits) or re.match(r"0x|v?\d+\.\d|(?:sha|md5|cuda|cpu|gpu|sm_)", value, re.IGNORECASE):
        return match[0]
    if not (
        match["password"] or _is_random(value) or (match["gap"] and value.isalnum() and len(value) >= _RANDOM_TOLD)
    ):
        return match[0]
    start = match.start("value") - match.start()
    return match[0][:start] + MASK + match[0][start + len(value) :]


@cache
def _keys(rows: tuple[SecretRow, ...]) -> re.Pattern[str]:
    shapes = [f"(?:{'|'.join(map(re.escape, row.starts))}){_ALPHABETS[row.of]}{{{row.least},}}" for row in rows]
    return re.compile(rf"(?<![A-Za-z0-9_])(?:{'|'.join([_TICKET, *shapes])})")


def _rows() -> tuple[SecretRow, ...]:
    from envcheck.knowledge.load import load_matrix  # noqa: PLC0415 - judging brings it anyway

    return load_matrix().secrets
