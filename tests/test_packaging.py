"""What is built and installed is the four packages, typed, and nothing else."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("formulations", "heuristics", "instances", "validation")


def test_wheel_holds_the_four_packages(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (wheel,) = tmp_path.glob("scheduling_formulations-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert tops == {*ROOMS, wheel.name.removesuffix("-py3-none-any.whl") + ".dist-info"}
    packed = {name for name in names if name.split("/")[0] in ROOMS}
    tracked = {
        str(path.relative_to(ROOT))
        for room in ROOMS
        for path in (ROOT / room).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert packed == tracked
    assert {f"{room}/py.typed" for room in ROOMS} <= packed
    entry_points = next(name for name in names if name.endswith("entry_points.txt"))
    assert "optgap = validation.cli:main" in zipfile.ZipFile(wheel).read(entry_points).decode()
