"""The pure parts of the set-up scripts, which are no package and so are loaded by path."""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).resolve().parents[2] / "packaging"


@pytest.fixture(scope="module")
def scripts() -> Iterator[tuple[Any, Any, Any]]:
    """Load bootstrap and its parts as the command line does: with their folder on the path."""
    names = ("bootstrap", "boot_engine", "boot_host", "boot_vulkan")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        loaded = [importlib.import_module(name) for name in names]
        yield loaded[0], loaded[1], loaded[2]
    for name in names:
        sys.modules.pop(name, None)


@pytest.fixture
def bootstrap(scripts: tuple[Any, Any, Any]) -> Any:
    return scripts[0]


@pytest.fixture
def engine(scripts: tuple[Any, Any, Any]) -> Any:
    return scripts[1]


@pytest.fixture
def host(scripts: tuple[Any, Any, Any]) -> Any:
    return scripts[2]


class TestStamp:
    def test_a_step_is_done_once_and_again_only_when_its_mark_changes(
        self, bootstrap: Any, tmp_path: Path
    ) -> None:
        stamp = tmp_path / "stamp.json"
        done: list[str] = []
        for mark in ("a", "a", "b", "b", "a"):
            bootstrap.ensure("run", mark, lambda mark=mark: done.append(mark), stamp)
        assert done == ["a", "b", "a"]

    def test_a_failed_step_is_tried_again(self, bootstrap: Any, tmp_path: Path) -> None:
        stamp = tmp_path / "stamp.json"

        def fail() -> None:
            raise bootstrap.Problem("no network")

        with pytest.raises(bootstrap.Problem):
            bootstrap.ensure("run", "a", fail, stamp)
        assert bootstrap.read_stamp(stamp) == {}

    def test_steps_keep_each_others_marks(self, bootstrap: Any, tmp_path: Path) -> None:
        stamp = tmp_path / "stamp.json"
        bootstrap.ensure("run", "a", lambda: None, stamp)
        bootstrap.ensure("demo", "b", lambda: None, stamp)
        assert bootstrap.read_stamp(stamp) == {"run": "a", "demo": "b"}
        assert [path.name for path in tmp_path.iterdir()] == ["stamp.json"]

    @pytest.mark.parametrize("text", ["", "{", "[1]", "null", "\xff"])
    def test_a_broken_stamp_means_nothing_is_known(
        self, bootstrap: Any, tmp_path: Path, text: str
    ) -> None:
        stamp = tmp_path / "stamp.json"
        stamp.write_text(text, "latin-1")
        assert bootstrap.read_stamp(stamp) == {}

    def test_a_digest_tells_texts_files_and_their_borders_apart(
        self, bootstrap: Any, tmp_path: Path
    ) -> None:
        lock = tmp_path / "lock.txt"
        lock.write_text("one")
        first = bootstrap.digest(lock, "x")
        lock.write_text("two")
        assert bootstrap.digest(lock, "x") != first
        assert bootstrap.digest("ab", "c") != bootstrap.digest("a", "bc")


class TestEngineKey:
    LOCK = "# comment\nllama-cpp-python==1.2.3 \\\n    --hash=sha256:00\n"

    def test_it_names_version_recipe_and_platform(self, engine: Any) -> None:
        key = engine.engine_key(self.LOCK, engine.Recipe("cpu", ("A=ON",), ""), "linux-x86_64")
        assert key.startswith("1.2.3-cpu-linux-x86_64-")

    def test_everything_that_changes_the_wheel_changes_the_key(self, engine: Any) -> None:
        keys = {
            engine.engine_key(lock, engine.Recipe(name, flags, ""), platform)
            for lock in (self.LOCK, self.LOCK.replace(":00", ":01"))
            for name in ("cpu", "vulkan")
            for flags in (("A=ON",), ("A=OFF",), ("A=ON", "B=ON"))
            for platform in ("linux-x86_64", "win-amd64")
        }
        assert len(keys) == 24

    def test_a_lock_without_the_engine_is_refused(self, engine: Any) -> None:
        with pytest.raises(engine.Problem, match=r"engine\.txt"):
            engine.engine_key("numpy==2.0\n", engine.RECIPES[0], "linux-x86_64")

    def test_the_real_lock_has_one_engine_and_its_hash(self, engine: Any) -> None:
        lock = (FOLDER / "requirements" / "engine.txt").read_text("utf-8")
        assert lock.count("==") == 1
        assert lock.count("--hash=sha256:") == 1


class TestRecipe:
    @pytest.fixture(autouse=True)
    def _empty_cache(self, engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(engine, "cache_dir", lambda: tmp_path)
        monkeypatch.setattr(engine, "install_system_parts", lambda _needs: None)

    @pytest.fixture
    def recipes(self, engine: Any) -> tuple[Any, Any]:
        def fail() -> None:
            raise engine.Problem("no headers")

        best = engine.Recipe("best", ("A=ON",), "9", lambda: True, fail)
        return best, engine.Recipe("cpu", ("A=OFF",), "4")

    @staticmethod
    def keep_wheel(engine: Any, recipe: Any) -> Path:
        home: Path = engine.engine_home(recipe)
        home.mkdir(parents=True)
        (home / "engine.whl").touch()
        return home / "engine.whl"

    def test_the_best_possible_comes_first(self, engine: Any, recipes: tuple[Any, Any]) -> None:
        best, cpu = recipes
        never = best._replace(is_possible=lambda: False)
        assert engine.possible_recipes((best, cpu)) == [best, cpu]
        assert engine.possible_recipes((never, cpu)) == [cpu]

    def test_a_cached_wheel_needs_no_tools(self, engine: Any, recipes: tuple[Any, Any]) -> None:
        best, cpu = recipes
        never = best._replace(is_possible=lambda: False)
        wheel = self.keep_wheel(engine, never)
        assert engine.possible_recipes((never, cpu)) == [never, cpu]
        assert engine.engine_wheel((never, cpu)) == wheel

    def test_what_cannot_be_built_is_told_and_the_next_one_serves(
        self, engine: Any, recipes: tuple[Any, Any], capsys: pytest.CaptureFixture[str]
    ) -> None:
        wheel = self.keep_wheel(engine, recipes[1])
        assert engine.engine_wheel(recipes) == wheel
        said = capsys.readouterr().out
        assert "no headers" in said
        assert "without best" in said

    def test_the_last_ones_problem_is_the_users(
        self, engine: Any, recipes: tuple[Any, Any]
    ) -> None:
        with pytest.raises(engine.Problem, match="no headers"):
            engine.engine_wheel(recipes[:1])

    def test_cuda_is_built_where_its_compiler_and_a_card_are(
        self, engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A compiler without a card has nothing to build for, a card without one no means."""
        monkeypatch.setenv("PATH", str(tmp_path))
        for tool in ("nvcc", "nvidia-smi"):
            assert not engine.has_cuda()
            program = tmp_path / (f"{tool}.exe" if sys.platform == "win32" else tool)
            program.touch(0o755)
        assert engine.has_cuda()

    def test_some_recipe_is_always_possible(self, engine: Any) -> None:
        assert engine.RECIPES[-1].is_possible()
        assert engine.RECIPES[-1].prepare() == ()

    def test_every_recipe_is_portable_and_has_rpc(self, engine: Any) -> None:
        for recipe in engine.RECIPES:
            assert {"GGML_BACKEND_DL=ON", "GGML_NATIVE=OFF", "GGML_RPC=ON"} <= set(recipe.flags)


class TestSystemParts:
    def test_on_debian_the_sentence_is_a_command(self, host: Any) -> None:
        needs = [host.Need("g++", tool="g++"), host.Need("libegl1", library="libEGL.so.1")]
        text = host.missing_sentence(needs, debian=True)
        assert text.endswith("sudo apt-get install g++ libegl1")

    def test_elsewhere_it_names_what_to_look_for(self, host: Any) -> None:
        needs = [host.Need("libegl1", library="libEGL.so.1"), host.Need("xvfb", tool="Xvfb")]
        text = host.missing_sentence(needs, debian=False)
        assert "libEGL.so.1, Xvfb" in text
        assert "apt-get" not in text

    def test_every_need_says_how_it_is_found(self, host: Any) -> None:
        every = (*host.RUN_NEEDS, *host.BUILD_NEEDS, *host.WINDOW_NEEDS, *host.TEST_NEEDS)
        for need in every:
            assert sum(map(bool, (need.library, need.tool, need.file))) == 1, need

    def test_a_missing_thing_is_seen(self, host: Any, tmp_path: Path) -> None:
        assert host.is_missing(host.Need("x", library="libno-such-thing.so.9"))
        assert host.is_missing(host.Need("x", tool="no-such-tool"))
        assert host.is_missing(host.Need("x", file=str(tmp_path / "none")))
        assert not host.is_missing(host.Need("x", file=__file__))


class TestWork:
    def test_a_failure_shows_the_end_of_the_log_and_where_it_is(
        self, host: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(host, "cache_dir", lambda: tmp_path)
        code = "print('first'); print('the reason'); raise SystemExit(3)"
        with pytest.raises(host.Problem) as caught:
            host.work("doing it", [sys.executable, "-c", code], "job", {})
        assert "the reason\nThis failed: doing it." in str(caught.value)
        assert str(tmp_path / "logs" / "job.log") in str(caught.value)

    def test_success_is_quiet(
        self,
        host: Any,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.setattr(host, "cache_dir", lambda: tmp_path)
        host.work("doing it", [sys.executable, "-c", "print('noise')"], "job", {"A": "b"})
        assert capsys.readouterr().out == "[rigtune] doing it ...\n"

    @pytest.mark.skipif(sys.platform == "win32", reason="process groups are a POSIX thing")
    def test_stopping_leaves_nothing_running(
        self, host: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        born = tmp_path / "grandchild"
        inner = f"open({str(born)!r}, 'x').close(); import time; time.sleep(60)"
        outer = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
        seen: list[psutil.Process] = []

        sleep = time.sleep

        def stop_when_born(seconds: float) -> None:
            if born.exists() and not seen:
                seen.extend(psutil.Process().children(recursive=True))
                raise KeyboardInterrupt
            sleep(seconds)

        monkeypatch.setattr(host, "cache_dir", lambda: tmp_path)
        monkeypatch.setattr(host.time, "sleep", stop_when_born)
        with pytest.raises(KeyboardInterrupt):
            host.work("doing it", [sys.executable, "-c", outer, inner], "job", {})
        assert len(seen) >= 2
        assert psutil.wait_procs(seen, timeout=60)[1] == []

    def test_the_newest_build_step_is_told(self, host: Any, tmp_path: Path) -> None:
        log = tmp_path / "log"
        log.write_text("[1/143] a\n" + "x" * 70000 + "\n[72/143] b\n[73/143] c")
        assert host.newest_step(log) == "step 73 of 143, "
        log.write_text("no steps")
        assert not host.newest_step(log)


class TestPlaces:
    def test_the_cache_can_be_moved(self, host: Any, tmp_path: Path) -> None:
        assert host.cache_dir({"RIGTUNE_CACHE": str(tmp_path)}) == tmp_path

    @pytest.mark.skipif(sys.platform == "win32", reason="XDG folders are a POSIX convention")
    def test_xdg_is_honoured(self, host: Any) -> None:
        assert host.cache_dir({"XDG_CACHE_HOME": "/c"}) == Path("/c/rigtune")
        assert host.cache_dir({}) == Path.home() / ".cache" / "rigtune"

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows always has a display")
    def test_a_display_is_recognised(self, bootstrap: Any) -> None:
        assert bootstrap.has_display({"DISPLAY": ":0"})
        assert bootstrap.has_display({"WAYLAND_DISPLAY": "wayland-0"})
        assert not bootstrap.has_display({"DISPLAY": ""})

    def test_a_second_bootstrap_waits(self, host: Any, tmp_path: Path) -> None:
        path = tmp_path / "lock"
        with host.one_at_a_time(path), path.open("a+b") as other:
            assert not host.try_lock(other.fileno())
        with path.open("a+b") as other:
            assert host.try_lock(other.fileno())


class TestLocks:
    @pytest.mark.parametrize("lock", sorted((FOLDER / "requirements").glob("*.txt")), ids=str)
    def test_every_line_is_pinned_and_hashed_and_names_no_registry(self, lock: Path) -> None:
        text = lock.read_text("utf-8").replace("\\\n", " ")
        assert "://" not in text
        for line in filter(None, (row.partition("#")[0].strip() for row in text.splitlines())):
            assert not line.startswith("-"), line
            assert "==" in line, line
            assert "--hash=sha256:" in line, line

    def test_locks_that_share_an_environment_agree(self) -> None:
        pins: dict[str, set[str]] = {}
        for name in ("run", "test", "build", "demo"):
            text = (FOLDER / "requirements" / f"{name}.txt").read_text("utf-8")
            for line in text.splitlines():
                if "==" in line:
                    package, _, version = line.partition("==")
                    pins.setdefault(package, set()).add(version.partition(" ")[0])
        clashes = {k: v for k, v in pins.items() if len(v) > 1 and k != "numpy"}
        assert not clashes


def test_the_engine_that_is_replaced_is_kept(engine: Any, tmp_path: Path) -> None:
    """Binding, libraries and modules are copied; an environment without an engine keeps none."""
    purelib, kept = tmp_path / "site-packages", tmp_path / "previous-engine"
    purelib.mkdir()
    engine.keep_installed(purelib, kept)
    assert not kept.exists()
    for place in ("llama_cpp/lib/libllama.so", "llama_cpp/__init__.py", "bin/libggml-cpu-x64.so"):
        (purelib / place).parent.mkdir(parents=True, exist_ok=True)
        (purelib / place).write_text("first", "utf-8")
    engine.keep_installed(purelib, kept)
    (purelib / "llama_cpp" / "__init__.py").write_text("second", "utf-8")
    (purelib / "bin" / "libggml-cpu-x64.so").unlink()
    assert (kept / "bin" / "libggml-cpu-x64.so").read_text("utf-8") == "first"
    engine.keep_installed(purelib, kept)
    assert (kept / "llama_cpp" / "__init__.py").read_text("utf-8") == "second"
    assert list((kept / "bin").iterdir()) == []
