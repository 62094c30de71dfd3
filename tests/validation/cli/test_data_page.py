"""The page about data, followed by somebody with a table and a trace that the library has never seen."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from validation.kernel.store import read_log
from validation.kinds.study.records import STUDY

from .commands import Optgap

PAGE = Path(__file__).parents[3] / "docs" / "data.md"


def commands() -> list[list[str]]:
    """The studies of the page, word by word."""
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines() if line.strip()]
    return [shlex.split(line) for line in lines]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with what the page names, in the shapes that it describes."""
    monkeypatch.chdir(tmp_path)
    Path("tables").mkdir()
    Path("tables/mine.csv").write_text("batch_size,1,2,4,8\n16,10,18,30,\n32,6,11,20,33\n", encoding="utf-8")
    rows = "".join(f"job {number},{700 * number},{3600 * (1 + number % 3)},{1 + number % 4}\n" for number in range(24))
    Path("jobs.csv").write_text(f"JobID,submit_time,duration,num_gpu\n{rows}job 24,later,60,1\n", encoding="utf-8")
    held = "".join(f"job {number},server {number % 6},{1 + number % 3},{10 * number},500\n" for number in range(18))
    Path("placements.csv").write_text(f"job_id,machine,gpus,start,end\n{held}", encoding="utf-8")


@pytest.mark.slow
@pytest.mark.usefixtures("files")
def test_the_commands_of_the_page_are_studies(optgap: Optgap) -> None:
    found = commands()
    assert len(found) >= 2
    for words in found:
        assert words[:2] == ["optgap", "study"]
        said = optgap(*words[1:], "--jobs", "1")
        assert said.code == 0, said.err
        output = Path(words[words.index("-o") + 1])
        rows = read_log(output, STUDY).rows
        assert rows
        assert {row["source"] for row in rows} == {"trace"}
        assert "Real data" in (output / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_frames_of_the_page_are_studied(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (block,) = (one for one in blocks if "gap_study" in one)
    (tmp_path / "frames.py").write_text(block, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "frames.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "same_finish" in done.stdout
    (output,) = re.findall(r'output="(\S+)"', block)
    assert {row["source"] for row in read_log(tmp_path / output, STUDY).rows} == {"trace"}
