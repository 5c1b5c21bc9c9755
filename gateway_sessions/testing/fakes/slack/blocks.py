"""Slack's rules for blocks and mrkdwn, and what people see of a message."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from gateway_sessions.testing.fakes.slack.refusals import invalid_blocks

MOST_BLOCKS: Final = 50
LONGEST_SECTION: Final = 3000
LONGEST_HEADER: Final = 150
LONGEST_MARKDOWN: Final = 12_000
LONGEST_LABEL: Final = 75
LONGEST_VALUE: Final = 2000
LONGEST_ID: Final = 255
MOST_ELEMENTS: Final = 25

_CONTROL: Final = re.compile(r"<([@#!]?)([^<>|]+)(?:\|([^<>]*))?>")
_CODE: Final = re.compile(r"```\n?(.*?)\n?```|`([^`\n]+)`", re.DOTALL)
_MARKS: Final = re.compile(r"(?<![\w*_~])([*_~])(?=[^\s\u200b])([^\n]*?\S)\1(?![\w*_~])")
_UNESCAPED: Final = re.compile(r"&(?!amp;|lt;|gt;)|<(?![@#!]|https?:|mailto:|tel:|slack:)")

Block = dict[str, Any]


def objects_in(value: object, pointer: str) -> list[Block]:
    """Return a list of objects in JSON; a refusal if it is none."""
    try:
        found: list[Block] = msgspec.convert(value, list[dict[str, Any]])
    except msgspec.ValidationError:
        raise invalid_blocks("must be an array of objects", pointer) from None
    return found


def layout_of(message: Mapping[str, Any]) -> list[Block]:
    """Return the blocks of a message, and behind them those of its attachments."""
    found: list[Block] = objects_in(message.get("blocks") or [], "/blocks")
    for attachment in objects_in(message.get("attachments") or [], "/attachments"):
        found += objects_in(attachment.get("blocks") or [], "/attachments/blocks")
    return found


def check_blocks(blocks: object) -> None:
    """Refuse blocks as Slack does."""
    found = objects_in(blocks, "/blocks")
    if len(found) > MOST_BLOCKS:
        raise invalid_blocks(f"no more than {MOST_BLOCKS} items allowed", "/blocks")
    for number, block in enumerate(found):
        pointer = f"/blocks/{number}"
        kind = str(block.get("type"))
        if kind not in _CHECKS:
            raise invalid_blocks(f"unsupported type: {kind}", f"{pointer}/type")
        _CHECKS[kind](block, pointer)


def unescaped_in(text: str) -> str:
    """Return the first character of mrkdwn that stands for itself without being escaped; "" if none does."""
    found = _UNESCAPED.search(text)
    return found[0] if found else ""


def visible_text(message: Mapping[str, Any]) -> str:
    """Return a message as people read it: its blocks if it has any, else its text."""
    parts = [text for block in layout_of(message) for text in _texts_of(block)]
    if not message.get("blocks"):
        parts.insert(0, shown_text(message.get("text", ""), mrkdwn=message.get("mrkdwn", True)))
    parts += [f"[{file['name']}]" for file in objects_in(message.get("files", []), "/files")]
    return "\n".join(filter(None, parts))


def shown_text(text: str, *, mrkdwn: bool = True) -> str:
    """Return a text as people read it."""
    if not mrkdwn:
        return html.unescape(_CONTROL.sub(_shown_control, text))
    kept: list[str] = []

    def keep(found: re.Match[str]) -> str:
        kept.append(found[1] if found[1] is not None else found[2])
        return f"\x00{len(kept) - 1}\x00"

    text = _CODE.sub(keep, text)
    text = _CONTROL.sub(_shown_control, text)
    while (plain := _MARKS.sub(r"\2", text)) != text:
        text = plain
    text = re.sub(r"\x00(\d+)\x00", lambda found: kept[int(found[1])], text)
    return html.unescape(text)


def buttons_of(message: Mapping[str, Any]) -> Iterator[tuple[str, Block]]:
    """Yield the buttons of a message, each with the id of its block."""
    for number, block in enumerate(layout_of(message)):
        for element in _elements_of(block):
            if element["type"] == "button":
                yield block.get("block_id", f"block{number}"), element


def _elements_of(block: Block) -> list[Block]:
    return objects_in(block.get("elements"), "/elements") if block["type"] == "actions" else []


def _shown_control(found: re.Match[str]) -> str:
    kind, target, label = found.groups()
    return label or (f"{kind}{target}" if kind else target)


def _texts_of(block: Block) -> Iterator[str]:
    match block["type"]:
        case "section" | "header":
            text = block["text"]
            yield shown_text(text["text"], mrkdwn=text["type"] == "mrkdwn")
        case "markdown":
            yield str(block["text"])
        case "image":
            yield f"[{block['alt_text']}] {block.get('image_url', '')}".rstrip()
        case "actions":
            labels = (element["text"]["text"] for element in _elements_of(block))
            yield " ".join(f"[{label}]" for label in labels)
        case _:
            pass


# The rules


def _check_section(block: Block, pointer: str) -> None:
    _check_text(block.get("text"), f"{pointer}/text", LONGEST_SECTION)


def _check_header(block: Block, pointer: str) -> None:
    _check_text(block.get("text"), f"{pointer}/text", LONGEST_HEADER, kinds=("plain_text",))


def _check_text(
    text: Any, pointer: str, longest: int, kinds: tuple[str, ...] = ("plain_text", "mrkdwn")
) -> None:
    (given,) = objects_in([text], pointer)
    if given.get("type") not in kinds:
        raise invalid_blocks("missing required field: text", pointer)
    if not given.get("text"):
        raise invalid_blocks("must be more than 0 characters", f"{pointer}/text")
    if len(given["text"]) > longest:
        raise invalid_blocks(f"must be less than {longest + 1} characters", f"{pointer}/text")


def _check_image(block: Block, pointer: str) -> None:
    if not (block.get("image_url") or block.get("slack_file")) or not block.get("alt_text"):
        raise invalid_blocks("missing required field: alt_text", pointer)


def _check_markdown(block: Block, pointer: str) -> None:
    if not 0 < len(block.get("text", "")) <= LONGEST_MARKDOWN:
        raise invalid_blocks(f"must be less than {LONGEST_MARKDOWN + 1} characters", f"{pointer}/text")


def _check_actions(block: Block, pointer: str) -> None:
    elements = objects_in(block.get("elements"), f"{pointer}/elements")
    if not 0 < len(elements) <= MOST_ELEMENTS:
        raise invalid_blocks(f"no more than {MOST_ELEMENTS} items allowed", f"{pointer}/elements")
    ids: set[str] = set()
    for number, element in enumerate(elements):
        place = f"{pointer}/elements/{number}"
        if element.get("type") != "button":
            continue
        _check_text(element.get("text"), f"{place}/text", LONGEST_LABEL, kinds=("plain_text",))
        for name, longest in (("value", LONGEST_VALUE), ("action_id", LONGEST_ID)):
            if len(element.get(name, "")) > longest:
                raise invalid_blocks(f"must be less than {longest + 1} characters", f"{place}/{name}")
        action_id = str(element.get("action_id", place))
        if action_id in ids:
            raise invalid_blocks("`action_id` already exists in the block", f"{place}/action_id")
        ids.add(action_id)


def _accept(_block: Block, _pointer: str) -> None:
    """Let a block pass whose members are not looked at."""


_CHECKS: Final[dict[str, Callable[[Block, str], None]]] = {
    "section": _check_section,
    "header": _check_header,
    "image": _check_image,
    "markdown": _check_markdown,
    "actions": _check_actions,
    "divider": _accept,
    "context": _accept,
    "rich_text": _accept,
    "input": _accept,
    "file": _accept,
    "video": _accept,
}
