"""Writes config.example.yaml, and the tables of config.md, from the keys that the program declares.

python docs/reference/make_config.py

A key is a field of a record: its name, its default and its kind come from there, its description from the
docstring below the field. Descriptions speak of None; here they say what a file writes for that.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from textwrap import wrap
from types import MappingProxyType
from typing import Any, Final

import yaml

from gateway_sessions.config.keys import Block, ConfigKey, NamedBlocks
from gateway_sessions.config.kinds import Flag
from gateway_sessions.config.model import ALL_KEYS, Config
from gateway_sessions.core.transcript.session_context_prompt import HomeChannel

PAGE: Final = Path(__file__).with_name("config.md")
EXAMPLE: Final = Path(__file__).parents[2] / "config.example.yaml"
HEAD: Final = """\
# Every key with its default. Copy what you change; an unknown key is an error that says what was meant.
# ${NAME} and ${NAME:-default} stand for variables of the environment; GATEWAY_SESSIONS__SECTION__KEY sets a
# key. More on each part: docs/reference/config.md. Made by docs/reference/make_config.py: run that, and
# change nothing here.
"""
NAMES: Final = MappingProxyType({"platforms": "telegram", "chat_types": "group"})
HOME: Final = HomeChannel(platform="telegram", chat_id="123456")
OVERRIDES: Final = MappingProxyType(
    {
        ("telegram", "session_reset"): "{mode: idle}",
        ("telegram", "busy"): "{mode: interrupt}",
        ("group", "session_reset"): "never",
        ("group", "busy"): "{mode: collect}",
    }
)
"""What the example sets on a platform, where nothing is set by default."""
WIDTH: Final = 118
TABLE: Final = re.compile(r"(<!-- keys: ([a-z_ ]+) -->\n).*?(<!-- end of keys -->\n)", re.DOTALL)
LINK: Final = re.compile(r"\[([^]]+)\]\([^)]+\)")


@cache
def descriptions(record: type) -> dict[str, str]:
    """Return what stands below each field of a record."""
    [body] = [
        node.body
        for node in ast.parse(inspect.getsource(sys.modules[record.__module__])).body
        if isinstance(node, ast.ClassDef) and node.name == record.__name__
    ]
    return {
        field.target.id: " ".join(below.value.value.split())
        for field, below in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
    }


def described(block: Block, key: ConfigKey) -> str:
    """Return the description of a key, which a file cannot set to None."""
    text = descriptions(block.record)[key.field]
    if isinstance(key.kind, Block):
        return text
    nothing = "null" if key.kind.null else "0"
    return re.sub(r"(^|\. )None\b", rf"\g<1>{nothing.capitalize()}", text).replace("None", nothing)


def tables(page: str) -> str:
    """Return the page with its tables up to date."""
    return TABLE.sub(lambda found: "".join((found[1], "\n", table(found[2].split()), "\n", found[3])), page)


def table(sections: list[str]) -> str:
    """Return the keys of some sections; `top` stands for those that are in none."""
    rows = ["| Key | Type | Default | Meaning |", "|---|---|---|---|"]
    for key in ALL_KEYS.keys:
        if ("top" if not isinstance(key.kind, Block | NamedBlocks) else key.name) in sections:
            rows += rows_of(ALL_KEYS, key, Config(), key.name)
    return "\n".join(rows) + "\n"


def rows_of(block: Block, key: ConfigKey, record: object, name: str) -> Iterator[str]:
    """Yield the row of a key, or the rows of the keys beneath."""
    value: Any = getattr(record, key.field)
    match key.kind:
        case NamedBlocks(block=below):
            free = "<name>" if block is ALL_KEYS else "<type>"
            for one in below.keys:
                yield from rows_of(below, one, below.record(), f"{name}.{free}.{one.name}")
        case Block(inherits=True) if block is not ALL_KEYS:
            yield f"| `{name}` | {key.kind.reference_text} | inherited | {described(block, key)} |"
        case Block() as below:
            for one in below.keys:
                yield from rows_of(below, one, value or HOME, f"{name}.{one.name}")
        case kind:
            default = "required" if key.required else f"`{scalar(kind.as_written(value))}`"
            yield f"| `{name}` | {kind.reference_text} | {default} | {described(block, key)} |"


def example() -> str:
    """Return every key, with its default."""
    lines = [HEAD]
    for key in ALL_KEYS.keys:
        gap = [""] if isinstance(key.kind, Block | NamedBlocks) else []
        lines += [*gap, *lines_of(ALL_KEYS, key, Config(), "")]
    return "\n".join(lines) + "\n"


def lines_of(block: Block, key: ConfigKey, record: object, name: str) -> Iterator[str]:
    """Yield a key, its description above it, and all keys beneath; *name* is the platform's, if any."""
    value: Any = getattr(record, key.field)
    told = "" if isinstance(key.kind, Block | NamedBlocks | Flag) else key.kind.reference_text
    yield from comment(described(block, key), told)
    match key.kind:
        case NamedBlocks(block=below):
            free = NAMES[key.name]
            inner = [f"{free}:", *indented(below, below.record(), free)]
            yield f"{key.name}:"
            # What is only commented out keeps its indentation behind the sign.
            yield from (f"{'' if name else '#'}  {line}" for line in inner)
        case Block(inherits=True) if name:
            yield f"{key.name}: {OVERRIDES[name, key.name]}"
        case Block() as below:
            yield f"{key.name}:"
            yield from indented(below, value or HOME, name)
        case kind:
            yield f"{key.name}: {scalar(kind.as_written(value))}"


def indented(block: Block, record: object, name: str) -> Iterator[str]:
    """Yield the keys of a block."""
    for key in block.keys:
        yield from (f"  {line}" for line in lines_of(block, key, record, name))


def comment(text: str, kind: str) -> list[str]:
    """Return a description as a comment; links are for the page."""
    text, kind = LINK.sub(r"\1", text), LINK.sub(r"\1", kind).replace("`", "")
    if kind:
        whole = kind if len(kind) > WIDTH / 2 else kind.replace(" ", "\xa0")  # stays in one piece
        text += f" [{whole}]"
    lines = wrap(text, WIDTH, initial_indent="# ", subsequent_indent="# ")
    return [line.replace("\xa0", " ") for line in lines]


def scalar(value: object) -> str:
    """Return a value as a file says it, for any reader of YAML."""
    text = yaml.safe_dump(value, default_flow_style=True, width=1000).removesuffix("\n...\n").strip()
    return text.replace("'", '"')


if __name__ == "__main__":
    PAGE.write_text(tables(PAGE.read_text("utf-8")), "utf-8")
    EXAMPLE.write_text(example(), "utf-8")
    sys.stdout.write(f"{PAGE} and {EXAMPLE} written\n")
