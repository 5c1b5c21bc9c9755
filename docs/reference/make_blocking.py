"""Writes the blocking classes from the asynchronous ones: run it after changing what those can do.

python docs/reference/make_blocking.py
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType

from gateway_sessions._process.background import Resource
from gateway_sessions.runtime.duties.expiry import ExpiryWatcher
from gateway_sessions.runtime.duties.session_hooks import Hooks
from gateway_sessions.runtime.queue.turn import Turn
from gateway_sessions.runtime.store.store import SessionStore
from gateway_sessions.storage.database import SessionDB
from gateway_sessions.storage.transaction_runner_protocol import TransactionRunner

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "gateway_sessions" / "blocking"
HEAD = '''"""{about}

Made by docs/reference/make_blocking.py from the asynchronous classes: run that, and change nothing here.
"""
'''
PLAIN = (int, float, str, bool, type(None))
WAITS_ANOTHER_WAY = "asyncio.Event"


@dataclass(frozen=True)
class Made:
    """What one class becomes."""

    source: type
    about: str
    attributes: dict[str, str] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()
    """What has no meaning without a loop, or is no business of callers."""
    dropped: frozenset[str] = frozenset()
    """Parameters of such a kind."""

    @property
    def name(self) -> str:
        """The name of the blocking class."""
        return f"Blocking{self.source.__name__}"


MODULES = {
    "_generated_database": (
        Made(
            SessionDB,
            "`SessionDB` for callers without a loop. Open it with `with BlockingSessionDB.open(path)`.",
            attributes={"path": "Path", "place": "str"},
            left_out=frozenset({"read", "write", "begin_write", "change", "view"}),
        ),
    ),
    "_generated_store": (
        Made(
            Hooks,
            "The hooks of a store, and what became of their calls.",
            left_out=frozenset({"run", "wake"}),
        ),
        Made(
            ExpiryWatcher,
            "The duty that ends sessions nobody writes to.",
            left_out=frozenset({"run", "state", "next_due"}),
        ),
        Made(
            Turn,
            "Somebody's turn on a lane. `with` releases it if nothing else has ended it.",
            attributes={"entry": "SessionEntry"},
            # What a gateway does with a turn that it runs.
            left_out=frozenset({"steer", "owe", "cut_short", "growing", "note_growing"}),
            dropped=frozenset({"go_on"}),
        ),
        Made(
            SessionStore,
            "`SessionStore` for callers without a loop. Open it with `with BlockingSessionStore.open(path)`.",
            attributes={"home": "Path", "config": "Config"},
            left_out=frozenset({"control"}),
        ),
    ),
}
ABOUT = {
    "_generated_database": "The database for callers without a loop.",
    "_generated_store": "The store for callers without a loop.",
}
PARTS = {made.source.__name__: made.name for all_made in MODULES.values() for made in all_made}


class Imports:
    """The names that generated code uses, and where each of them comes from."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[str, object]] = {}

    def add(self, module: str, name: str) -> None:
        """Import a name; two things may not have the same one."""
        value = getattr(importlib.import_module(module), name)
        known = self._found.setdefault(name, (module, value))
        if known[1] is not value:
            message = f"{name} is one thing in {known[0]} and another in {module}"
            raise ValueError(message)

    def add_ours(self, module: str, name: str) -> None:
        """Import a blocking class, whose module may be about to be written."""
        self._found[name] = (f"gateway_sessions.blocking.{module}", name)

    def add_used(self, tree: ast.AST, origin: ModuleType) -> None:
        """Import what an expression of *origin* mentions, from where that has it."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and not hasattr(builtins, node.id) and node.id != "Self":
                self.add(_home_of(node.id, origin), node.id)

    def lines(self) -> str:
        """The statements, in any order."""
        return "\n".join(f"from {module} import {name}" for name, (module, _) in sorted(self._found.items()))


@cache
def _tree(module: ModuleType) -> ast.Module:
    return ast.parse(inspect.getsource(module))


def _home_of(name: str, origin: ModuleType) -> str:
    """The module that *origin* imports a name from, or *origin* itself."""
    for node in ast.walk(_tree(origin)):
        if isinstance(node, ast.ImportFrom) and name in {alias.name for alias in node.names}:
            return node.module or ""
    return origin.__name__


def members(source: type) -> Iterator[tuple[ModuleType, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """The public methods and properties of a class and of what it is made of, each once."""
    seen: set[str] = set()
    for part in source.__mro__:
        if part in (TransactionRunner, Resource, object):
            continue
        module = importlib.import_module(part.__module__)
        body = next(
            node.body
            for node in _tree(module).body
            if isinstance(node, ast.ClassDef) and node.name == part.__name__
        )
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
                if node.name not in seen:
                    yield module, node
                seen.add(node.name)


def written(module: str) -> str:
    """The source of one generated module."""
    imports = Imports()
    classes = [_class(made, module, imports) for made in MODULES[module]]
    head = HEAD.format(about=ABOUT[module])
    return _tidy("\n".join([head, "from __future__ import annotations\n", imports.lines(), *classes]))


def _class(made: Made, module: str, imports: Imports) -> str:
    imports.add(made.source.__module__, made.source.__name__)
    base = _base_of(made.source)
    imports.add_ours("_loop_thread", base)
    lines = [f"class {made.name}({base}[{made.source.__name__}]):", f'    """{made.about}"""', ""]
    for name, kind in made.attributes.items():
        imports.add_used(ast.Name(kind), sys.modules[made.source.__module__])
        lines += [
            "    @property",
            f"    def {name}(self) -> {kind}:",
            f'        """The same as that of the {made.source.__name__}."""',
        ]
        lines += [f"        return self._target.{name}", ""]
    for origin, node in members(made.source):
        if node.name not in made.left_out:
            lines += [*_Method(made, module, origin, node).lines(imports), ""]
    return "\n".join(lines)


def _base_of(source: type) -> str:
    """What the blocking class of a class is made of."""
    if issubclass(source, Resource):
        return "BlockingResource"
    return "BlockingScope" if hasattr(source, "__aenter__") else "BlockingPart"


@dataclass(frozen=True)
class _Method:
    """One method of one of the classes."""

    made: Made
    module: str
    origin: ModuleType
    node: ast.FunctionDef | ast.AsyncFunctionDef

    def lines(self, imports: Imports) -> list[str]:
        """Its blocking form, indented."""
        decorators = [ast.unparse(one) for one in self.node.decorator_list]
        if set(decorators) - {"property", "classmethod"}:
            message = f"{self.node.name}: say in LEFT_OUT, or here, what {decorators} means without a loop"
            raise ValueError(message)
        returns, body = self._body(decorators, imports)
        said = (ast.get_docstring(self.node) or "").replace("`async with`", "`with`")
        said += "\n" if "\n" in said else ""
        text = [
            *(f"@{one}" for one in decorators),
            f"def {self.node.name}({self._parameters(imports)}) -> {returns}:",
        ]
        text += [f'    """{said}"""'.replace("\n", "\n    "), f"    {body}"]
        return [f"    {line}" if line.strip() else "" for piece in text for line in piece.split("\n")]

    def _body(self, decorators: list[str], imports: Imports) -> tuple[str, str]:
        """What it returns, and the statement that does so."""
        annotation = self.node.returns or ast.Constant(None)
        returns = ast.unparse(annotation)
        call = f"self._target.{self.node.name}"
        if "classmethod" in decorators:
            return (
                self.made.name,
                f"return cls({self.made.source.__name__}.{self.node.name}({self._passed()}))",
            )
        if (part := PARTS.get(returns.removesuffix(" | None"))) is not None:
            self._import_part(part, imports)
            if isinstance(self.node, ast.AsyncFunctionDef):
                return (
                    f"{part} | None",
                    f"return self._run_for_part({part}, lambda: {call}({self._passed()}))",
                )
            return part, f"return {part}({call}, self._loop)"
        if returns == WAITS_ANOTHER_WAY:
            return "bool", f"return self._call_on_loop({call}.is_set)"
        imports.add_used(annotation, self.origin)
        return self._passed_on(call, returns, imports)

    def _passed_on(self, call: str, returns: str, imports: Imports) -> tuple[str, str]:
        """The same of what has no blocking form of its own."""
        if any(ast.unparse(one) == "property" for one in self.node.decorator_list):
            return returns, f"return self._call_on_loop(lambda: {call})"
        work = f"lambda: {call}({self._passed()})" if self._passed() else call
        if returns.startswith("AsyncIterator["):
            imports.add("collections.abc", "Iterator")
            return returns.removeprefix("Async"), f"return self._iterate({work})"
        how = "_run_and_wait" if isinstance(self.node, ast.AsyncFunctionDef) else "_call_on_loop"
        answer = "" if returns == "None" else "return "
        return returns, f"{answer}self.{how}({work})"

    def _import_part(self, name: str, imports: Imports) -> None:
        home = next(module for module, classes in MODULES.items() if name in {made.name for made in classes})
        if home != self.module:
            imports.add_ours(home, name)

    def _parameters(self, imports: Imports) -> str:
        """As in the source, with plain defaults in place of private words for them."""
        arguments = self.node.args
        kept = [
            (one, default)
            for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            if one.arg not in self.made.dropped
        ]
        arguments.kwonlyargs, arguments.kw_defaults = [one for one, _ in kept], [one for _, one in kept]
        arguments.defaults = [self._default(one) for one in arguments.defaults]
        arguments.kw_defaults = [one and self._default(one) for one in arguments.kw_defaults]
        imports.add_used(arguments, self.origin)
        return ast.unparse(arguments)

    def _default(self, default: ast.expr) -> ast.expr:
        value = eval(ast.unparse(default), vars(self.origin))  # noqa: S307 -- the words of our own source
        return ast.Constant(value) if type(value) in PLAIN else default

    def _passed(self) -> str:
        """The parameters as they are handed on."""
        arguments = self.node.args
        passed = [one.arg for one in (*arguments.posonlyargs, *arguments.args)][1:]
        passed += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
        dropped = self.made.dropped
        passed += [f"{one.arg}={one.arg}" for one in arguments.kwonlyargs if one.arg not in dropped]
        passed += [f"**{arguments.kwarg.arg}"] if arguments.kwarg else []
        return ", ".join(passed)


def _tidy(source: str) -> str:
    """The source as the rest of the package is written."""
    ruff = [sys.executable, "-m", "ruff"]
    for step in (["check", "--fix-only", "--select=I,F401"], ["format"]):
        command = [*ruff, *step, "--quiet", "--stdin-filename=gateway_sessions/_.py", "-"]
        source = subprocess.run(  # noqa: S603 -- our own tool, on our own text
            command, cwd=ROOT, input=source, capture_output=True, check=True, text=True
        ).stdout
    return source


if __name__ == "__main__":
    for module in MODULES:
        (PACKAGE / f"{module}.py").write_text(written(module), "utf-8")
