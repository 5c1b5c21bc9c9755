"""Reading of YAML text into plain values, with the line of every key.

Only the part of YAML that a configuration needs is allowed: scalars of the core schema of YAML 1.2, so that
`off` and `no` are words, `08` is eight and `4:00` is not 240; no tags, no merge keys, no duplicate keys. In a
value, `${NAME}` and `${NAME:-default}` stand for environment variables, and `$${` for a literal `${`. A value
without quotes gets its type after the variables are filled in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, cast

import yaml
from yaml.composer import ComposerError

from gateway_sessions.config.draft import MAX_DEPTH, MAX_PROBLEMS, ROOT_NAME, Draft, KeyPath, dotted_path
from gateway_sessions.errors import ConfigProblem

_CONSTANTS: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
# A number with more digits than any setting has stays text: converting it takes long, or fails.
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?(?:[0-9]{1,18}\.?[0-9]{0,18}|\.[0-9]{1,18})(?:[eE][-+]?[0-9]{1,3})?")
_REFERENCE = re.compile(
    r"\$\$\{|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-[^}]*)?\}|(?P<broken>\$\{)", re.ASCII
)
_BROKEN: Final = "holds '${' without a name and '}'; write '$${' for a literal one"
_PLAIN_TAGS: Final = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


def read_yaml(draft: Draft, text: str, environ: Mapping[str, str] | None) -> None:
    """Fill the draft with the values and lines of a YAML text; without *environ*, `${…}` stays as written."""
    try:
        root = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        problem = error.problem or ""
        unfinished = "end of stream" in problem or "stream end" in problem
        mark = error.context_mark if unfinished else error.problem_mark
        _refuse_document(
            draft, _explain_yaml_error(problem, error.context or ""), mark.line + 1 if mark else None
        )
    except yaml.reader.ReaderError as error:
        _refuse_document(draft, "it holds a control character", text.count("\n", 0, error.position) + 1)
    except ValueError:
        _refuse_document(draft, "it holds an escape sequence or a version that does not exist", None)
    else:
        draft.values = _NodeReader(draft, environ).read_node(root, ()) if root else None


def parse_scalar(text: str) -> Any:
    """Return the value of a word: null, true, false, a number, or the word itself."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


class _Loader(yaml.SafeLoader):
    """Composes nodes, no deeper than the recursive reader can follow."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.yaml_implicit_resolvers = {}  # `parse_scalar` decides
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            mark = cast("Any", self).peek_event().start_mark
            raise ComposerError(None, None, f"nested more than {MAX_DEPTH} levels deep", mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def compose_scalar_node(self, anchor: Any) -> yaml.ScalarNode:
        node = super().compose_scalar_node(anchor)
        node.value = _join_surrogates(node.value)
        return node


def _join_surrogates(text: str) -> str:
    """Join surrogate pairs: JSON, which is YAML as well, escapes a rare character as two of them."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


class _NodeReader:
    """Turns nodes into values; a node with many aliases is read once."""

    def __init__(self, draft: Draft, environ: Mapping[str, str] | None) -> None:
        self._draft = draft
        self._environ = environ
        self._known: dict[int, Any] = {}
        self._open: set[int] = set()

    def read_node(self, node: yaml.Node, path: KeyPath) -> Any:
        self._draft.lines.setdefault(path, node.start_mark.line + 1)
        if id(node) in self._open:
            self._draft.reject_value(path, "contains itself")
            return None
        if id(node) not in self._known:
            waiting = len(self._draft.unresolved or ())
            self._open.add(id(node))
            value = self._read_new_node(node, path)
            self._open.discard(id(node))
            if len(self._draft.unresolved or ()) > waiting:
                return value  # an unset variable is reported at each place where the value is used
            self._known[id(node)] = value
        return self._known[id(node)]

    def _read_new_node(self, node: yaml.Node, path: KeyPath) -> Any:
        if node.tag not in _PLAIN_TAGS:
            self._draft.reject_value(path, "carries a tag, which has no meaning here")
            return None
        match node:
            case yaml.ScalarNode():
                text = self._substitute_variables(node.value, path)
                if node.style is not None or text is None:
                    return text
                value = parse_scalar(text)
                return text if "${" in node.value and _is_token(path, text, value) else value
            case yaml.SequenceNode():
                return [self.read_node(one, (*path, index)) for index, one in enumerate(node.value)]
            case _:
                return self._read_block(node, path)

    def _read_block(self, node: yaml.Node, path: KeyPath) -> dict[str, Any]:
        block: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self._add_problem(path, "holds a key that is no text", line)
                continue
            key = (*path, key_node.value)
            if key_node.value in block:
                self._add_problem(key, f"is set already on line {self._draft.lines[key]}", line)
                continue
            self._draft.lines[key] = line
            block[key_node.value] = self.read_node(value_node, key)
        return block

    def _add_problem(self, path: KeyPath, message: str, line: int) -> None:
        self._draft.add_problem(ConfigProblem(dotted_path(path), message, line))

    def _substitute_variables(self, text: str, path: KeyPath) -> str | None:
        """Return the text with its variables filled in; None after a problem was reported."""
        if self._environ is None or "${" not in text:
            return text
        references, environ = [*_REFERENCE.finditer(text)], self._environ
        broken = [_BROKEN for one in references if one["broken"]]
        missing = [
            f"needs the environment variable {one['name']}, which is not set"
            for one in references
            if one["name"] and one["default"] is None and one["name"] not in environ
        ]
        if missing and not broken and self._defer_problem(path, missing[0]):
            return text
        for message in (*broken, *missing):
            self._draft.reject_value(path, message)
        return None if broken or missing else _REFERENCE.sub(partial(_value_of_reference, environ), text)

    def _defer_problem(self, path: KeyPath, message: str) -> bool:
        """Keep a problem until the value is used, and return whether there was room to keep it."""
        unresolved = self._draft.unresolved
        if unresolved is None or len(unresolved) >= MAX_PROBLEMS:
            return False
        unresolved[path] = self._draft.problem_at(path, message)
        return True


def _value_of_reference(environ: Mapping[str, str], reference: re.Match[str]) -> str:
    """Return the text for a reference whose variable is set or has a default."""
    name, default = reference["name"], reference["default"]
    if not name:
        return "${"
    if default is None:
        return environ[name]
    return environ.get(name) or default.removeprefix(":-")


def _is_token(path: KeyPath, text: str, value: object) -> bool:
    """Return whether the text of a variable for an adapter is a token that only looks like a number.

    `0012` and `12e45` are tokens as well as numbers, and as numbers they would be others.
    """
    if path[:2] != ("serve", "adapters") or isinstance(value, bool):
        return False
    return isinstance(value, float) or (isinstance(value, int) and str(value) != text)


def _refuse_document(draft: Draft, why: str, line: int | None) -> None:
    draft.add_problem(ConfigProblem(ROOT_NAME, f"is not valid YAML: {why}", line))


def _explain_yaml_error(problem: str, context: str) -> str:
    """Return the parser's message or a clearer one, but never the text itself, which may hold secrets."""
    if "alias" in f"{context} {problem}":
        return "an alias names no anchor; quote a text that begins with '*'"
    if "anchor" in f"{context} {problem}":
        return "an anchor has no name, or that of another; quote a text that begins with '&'"
    if "cannot start any token" in problem:
        tab = "'\\t'" in problem
        return "spaces must indent, not tabs" if tab else "quote a text that begins with such a character"
    return problem or context
