"""Displayed text: names of strangers, bounded and unable to pose as something else, and masked addresses.

Display names, topics and titles reach an agent as data. Each rendering here shows every character that it
holds, so that a name can neither pose as an instruction nor hide one.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Final

MAX_SHOWN: Final = 240
NAMELESS: Final = "unnamed"

# Bidirectional controls, zero-width characters, fillers, variation selectors (except the one that makes an
# emoji), annotations and tags: characters that show nothing and can carry, or turn around, what is shown.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffc\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
# Two characters that show nothing themselves are spelling between what they join or keep apart:
# \u200c and \u200d in scripts whose letters change by their neighbours, \u200d in an emoji made of several.
_JOINERS = re.compile("[\u200c\u200d]+")
_JOINED_SCRIPTS = re.compile(
    "[\u0600-\u085f\u0860-\u0dff\u1000-\u109f\u1780-\u18af\u1900-\u1aaf\u1b00-\u1bff\ua840-\ua87f\ua8e0-\ua8ff"
    "\ua980-\ua9df\uaa60-\uaadf\uabc0-\uabff\ufb50-\ufdff\ufe70-\ufefc\U00010a00-\U00010a5f\U00010ac0-\U00010aff"
    "\U00010d00-\U00010d3f\U00010f30-\U00010fff\U00011000-\U00011fff\U0001e900-\U0001e95f]"
)
_EMOJI = re.compile("[\u2190-\u21ff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]")
_ENDS_EMOJI = frozenset("\ufe0f\u20e3")
_VIRAMA: Final = 9
"""The combining class of the sign that removes a letter's vowel; a joiner after it is visible."""
_LINE_END = re.compile("\r\n?|[\x85\u2028\u2029]")
_CONTROL_CHARACTERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ROUND: Final = str.maketrans("[]", "()")
_LIKE_A_PREFIX = re.compile(r"\[[^\]]*\]\s")


def without_invisible(text: str) -> str:
    """Return the text without characters that show nothing, and without halves of characters.

    Joiners stay where they are spelling: one between two letters of a joined script, or within an emoji.
    """
    if text.isascii():
        return text
    return _SURROGATE.sub("\ufffd", _JOINERS.sub(_kept_joiner, _INVISIBLE.sub("", text)))


def _kept_joiner(found: re.Match[str]) -> str:
    """Return the part of a run of joiners that stays: one of them, or nothing."""
    before = found.string[found.start() - 1 : found.start()]
    after = found.string[found.end() : found.end() + 1]
    joiner = found[0][0]
    if joiner == "\u200d" and before and unicodedata.combining(before) == _VIRAMA:
        return joiner
    if _joins_letters(before) and _joins_letters(after):
        return joiner
    emoji = _EMOJI.match(after) and (before in _ENDS_EMOJI or _EMOJI.match(before))
    return joiner if joiner == "\u200d" and emoji else ""


def _joins_letters(character: str) -> bool:
    """Return whether a character is a letter, or a mark on one, of a script whose letters join."""
    return bool(_JOINED_SCRIPTS.match(character)) and unicodedata.category(character)[0] in "LM"


def visible_text(text: str) -> str:
    """Return what a person sees of the text: line feeds and tabs stay, other controls become spaces."""
    return _CONTROL_CHARACTERS.sub(" ", _LINE_END.sub("\n", without_invisible(text))).strip()


def shorten_text(text: str, limit: int) -> str:
    """Return at most *limit* characters, the last three of them dots if anything was cut."""
    return text if len(text) <= limit else text[: limit - 3].rstrip("\u200c\u200d") + "..."


def quote_as_json(text: str, limit: int = MAX_SHOWN) -> str:
    """Return the text as a JSON string on one line: what a prompt shows of a name."""
    return json.dumps(shorten_text(visible_text(text), limit), ensure_ascii=False)


def inline_name(name: str | None, limit: int = MAX_SHOWN) -> str:
    """Return the name for a `[name] text` prefix: one line, no square brackets, never empty."""
    folded = visible_text(unicodedata.normalize("NFKC", name or "")).translate(_ROUND)
    return shorten_text(" ".join(folded.split()), limit) or NAMELESS


def prefix_with_name(name: str | None, text: str) -> str:
    """Return the text as a shared session shows it: `[name] text`.

    Later lines that look like such a prefix are quoted with `> `, so that nobody speaks for somebody else.
    """
    first, *rest = _LINE_END.sub("\n", text).split("\n")
    return "\n".join([f"[{inline_name(name)}] {first}", *map(_quote_fake_prefix, rest)])


def _quote_fake_prefix(line: str) -> str:
    shown = unicodedata.normalize("NFKC", visible_text(line))
    return f"> {line}" if _LIKE_A_PREFIX.match(shown) else line


HIDDEN: Final = "***"
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)(\S*)")
_PLACE = re.compile(r"(?:\[[0-9A-Fa-f:.%]+\]|[^\s:@/?#\[\]]*)(?::[0-9]{0,5})?")
"""The pattern of a host, with or without a port."""
_PARTS = re.compile(r"([^/?#]*)([^?#]*)(.*)", re.DOTALL)
_SECRET_PART = re.compile(r"(?=[^/]*[0-9])(?=[^/]*[A-Za-z])[^/]{20,}|[^/]*:[^/]*")
"""The pattern of a path's part that is long and random, or holds a name and a key, as addresses of bots
do."""
_SECRET_OPTION = re.compile(r"((?:pass\w*|pwd|secret|token|key)\s*=\s*)[^&\s]+", re.IGNORECASE)


def mask_url_secrets(text: str) -> str:
    """Return the text with every address in it masked: only host and path are shown."""
    return _SECRET_OPTION.sub(
        rf"\1{HIDDEN}", _ADDRESS.sub(lambda found: found[1] + _masked_address(found[2]), text)
    )


def _masked_address(rest: str) -> str:
    """Return the masked rest after `scheme://`; of an irregular address any part may be a password."""
    parts = _PARTS.fullmatch(rest)
    authority, path, options = parts.groups() if parts else ("", "", "")
    _, at, place = authority.rpartition("@")
    # A password with `/`, `?` or `#` in it goes on after the part that looks like the host.
    if "@" in path + options or not _PLACE.fullmatch(place):
        return HIDDEN
    user = f"{HIDDEN}@" if at else ""
    shown = "/".join(HIDDEN if _SECRET_PART.fullmatch(part) else part for part in path.split("/"))
    return f"{user}{place}{shown}{options[:1]}{HIDDEN if options[1:] else ''}"
