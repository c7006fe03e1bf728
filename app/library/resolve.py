"""Turns what a user types for a model into a file."""

from pathlib import Path

from app.domain.errors import EnvironmentProblem, UsageProblem
from app.library.demo import demo_model
from app.library.find import FoundModel, find_models

DEMO = "demo"


def resolve_model(name: str) -> Path:
    """Return the file that ``name`` means: ``demo``, a path, or a model from ``models``.

    Besides its full id, a found model answers to its name and to the last part of it, in any
    case, as long as only one model does.

    Raises:
        UsageProblem: Several models answer to ``name``.
        EnvironmentProblem: None does, or the demo model cannot be had.
    """
    if name == DEMO:
        return demo_model()
    path = Path(name).expanduser() if name.startswith("~/") else Path(name)
    if path.is_dir():
        message = f"{path} is a folder, not a model."
        raise EnvironmentProblem("model_is_folder", message, "Name the .gguf file inside it.")
    # the reader says what is wrong with a pipe or a dead link
    if path.exists() or path.is_symlink():
        return path.absolute()
    return _found(name, find_models())


def resolve_repo(repo: str) -> Path:
    """Return the downloaded file that llama.cpp's ``-hf ORG/REPO[:QUANT]`` means.

    Raises:
        UsageProblem: Several files answer to it.
        EnvironmentProblem: None does: it was not downloaded yet.
    """
    name, _, quant = repo.partition(":")
    start = f"{name}/".replace("/", "_").casefold()
    hits = [
        m
        for m in find_models()
        if any(n.replace("/", "_").casefold().startswith(start) for n in _names(m))
        and quant.casefold() in m.name.casefold()
    ]
    if len(hits) == 1:
        return Path(hits[0].path)
    if hits:
        message = f"{repo} may be one of {len(hits)} files: {', '.join(m.id for m in hits)}."
        raise UsageProblem("model_ambiguous", message, "Name the file, or its quantisation.")
    message = f"No file of {repo} has been downloaded to this machine."
    raise EnvironmentProblem("model_not_found", message, "Let llama.cpp download it first.")


def _found(name: str, models: tuple[FoundModel, ...]) -> Path:
    wanted = name.casefold()
    for names_of in (_ids, _names, _last_parts):
        hits = [m for m in models if wanted in {n.casefold() for n in names_of(m)}]
        if len(hits) == 1:
            return Path(hits[0].path)
        if hits:
            ids = ", ".join(m.id for m in hits)
            message = f"{name} may be one of {len(hits)} models: {ids}."
            raise UsageProblem("model_ambiguous", message, "Use the full id or the path.")
    message = f"There is no file or model called {name}."
    hint = "`rigtune models` lists the models on this machine; `demo` is the demo model."
    raise EnvironmentProblem("model_not_found", message, hint)


def _ids(model: FoundModel) -> tuple[str, ...]:
    return (model.id, *model.aliases)


def _names(model: FoundModel) -> tuple[str, ...]:
    return tuple(i.partition(":")[2] for i in _ids(model))


def _last_parts(model: FoundModel) -> tuple[str, ...]:
    return tuple(n.rpartition("/")[2] for n in _names(model))
