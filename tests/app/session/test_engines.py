"""The engine of today and the one from before an upgrade: choosing, measuring again, going back."""

import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest

from app import runtime
from app.domain.errors import EnvironmentProblem, UsageProblem
from app.domain.sweep import BudgetName, SweepRequest
from app.session import EngineChecked, EngineName, Session
from app.session.engines import MARKER, MEASURED_ELSEWHERE
from app.store import Profile
from app.store.records import is_same_build
from probes import registry
from tests.fakes.models import make_model

pytestmark = pytest.mark.engine

OTHER_VERSION = "0.0.1"
QUICK = SweepRequest(budget=BudgetName.QUICK)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("model") / "tiny.gguf", "llama")


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path / "home"))
    with closing(Session(registry)) as made:
        yield made


def keep_engine(prefix: Path, monkeypatch: pytest.MonkeyPatch, code: str = "") -> None:
    """Put a copy of the engine where an upgrade would: the same build under another version."""
    spec = find_spec("llama_cpp")
    assert spec is not None
    assert spec.origin is not None
    real = Path(spec.origin).parent
    kept = prefix / "previous-engine" / "llama_cpp"
    if sys.platform == "win32":
        shutil.copytree(real, kept)
    else:
        kept.mkdir(parents=True)
        for entry in real.iterdir():
            (kept / entry.name).symlink_to(entry)
        modules = real.parent / "bin"
        if modules.is_dir():
            kept.with_name("bin").symlink_to(modules)
    start = kept / "__init__.py"
    start.unlink()
    text = f'from .llama_cpp import *\nfrom .llama import *\n__version__ = "{OTHER_VERSION}"\n'
    start.write_text(code + text, "utf-8")
    monkeypatch.setattr(sys, "prefix", str(prefix))


def tuned(session: Session, model: Path) -> Profile:
    """Search quickly and return the profile."""
    for _ in session.tune(str(model), QUICK, cancel=threading.Event()):
        pass
    (profile,) = session.profiles()
    return profile


def measured_long_ago(session: Session, profile: Profile) -> Profile:
    """Return the profile as if another build had measured it."""
    old = msgspec.structs.replace(profile, engine="llama.cpp of old")
    session.store().renew_profile(old)
    return old


def test_a_driver_more_makes_no_other_build() -> None:
    """Backends come and go with drivers; the build is the commit and the binding."""
    assert is_same_build("llama.cpp 0c1e (0.3.36; RPC, CPU)", "llama.cpp 0c1e (0.3.36; Vulkan)")
    assert not is_same_build("llama.cpp 0c1e (0.3.36; CPU)", "llama.cpp 0c1e (0.3.37; CPU)")


def checked(session: Session, profile: Profile) -> EngineChecked:
    *_, last = session.engines().check(profile.id)
    assert isinstance(last, EngineChecked)
    return last


def test_without_an_upgrade_there_is_one_engine(session: Session) -> None:
    """Nothing to go back to is said, and asking for it is a usage error that changes nothing."""
    (state,) = session.engines().states()
    assert (state.name, state.in_use) == (EngineName.CURRENT, True)
    assert state.build
    with pytest.raises(UsageProblem):
        session.engines().use(EngineName.PREVIOUS)
    assert not (runtime.data_dir() / MARKER).exists()


def test_the_kept_engine_serves_when_it_is_chosen(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chosen once, every later session runs on the earlier engine, until the choice is undone."""
    keep_engine(tmp_path / "env 中文", monkeypatch)
    session.engines().use(EngineName.PREVIOUS)
    with closing(Session(registry)) as later:
        engine = later.machine(wake=True).engine
        assert engine is not None
        assert engine.version == OTHER_VERSION
        assert {s.name: s.in_use for s in later.engines().states()} == {
            EngineName.CURRENT: False,
            EngineName.PREVIOUS: True,
        }
        later.engines().use(EngineName.CURRENT)
    with closing(Session(registry)) as last:
        engine = last.machine(wake=True).engine
        assert engine is not None
        assert engine.version != OTHER_VERSION


def test_a_session_that_is_open_runs_on_the_chosen_engine_at_once(
    session: Session, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window must not be restarted to go back; profiles of the other build are named."""
    spec = session.inspect(str(tiny))
    machine = session.machine(wake=True)
    standing = session.engines().standing(machine)
    assert (standing.in_use, standing.has_previous) == (EngineName.CURRENT, False)
    profile = session.store().save_profile(
        Profile(
            name="n", settings=session.default_settings(spec, 512), engine=standing.build or "",
            model_fingerprint=spec.fingerprint, model_name="m", model_path=str(tiny),
        )
    )  # fmt: skip
    assert session.engines().standing(machine).outdated == ()
    keep_engine(tmp_path / "env", monkeypatch)
    session.engines().use(EngineName.PREVIOUS)
    standing = session.engines().standing(session.machine(wake=True))
    assert (standing.in_use, standing.has_previous) == (EngineName.PREVIOUS, True)
    assert OTHER_VERSION in (standing.build or "")
    assert [p.id for p in standing.outdated] == [profile.id]
    session.engines().use(EngineName.CURRENT)
    assert session.engines().standing(session.machine(wake=True)).outdated == ()


def test_libraries_of_the_users_own_are_neither_of_the_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a folder of their own the user runs neither engine, and no switch changes that."""
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path / "home"))
    with closing(Session(registry, engine_dir=str(tmp_path))) as made:
        standing = made.engines().standing(made.machine())
        assert (standing.in_use, standing.build) == (None, None)
        assert standing.error is not None
        (state,) = made.engines().states()
        assert not state.in_use


def test_a_kept_engine_that_is_gone_is_not_waited_for(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever deletes the earlier engine gets today's, not an error."""
    keep_engine(tmp_path / "env", monkeypatch)
    session.engines().use(EngineName.PREVIOUS)
    shutil.rmtree(tmp_path / "env")
    with closing(Session(registry)) as later:
        assert later.machine(wake=True).engine is not None


@pytest.mark.slow
def test_a_profile_is_measured_again_with_both_engines(
    session: Session, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both engines run in turns; the profile of one that is not slower carries new figures."""
    keep_engine(tmp_path / "env", monkeypatch)
    old = measured_long_ago(session, tuned(session, tiny))
    assert session.engines().outdated(session.engines().states()) == (old,)
    assert MEASURED_ELSEWHERE in session.chat(str(tiny)).notes
    found = checked(session, old)
    assert found.against == "previous"
    assert found.current is not None
    assert found.reference is not None
    assert found.change is not None
    assert found.renewed == (found.verdict != "slower")
    if found.renewed:
        new = session.profile(old.id)
        assert new.engine != old.engine
        assert new.request_s == found.current.request_s
        assert (new.id, new.name, new.settings) == (old.id, old.name, old.settings)


@pytest.mark.slow
def test_an_earlier_engine_that_fails_leaves_the_stored_figures_to_compare_with(
    session: Session, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kept engine that cannot start any more ends no check."""
    keep_engine(tmp_path / "env", monkeypatch, code="raise SystemExit(9)\n")
    profile = tuned(session, tiny)
    found = checked(session, profile)
    assert found.against == "stored"
    assert found.verdict in {"faster", "same", "unclear", "slower"}
    states = {s.name: s for s in session.engines().states()}
    assert states[EngineName.PREVIOUS].error is not None


def test_a_profile_of_a_model_that_is_gone_is_a_sentence(
    session: Session, tmp_path: Path, tiny: Path
) -> None:
    """Nothing is loaded for a model that was deleted or replaced by another one."""
    spec = session.inspect(str(tiny))
    draft = Profile(
        name="n", settings=session.default_settings(spec, 512),
        model_fingerprint="of another model", model_name="m", model_path=str(tiny),
    )  # fmt: skip
    replaced = session.store().save_profile(draft)
    gone = msgspec.structs.replace(draft, model_path=str(tmp_path / "gone.gguf"))
    for profile in (replaced, session.store().save_profile(gone)):
        with pytest.raises(EnvironmentProblem):
            checked(session, profile)


def test_an_engine_that_does_not_start_names_the_way_back(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When today's engine is broken, the error says how to use the earlier one."""
    keep_engine(tmp_path / "env", monkeypatch)
    broken = tmp_path / "broken"
    (broken / "llama_cpp").mkdir(parents=True)
    (broken / "llama_cpp" / "__init__.py").write_text("raise SystemExit(9)", "utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{broken}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    with pytest.raises(EnvironmentProblem) as caught:
        session.machine(wake=True)
    assert "rigtune engine --use previous" in caught.value.info.hint
    session.engines().use(EngineName.PREVIOUS)
    with closing(Session(registry)) as later:
        engine = later.machine(wake=True).engine
        assert engine is not None
        assert engine.version == OTHER_VERSION
