"""What is installed for the helper: polkit's action, the install step, Windows' manifest."""

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET
from xml.parsers import expat

import pytest

from app.power.trust import PROGRAM, distrust

POWER = Path(__file__).resolve().parents[3] / "packaging" / "power"
POLICY = POWER / "org.rigtune.power.policy"
DTD = Path("/usr/share/polkit-1/policyconfig-1.dtd")

XML_NAMESPACE = "{http://www.w3.org/XML/1998/namespace}"
_QUANTITY = {0: "", 1: "?", 2: "*", 3: "+"}


class Dtd:
    """Just enough of a validator: content models as regular expressions over child names."""

    def __init__(self, text: str) -> None:
        self.models: dict[str, str] = {}
        self.attributes: dict[str, dict[str, bool]] = {}
        parser = expat.ParserCreate()
        parser.ElementDeclHandler = self._element
        parser.AttlistDeclHandler = self._attribute
        parser.Parse(f"<!DOCTYPE policyconfig [{text}]><policyconfig/>", True)

    def problems(self, element: ET.Element) -> list[str]:
        """Return what is wrong with ``element`` and everything in it."""
        children = "".join(f"{child.tag} " for child in element)
        known = self.attributes.get(element.tag, {})
        names = {n.replace(XML_NAMESPACE, "xml:") for n in element.attrib}
        found = [f"{element.tag}: attribute {n}" for n in names - set(known)]
        found += [f"{element.tag}: no {n}" for n, needed in known.items() if needed - (n in names)]
        if not re.fullmatch(self.models.get(element.tag, "(?!)"), children):
            found.append(f"{element.tag}: [{children}]")
        for child in element:
            found += self.problems(child)
        return found

    def _element(self, name: str, model: tuple[int, int, str | None, tuple[object, ...]]) -> None:
        self.models[name] = self._pattern(model)

    def _attribute(
        self, name: str, attribute: str, _kind: str, _default: str | None, needed: bool
    ) -> None:
        self.attributes.setdefault(name, {})[attribute] = needed

    def _pattern(self, model: object) -> str:
        assert isinstance(model, tuple)
        kind, quantity, name, children = model
        if kind == 4:
            inner = f"{name} "
        elif kind == 3:
            inner = ""
        else:
            inner = ("|" if kind == 5 else "").join(self._pattern(child) for child in children)
        return f"(?:{inner}){_QUANTITY[quantity]}"


@pytest.mark.skipif(not DTD.is_file(), reason="polkit's DTD is not on this machine")
def test_policy_is_valid() -> None:
    """The action follows polkit's own document type, and the validator can find faults."""
    dtd = Dtd(DTD.read_text("utf-8"))
    assert dtd.problems(ET.parse(POLICY).getroot()) == []
    broken = POLICY.read_text("utf-8").replace("<message>", "<massage>")
    broken = broken.replace("</message>", "</massage>").replace(' id="', ' name="')
    assert len(dtd.problems(ET.fromstring(broken))) == 4


def test_policy_asks_for_an_administrator_each_time() -> None:
    """Only at this machine's screen, only with an administrator's password, only this program."""
    root = ET.parse(POLICY).getroot()
    assert [e.text for e in root.iter("allow_any")] == ["no"]
    assert [e.text for e in root.iter("allow_inactive")] == ["no"]
    assert [e.text for e in root.iter("allow_active")] == ["auth_admin"]
    assert [(e.get("key"), e.text) for e in root.iter("annotate")] == [
        ("org.freedesktop.policykit.exec.path", PROGRAM.as_posix())
    ]


def test_manifest_asks_for_elevation() -> None:
    """Windows shows its prompt for the helper, and for nothing else of RigTune."""
    root = ET.parse(POWER / "helper.manifest").getroot()
    levels = [e.get("level") for e in root.iter() if e.tag.endswith("requestedExecutionLevel")]
    assert levels == ["requireAdministrator"]


def install(dest: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", str(POWER / "install.sh"), *arguments],
        env={"DESTDIR": str(dest), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_installed_helper_is_trusted(tmp_path: Path) -> None:
    """Whatever the modes of the built folder, the installed one passes RigTune's own check."""
    built, dest = tmp_path / "built", tmp_path / "dest"
    (built / "_internal").mkdir(parents=True)
    for name in ("rigtune-power-helper", "_internal/lib.so"):
        (built / name).write_text("x")
        (built / name).chmod(0o666)
    built.chmod(0o777)
    assert install(dest, str(built)).returncode == 0
    program = dest / PROGRAM.relative_to("/")
    assert distrust(program, owner=os.geteuid(), top=dest) is None
    assert (dest / "var/lib/rigtune-power").stat().st_mode & 0o777 == 0o700
    assert (dest / "usr/share/polkit-1/actions/org.rigtune.power.policy").is_file()
    assert install(dest, str(built)).returncode == 0  # again, over itself


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_removal_waits_for_a_pending_restore(tmp_path: Path) -> None:
    """The helper is not removed while something is still to be put back."""
    built, dest = tmp_path / "built", tmp_path / "dest"
    built.mkdir()
    (built / "rigtune-power-helper").write_text("x")
    install(dest, str(built))
    entry = dest / "var/lib/rigtune-power/0000-03-00.0.json"
    entry.write_text("{}")
    assert install(dest, "--remove").returncode == 1
    assert (dest / PROGRAM.relative_to("/")).exists()
    entry.unlink()
    assert install(dest, "--remove").returncode == 0
    assert not (dest / "usr/libexec/rigtune-power").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
@pytest.mark.parametrize("arguments", [(), ("a", "b"), ("/nonexistent",)])
def test_wrong_calls_change_nothing(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """A wrong call says so and installs nothing."""
    done = install(tmp_path / "dest", *arguments)
    assert done.returncode != 0
    assert done.stderr
    assert not (tmp_path / "dest").exists()
