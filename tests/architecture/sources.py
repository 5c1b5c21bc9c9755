"""The package's modules as syntax trees: what the tests of this folder look at."""

import ast
import functools
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
PUBLIC_MODULES = [
    import_module(f"gateway_sessions.{name}")
    for name in (
        "adapters", "agents", "blocking", "budgets", "config", "errors", "events", "operator", "providers",
        "queue", "search", "sessions", "testing", "transcripts", "usage",
    )
]  # fmt: skip
"""What programs import names from, besides the package itself."""


@dataclass(frozen=True)
class Module:
    """One source file: its path below the package, its text and its tree."""

    name: str
    text: str

    @functools.cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.name)


def package_root() -> Path:
    """Return the folder that `import gateway_sessions` uses: the working tree's, or the installed wheel's."""
    spec = importlib.util.find_spec("gateway_sessions")
    if spec is None or not spec.submodule_search_locations:
        message = "gateway_sessions is not importable"
        raise LookupError(message)
    return Path(spec.submodule_search_locations[0])


@functools.cache
def modules() -> tuple[Module, ...]:
    """Return every module of the package, by name."""
    root = package_root()
    found = []
    for path in sorted(root.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        found.append(Module(path.relative_to(root).as_posix(), text))
    return tuple(found)


def walk_with_scope(tree: ast.AST, scope: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Yield each node with the dotted name of the class and function around it; "" is the module."""
    for child in ast.iter_child_nodes(tree):
        yield scope, child
        inner = scope
        if isinstance(child, (ast.ClassDef, *FUNCTIONS)):
            inner = f"{scope}.{child.name}" if scope else child.name
        yield from walk_with_scope(child, inner)


def dotted_name(node: ast.expr) -> str:
    """Return `a.b.c` for such an expression, and "" for any other."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attribute):
            prefix = dotted_name(value)
            return f"{prefix}.{attribute}" if prefix else ""
        case _:
            return ""
