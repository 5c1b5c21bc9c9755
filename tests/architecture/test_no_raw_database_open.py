"""Nobody opens a database file behind SQLite's back.

POSIX drops all of a process's locks on a file when the process closes *any* descriptor of it. One
`read_bytes()` on the database, its WAL or its shared memory would unlock it and let a second writer in. No
syntax tree says which path is opened, so opening files at all is left to the modules listed here.
"""

import ast
import re

from tests.architecture.sources import dotted_name, modules, walk_with_scope

# Modules that open files, and which ones. None of them may be given a database's path.
MAY_OPEN_FILES = {
    "adapters/set_aside.py": "updates that could not be read, in a folder that the program names",
    "config/loading.py": "the configuration file",
    "config/zones.py": "the machine's time zone",
    "integrations/google_chat/from_settings.py": "the key file that Google gives out",
    "runtime/queue/aliases.py": "the alias file",
    "storage/home.py": "the note of who owns the store, and the table of mounts",
    "storage/tables/sql_files.py": "the package's own .sql files",
    "storage/engines/sqlite/backup.py": "a finished copy of the database, which nobody else knows of yet",
    "cli/fakes/acts.py": "a file that a person sends to a fake",
    "testing/fakes/google_chat/server.py": "the key of a fake account, which nobody else knows of",
    "cli/context.py": "the null device, for an output that nobody reads any more",
    "cli/demo/bot_process.py": "the chat and the taxis of the demo, in its temporary directory",
    "cli/demo/crashes.py": "the same, to read them",
    "storage/transfer/export_files.py": "files of exported sessions",
    "storage/files/private_files.py": "new files, and directories",
    "storage/files/atomic_file.py": "small files that are replaced whole: the snapshot, markers, counters",
}

OPENING_FUNCTIONS = {
    "builtins.open",
    "codecs.open",
    "io.open",
    "io.open_code",
    "mmap.mmap",
    "open",
    "os.fdopen",
    "os.open",
    "shutil.copy",
    "shutil.copy2",
    "shutil.copyfile",
    "shutil.copytree",
}
PATH_METHODS = {"read_bytes", "read_text", "write_bytes", "write_text", "touch"}
OPEN_MODE = re.compile(r"[rwax][bt+]{0,2}")


def is_path_open(call: ast.Call) -> bool:
    """Tell `path.open("rb")` and `(home / name).open()` from `SessionDB.open(url)`."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "open":
        return False
    receiver = call.func.value
    if isinstance(receiver, ast.BinOp):
        return True
    if isinstance(receiver, ast.Call):
        return dotted_name(receiver.func).endswith("Path")
    if any(isinstance(mode, ast.Constant) and OPEN_MODE.fullmatch(str(mode.value)) for mode in call.args):
        return True
    return dotted_name(receiver).replace("_", ".").rpartition(".")[2] in {"path", "file"}


def opens_a_file(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    if dotted_name(node.func) in OPENING_FUNCTIONS or is_path_open(node):
        return True
    return isinstance(node.func, ast.Attribute) and node.func.attr in PATH_METHODS


def test_only_the_listed_modules_open_files():
    places = [
        f"{module.name}:{node.lineno} {scope}"
        for module in modules()
        if module.name not in MAY_OPEN_FILES
        for scope, node in walk_with_scope(module.tree)
        if opens_a_file(node)
    ]
    assert places == []
