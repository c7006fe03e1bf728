"""Recording a machine and standing in for it: same records, nothing personal."""

from pathlib import Path

import msgspec
import pytest

from app.domain.errors import EnvironmentProblem
from app.domain.machine import GpuSample
from probes import registry
from probes.reading import Absence
from probes.record import RecordedMachine, RecordingNvml, RecordingTree, anonymised, recorded, write
from probes.replay import RecordedNvml, RecordedSystem, RecordedTree, load
from probes.system import SystemFacts
from probes.tree import FileTree
from probes.windows.recording import RecordedWindows
from tests.fakes.probe import FakeNvml, FakeTree

MACHINES = Path(__file__).parents[1] / "golden" / "machines"
UUID_A = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
UUID_B = "9f3c28ba-2fa1-11d2-883f-0016d3cca427"


def test_this_machine_recorded_and_replayed_is_itself(tmp_path: Path) -> None:
    """The recording of the machine that runs the test gives the same constant facts."""
    file = registry.record(tmp_path / "new" / "folder")
    assert file.exists()
    live, played = registry.detect(), registry.replay(str(tmp_path / "new" / "folder"))
    one, two = live.host.identify(), played.host.identify()
    unsteady = {"ram_available_bytes": None, "battery_pct": None, "page_cache_bytes": None}
    assert msgspec.structs.replace(one, **unsteady) == msgspec.structs.replace(two, **unsteady)
    assert live.unavailable == played.unavailable
    assert [p.name for p in live.gpus] == [p.name for p in played.gpus]


def test_recording_of_a_recording_is_the_same_machine() -> None:
    """Recording through the recorders loses nothing that the probes look at."""
    machine = load(MACHINES / "hybrid-awake")
    tree, nvml = RecordingTree(RecordedTree(machine)), RecordingNvml(RecordedNvml(machine))
    system = RecordedSystem(machine)
    first = registry.build(registry.Doors(tree, nvml, system, RecordedWindows(None)))
    before = [(p.identify(), timeless(p.sample())) for p in first.gpus]
    copy = recorded(tree, nvml, system, RecordedWindows(None))
    doors = registry.Doors(
        RecordedTree(copy), RecordedNvml(copy), RecordedSystem(copy), RecordedWindows(None)
    )
    assert [(p.identify(), timeless(p.sample())) for p in registry.build(doors).gpus] == before


def timeless(samples: tuple[GpuSample, ...]) -> list[GpuSample]:
    return [msgspec.structs.replace(sample, t_ns=0) for sample in samples]


def test_ids_and_host_name_are_replaced_consistently() -> None:
    """The same id becomes the same stand-in everywhere; the host's name is gone."""
    machine = RecordedMachine(
        system=SystemFacts(os="linux"),
        files={
            "/proc/self/cgroup": f"0::/docker/{'ab' * 32}",
            "/proc/driver/nvidia/gpus/x/information": f"GPU UUID: GPU-{UUID_A} on Tinas-PC",
        },
        nvml={"nvmlDeviceGetUUID()@a": f"GPU-{UUID_A}", "nvmlDeviceGetUUID()@b": f"GPU-{UUID_B}"},
    )
    clean = anonymised(machine, "tinas-pc")
    text = msgspec.json.encode(clean).decode().lower()
    for secret in (UUID_A, UUID_B, "ab" * 32, "tinas-pc"):
        assert secret not in text
    one, two = clean.nvml.values()
    assert one != two
    assert one in clean.files["/proc/driver/nvidia/gpus/x/information"]


def test_absence_survives_the_recording() -> None:
    """A refused file and a refused call are refused for the same reason in the replay."""
    tree = RecordingTree(FakeTree({"/a": Absence.NO_PERMISSION}))
    nvml = RecordingNvml(FakeNvml({"nvmlDeviceGetName": Absence.LOST}))
    assert tree.text("/a") is Absence.NO_PERMISSION
    assert nvml.query("nvmlDeviceGetName", device="index:0") is Absence.LOST
    machine = RecordedMachine(system=SystemFacts(os="linux"), files=tree.files, nvml=nvml.answers)
    assert RecordedTree(machine).text("/a") is Absence.NO_PERMISSION
    assert RecordedTree(machine).text("/never/read") is Absence.NOT_SUPPORTED
    played = RecordedNvml(machine)
    assert played.query("nvmlDeviceGetName", device="index:0") is Absence.LOST
    assert played.query("nvmlDeviceGetUUID", device="index:0") is Absence.NOT_SUPPORTED


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, "no_recording"),
        (b"", "broken_recording"),
        (b"[]", "broken_recording"),
        (b"\xff\xfe", "broken_recording"),
        (b'{"system": {"os": "linux"}, "format": "other/9"}', "broken_recording"),
        (b"[" * 100_000, "broken_recording"),
    ],
)
def test_broken_recording_is_explained(tmp_path: Path, content: bytes | None, code: str) -> None:
    """A missing, damaged or foreign file is a sentence, not a traceback."""
    if content is not None:
        (tmp_path / "machine.json").write_bytes(content)
    with pytest.raises(EnvironmentProblem) as problem:
        registry.replay(tmp_path)
    assert problem.value.info.code == code


def test_folder_that_cannot_be_written_is_explained(tmp_path: Path) -> None:
    """Recording into a path that is a file says so."""
    blocked = tmp_path / "file"
    blocked.write_text("x")
    with pytest.raises(EnvironmentProblem) as problem:
        write(blocked / "below", RecordedMachine(system=SystemFacts(os="linux")))
    assert problem.value.info.code == "not_writable"


def test_tree_reads_below_its_root(tmp_path: Path) -> None:
    """A folder shaped like the kernel's files is read like them; NUL padding is cut."""
    (tmp_path / "sys").mkdir()
    (tmp_path / "sys" / "vendor").write_bytes(b"0x1002\n\0\0\0")
    tree = FileTree(tmp_path)
    assert tree.text("/sys/vendor") == "0x1002"
    assert tree.text("/sys/none") is Absence.NOT_SUPPORTED
    assert isinstance(tree.text("/sys"), Absence)
    assert tree.names("/sys") == ("vendor",)
    assert tree.names("/none") == ()
    assert tree.head("/sys/vendor", 2) == b"0x"
    assert tree.target("/sys/vendor") == "/sys/vendor"


def test_file_that_may_not_be_read_is_recorded_as_such() -> None:
    """The reason survives recording and replay: no permission is not "not there"."""
    refused = RecordingTree(FakeTree({}, binary={"/dmi": Absence.NO_PERMISSION}))
    assert refused.head("/dmi", 10) is Absence.NO_PERMISSION
    system = SystemFacts(os="linux")
    played = RecordedTree(RecordedMachine(system=system, files=refused.files))
    assert played.head("/dmi", 10) is Absence.NO_PERMISSION
    assert played.head("/other", 10) is Absence.NOT_SUPPORTED
