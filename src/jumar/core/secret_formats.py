"""Where a text holds what looks like a secret: tokens of well-known formats, and values behind names such as ``password``.

A format is a prefix, the letters that follow, and their least number: facts, kept in tables. What all have in common is
searched for first, by the C library: many letters and digits in a row, ``://``, ``key``. Only there more is looked at.

What programs make looks random: after names that stand before other things too (``key``, ``token``), only what looks so and
has 16 letters is a secret. What people choose does not: after ``password`` and the like, any value is one that is no code.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

LONGEST: Final = 8 << 10
"""Bytes that a secret has at most; but for blocks of keys, which may have more."""

_PLAIN = """
password passwort changeme change-me changeit secret my-secret mysecret supersecret disabled example undefined production
development localhost anonymous placeholder your-api-key required optional no-password not-set xxxxxxxx ******** unlimited
keychain username artifacts iterations decisions attempts manifest.json metrics.json redacted string boolean number integer object
"""
COMMON: Final = frozenset(_PLAIN.split())
"""Values that are no secrets, whatever stands before them; in small letters."""

_DIGITS, _SMALL, _CAPITALS = b"0123456789", b"abcdefghijklmnopqrstuvwxyz", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_ALNUM: Final = _DIGITS + _SMALL + _CAPITALS
_LETTERS: Final = {
    "hex": _DIGITS + b"abcdefABCDEF",
    "capitals": _CAPITALS + _DIGITS,
    "alnum": _ALNUM,
    "word": _ALNUM + b"_-",
    "dotted": _ALNUM + b"_-.=",
    "base64": _ALNUM + b"_-+/=",
}
# Which letters follow, how many at least, after which prefixes: as the vendors' pages and gitleaks' rules have it.
_PREFIXES: Final = """
hex 32: dapi shpat_ shpca_ shppa_ shpss_ dop_v1_ doo_v1_ dor_v1_ pul- rubygems_ sntryu_ shippo_live_ shippo_test_ p8e- squ_ sqp_
hex 32: sqa_ sgp_ glptt- sbp_ phc_ phx_ bkua_ sm_aat_
capitals 16: AKIA ASIA ABIA ACCA
capitals 40: AGE-SECRET-KEY-1
alnum 16: sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ whsec_ rzp_live_ rzp_test_ LTAI sm_pat_ sm_sat_ EZAK EZTK
alnum 30: ghp_ gho_ ghu_ ghs_ ghr_ npm_ hf_ api_org_ gsk_ pplx- xai- r8_ lin_api_ lin_oauth_ nfp_ pnu_ rdme_ glsa_ ntn_ AKCp cmVmd
alnum 30: CLOJARS_ jina_ EAAM EAAC EAAG lsv2_pt_ lsv2_sk_ aio_ ATBB cio
word 20: glpat- gldt- glrt- glft- glsoat- glcbt- glimt- gloas- glffct- glagent- GR1348941 ya29. hvs. hvb. hvr. dckr_pat_ dckr_oat_
word 20: GOCSPX- github_pat_ pypi-AgE xapp- figd_ figu_ pscale_tkn_ pscale_pw_ pscale_oauth_ tskey- sb_secret_ nvapi- tvly- pcsk_
word 20: CFPAT- CCIPAT_ vercel_ FLWSECK NRAK- NRII- NRJS- NRAA- sq0atp- sq0csp- EAAA dnkey- fio-u- HRKU- duffel_live_ duffel_test_
word 20: PMAK- xkeysib- xsmtpsib- xoxa- xoxb- xoxc- xoxd- xoxe- xoxp- xoxr- xoxs-
word 30: AIza ATATT3 ATCTT3 doppler_ tk-us- tfp_ fo1_
dotted 40: SG. dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit. dt0c01. dt0s01.
base64 32: ABSKQmVkcm9ja0FQSUtleS
"""
# The same, where names may begin like that: what follows has to look random.
_LOOSE_PREFIXES: Final = """
hex 32: SK AC
capitals 26: API-
alnum 16: sk_ fc- fw_ tgp_
alnum 40: oy2
word 16: sk- rk- csk- key- xoxo- xoxe.xoxp- xoxe.xoxb- ico- pat- re_
dotted 40: pat sl. v1.0-
"""
_RUN: Final = 20  # letters, digits, dashes, dots and underscores in a row: no token is shorter
_SIGNS: Final = b"_-.~"
_RUNS: Final = bytes(97 if byte in _ALNUM + _SIGNS else 32 for byte in range(256))
# tokens that begin with no word of their own: JWT, Discord, Telegram, Mailchimp, Terraform, Entra ID
_BARE: Final = (
    rb"eyJ[\w-]{10,}\.[\w-]{10,}\.[\w.=-]*|[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27,38}|(?<=[0-9]{8}:)[\w-]{35}(?![\w-])"
    rb"|[0-9a-f]{32}-us[0-9]{1,2}\b|\w{14}\.atlasv1\.[\w=-]{60,70}|[\w~.]{3}[0-9]Q~[\w~.-]{31,34}"
)
_ESCAPE: Final = rb"(?<=\\)(?:[nrtbf]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4})|(?<=%)[0-9A-Fa-f]{2}|(?<=[\[;])[0-9]*m"

# What leads to a secret, which is the last group; each is looked for by how it begins, in small letters.
_LEADS: Final = {
    b"://": rb"://(?:[^\s/:@\"'<>\[]{0,200}:(?![{$]|%[(s]|[0-9]{1,5}[?#])([^\s/\"'<>\[]{3,500})@|([A-Za-z0-9_-]{20,200})@"
    rb"|hooks\.slack\.com/[a-z]+/([\w/+-]{20,200})|[\w.]*discord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/[0-9]+/([\w-]{30,100})"
    rb"|[\w.-]+\.webhook\.office\.com/([^\s\"'<>]{40,400}))",
    b"authorization": rb"(?i:authorization\\?[\"']?[ \t]*[:=][ \t]*\\?[\"']?(?:bearer|basic|token|bot|apikey))[ \t]+"
    rb"([^\s\"'<,;\\\[]{6,4000})",
    b"bearer": rb"(?i:bearer)[ \t]+(?=[^\s0-9]*[0-9])([A-Za-z0-9._~+/=-]{20,4000})",
    b"-u": rb"(?:(?<![\w-])-u|(?<=-)-user|(?<=--proxy)-user)(?:[ \t]+|=|[\"'],[ \t]*)[\"']?([^\s:/\"'\\]{1,64}):"
    rb"(?!\1\b|[0-9]{1,6}\b)([^\s/:\"'\\][^\s\"'\\]{2,200})",
    # attached, or after other letters: -uuser:password, -fsSu user:password; only where it is curl's
    b"curl": rb"(?i:curl)[^\n|;&]{0,300}?[ \t\"']-[A-Za-z#]{0,6}?u[ \t]*[\"']?([^\s:/\"'\\=-][^\s:/\"'\\]{0,63}):"
    rb"(?!\1\b|[0-9]{1,6}\b)([^\s/:\"'\\][^\s\"'\\]{2,200})",
    b"1//0": rb"(1//0[\w-]{30,400})",  # Google, to refresh others
    b"fm2_": rb"(fm2_[\w+/=-]{32,4000})",  # Fly.io
    b"_eyj": rb"(?<=ops|glc)(_eyJ[\w+/=-]{32,4000})|(?<=sntrys)(_eyJ[\w+/=-]{32,4000})",  # 1Password, Grafana, Sentry
    b"-----begin": rb"(-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    # lines of base64, a last one that is short, lines such as DEK-Info
    rb"(?:(?:\\[nr]|\s)*(?:[A-Za-z0-9+/=]{16,}|=?[A-Za-z0-9+/]{1,15}={0,2}(?=(?:\\[nr]|\s)*(?:-|\Z))"
    rb"|(?:Proc-Type|DEK-Info|Comment|Version): [^\n\\]{0,200}))*"
    rb"(?:(?:\\[nr]|\s)*(?:-----END[A-Z0-9 ]{0,60}-----|-[-A-Z0-9 ]{0,60}\Z|\\?\Z))?)",
}

_NAMES: Final = (
    b"key",
    b"token",
    b"secret",
    b"passw",
    b"passphrase",
    b"_pass",
    b"pwd",
    b"auth",
    b"credential",
    b"sig=",
    b"signature=",
)
# the end of a name; a sign, or a space after --name; the value, which is the last group
_ASSIGNED: Final = (
    rb"(?:(?P<chosen>(?i:passw(?:or)?d|passphrase|_pass|pwd|secret(?:_?access_?key)?))|(?i:key|token|auth(?:orization)?|credential|sig(?:nature)?(?==)))"
    rb"(?P<more>[sS]?(?:_?[0-9A-Z][0-9A-Z_]*)?)(?:\\?[\"']\]?)?(?:[ \t]*:[ \t]*(?:str|[Ss]tring)(?=[ \t]*=))?"
    rb"(?:[ \t]*(?P<sign>:=|=>|[=:]{1,2}|>)(?P<space>[ \t]*)|[ \t]+)"
    rb"(?:[bru]?(?:\"([^\"\s]{6,4000}+)(?=[\"\s]|\Z)|'([^'\s]{6,4000}+)(?=['\s]|\Z)|`([^`\s]{6,4000}+)(?=[`\s]|\Z)"
    rb"|\\[\"']([^\"'\\\s]{6,4000}+)(?=[\\\s]|\Z))"
    rb"|(?P<bare>[^\s\"'`,;<>&\\()\[\]{}|$*@-][^\s\"'`,;<>&\\()\[\]{}|]{5,4000}+)(?![(\[]))"
)
_FLAG: Final = rb"(?:--[\w-]*|\blogin[ \t]+\S+[ \t]+)\Z"
_CODE: Final = (
    rb"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[~./].*|[A-Za-z]:\\.*|[<{$%*\[(].*"  # an attribute, a path, what stands for a value
)
_NAME: Final = rb"[A-Z]?(?:[a-z]+[A-Z]{1,4}){2,}[a-z]*"  # of a class
_CHOSEN: Final = rb"(?=.*[A-Za-z])(?=.*[0-9!@#%^&*+?=])"
_NUMBER: Final = rb"[0-9.]+(?:[eE][0-9+-]+)?"
_WORDS: Final = rb"[A-Za-z-]{8,}"
_CHANGE: Final = rb"(?<=[a-z])[A-Z0-9]|(?<=[A-Z])[0-9]|(?<=[0-9])[A-Za-z]"
_MIXTURE: Final = rb"(?=[A-Za-z0-9]{16})(?=(?:[A-Za-z]*[0-9]){3})(?=(?:[0-9]*[A-Za-z]){3})"
_MADE: Final = 16  # bytes from which on what looks random is taken for a key
_ENTROPY: Final = 2.75  # bits a byte: 16 random hexadecimal digits have 3.2, and hardly ever less than this
_BEFORE: Final = 100  # bytes in which --name is looked for


class _Compiled:
    """All that is searched for, made when the first text comes."""

    def __init__(self) -> None:
        self.prefixes: dict[bytes, list[tuple[bytes, bytes, int, bool]]] = {}
        for table in (_PREFIXES, _LOOSE_PREFIXES):
            for line in table.strip().splitlines():
                kind, _, prefixes = line.partition(": ")
                letters, least = kind.split()
                for prefix in sorted(prefixes.encode().split(), key=len, reverse=True):
                    row = prefix, _LETTERS[letters], int(least), table is _LOOSE_PREFIXES
                    self.prefixes.setdefault(prefix[:2], []).append(row)
        self.leads = [(anchor, re.compile(pattern)) for anchor, pattern in _LEADS.items()]
        self.run, self.piece = re.compile(b"a" * _RUN + b"a*"), re.compile(rb"[_.~-]+")
        self.bare, self.escape, self.assigned, self.flag = map(re.compile, (_BARE, _ESCAPE, _ASSIGNED, _FLAG))
        self.code, self.name, self.chosen, self.words = map(re.compile, (_CODE, _NAME, _CHOSEN, _WORDS))
        self.change, self.mixture, self.number = map(re.compile, (_CHANGE, _MIXTURE, _NUMBER))


@functools.cache
def _compiled() -> _Compiled:
    return _Compiled()


def secrets_in(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of whatever looks like a secret in UTF-8 bytes, in no order; some may overlap."""
    known, small = _compiled(), data.lower()
    yield from _tokens_in(data, known)
    for anchor, pattern in known.leads:
        for at in _places(small, anchor):
            match = pattern.match(data, at)
            if match is not None:
                yield match.span(match.lastindex or 0)
    for name in _NAMES:
        done = 0
        for at in _places(small, name):
            match = known.assigned.match(data, at) if at >= done else None
            if match is not None:
                done = done if match["sign"] is None else match.end()  # what stands in a value is no name
                if _is_secret(match, known):
                    start, end = match.span(match.lastindex or 0)
                    yield start, end - (match["bare"] or b"").endswith((b".", b":"))


def may_name_secret(name: str) -> bool:
    """Return whether a value that has this name may be a secret because of it."""
    small = name.lower().encode("utf-8", "surrogatepass") + b"="
    return any(hint in small for hint in _NAMES)


def _places(data: bytes, wanted: bytes) -> Iterator[int]:
    at = data.find(wanted)
    while at >= 0:
        yield at
        at = data.find(wanted, at + 1)


def _tokens_in(data: bytes, known: _Compiled) -> Iterator[tuple[int, int]]:
    """Yield tokens: where a word begins, or a part of one after a dash, a dot or an underscore, as in names of files."""
    for run in known.run.finditer(data.translate(_RUNS)):
        at, end = run.span()
        letters = data[at:end].translate(None, _SIGNS)
        if letters.islower() and letters.isalpha():
            continue
        if at and data[at - 1] in b"\\%[;" and (escape := known.escape.match(data, at)) is not None:
            at = escape.end()
        while at < end:
            stop = _token_end(data, at, known)
            if stop:
                yield at, stop
            piece = known.piece.search(data, stop or at, end)
            at = end if piece is None else piece.end()


def _token_end(data: bytes, at: int, known: _Compiled) -> int:
    """Return where the token ends that begins at ``at``; 0 when none does."""
    for prefix, letters, least, loose in known.prefixes.get(data[at : at + 2], ()):
        if data.startswith(prefix, at):
            start = at + len(prefix)
            rest = data[start : start + LONGEST]
            length = len(rest) - len(rest.lstrip(letters))
            whole = length >= least and not rest[length : length + 1].isalnum()
            if whole and not (loose and not _looks_random(rest[:length], known)):
                return start + length
    bare = known.bare.match(data, at)
    return 0 if bare is None else bare.end()


def _looks_random(value: bytes, known: _Compiled) -> bool:
    """Return whether letters, capitals and digits follow each other as in no word and no name."""
    return 6 * len(known.change.findall(value)) >= len(value) or known.mixture.search(value) is not None


def _is_secret(match: re.Match[bytes], known: _Compiled) -> bool:
    value, bare, sign = match[match.lastindex or 0], match["bare"] is not None, match["sign"]
    if sign is None and known.flag.search(match.string, max(0, match.start() - _BEFORE), match.start()) is None:
        return False
    made = len(value) >= _MADE and _looks_random(value, known) and not (bare and known.name.fullmatch(value))
    if made and _entropy(value) >= _ENTROPY:
        return True
    if match["chosen"] is None or match["more"] or value.lower().decode("latin-1") in COMMON or known.code.fullmatch(value):
        return False
    if known.number.fullmatch(value):
        return sign == b"="  # in JSON a number stays a number
    if not bare and match.string[match.end() : match.end() + 1] in {b" ", b"\t"}:
        return False  # the first word of a sentence
    words = bare and not match["space"] and known.words.fullmatch(value) is not None
    return not bare or words or known.chosen.match(value) is not None


def _entropy(value: bytes) -> float:
    """Return Shannon's entropy in bits a byte."""
    return -sum(count / len(value) * math.log2(count / len(value)) for count in Counter(value).values())
