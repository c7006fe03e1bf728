"""Every sentence that the core can say in its own English words, read from the code itself."""

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

import app

ROOT = Path(app.__file__).parents[1]

# What only a terminal, a file, another program or a model gets to read.
NOT_IN_A_WINDOW = (
    "app/advice/", "app/chat/overflow.py", "app/chat/presets.py", "app/cli/", "app/export/",
    "app/power/helper/", "app/rig/replay", "app/rig/simulated", "app/rig/virtual.py",
    "app/session/check.py", "app/session/command_settings.py", "app/session/draft.py",
    "app/session/recording.py", "app/worker/selfcheck.py", "app/worker/speculate.py",
    "probes/record.py",
)  # fmt: skip
# Not shown: for the log, or for whoever calls wrongly.
SILENT = {"Bug", "ValueError", "TypeError", "debug", "info", "warning", "exception", "error"}
# Call → positions of its sentences; a name stands for the keyword of the same argument.
CALLS: dict[str, dict[int, str]] = {
    "EnvironmentProblem": {1: "message", 2: "hint"},
    "UsageProblem": {1: "message", 2: "hint"},
    "ErrorInfo": {1: "message", 2: "hint"},
    "EngineFailure": {2: "message", 3: "hint"},
    "damaged": {1: "what"},
    # the self-test
    "Check": {2: "text", 3: "hint"},
    "_ok": {1: "text"},
}

Known = dict[str, list[ast.expr]]


def sentences() -> Iterator[tuple[str, str]]:
    """Yield (where, template); what an f-string fills in is written ``{}``."""
    for folder in (ROOT / "app", ROOT / "probes"):
        for path in sorted(folder.rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith(NOT_IN_A_WINDOW):
                tree = ast.parse(path.read_text("utf-8"))
                yield from ((f"{name}:{line}", text) for line, text in _of_module(tree))


def _of_module(tree: ast.Module) -> Iterator[tuple[int, str]]:
    constants = _assigned(tree.body)
    for scope in ast.walk(tree):
        if isinstance(scope, ast.FunctionDef):
            known = {**constants, **_assigned(list(ast.walk(scope)))}
            for call in ast.walk(scope):
                if isinstance(call, ast.Call):
                    yield from ((call.lineno, text) for text in _spoken(call, known))
    yield from _literals(tree)


def _assigned(nodes: Sequence[ast.AST]) -> Known:
    found: Known = {}
    for node in nodes:
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            is_many = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            values = node.value.elts if is_many else [node.value] * len(names)  # type: ignore[attr-defined]
            for name, value in zip(names, values, strict=True):
                if isinstance(name, ast.Name):
                    found.setdefault(name.id, []).append(value)
    return found


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def _spoken(call: ast.Call, known: Known) -> Iterator[str]:
    for index, keyword in CALLS.get(_called(call), {}).items():
        given = [k.value for k in call.keywords if k.arg == keyword]
        for value in (*given, *call.args[index : index + 1]):
            yield from (t for t in _texts(value, known) if any(c.isalpha() for c in t))


def _texts(node: ast.expr, known: Known) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(str(p.value) if isinstance(p, ast.Constant) else "{}" for p in parts)
        case ast.IfExp(body=one, orelse=other):
            yield from _texts(one, known)
            yield from _texts(other, known)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            for head in list(_texts(left, known)) or ["{}"]:
                yield from (head + tail for tail in list(_texts(right, known)) or ["{}"])
        case ast.Name(id=name) if name in known:
            others = {k: v for k, v in known.items() if k != name}
            for value in known[name]:
                yield from _texts(value, others)
        case _:
            return


def _literals(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield what reads like a sentence anywhere: helpers return some."""
    silent: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            silent.add(id(node.value))  # docstrings
        elif isinstance(node, ast.Call) and _called(node) in SILENT:
            silent.update(map(id, ast.walk(node)))
        elif isinstance(node, ast.JoinedStr):
            silent.update(id(part) for part in node.values)
        elif isinstance(node, ast.BinOp):
            silent.update(map(id, ast.walk(node)))
    for node in ast.walk(tree):
        if id(node) not in silent and isinstance(node, ast.Constant | ast.JoinedStr):
            for text in _texts(node, {}):
                is_start = text[:1].isupper() or text.startswith("{}")
                if is_start and text.endswith(".") and len(text.split()) > 2:
                    yield node.lineno, text
