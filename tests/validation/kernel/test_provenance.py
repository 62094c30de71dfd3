"""The commit that results are said to come from."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from validation.kernel import provenance


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_looking_for_the_commit_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that is killed while it looks must not leave the lock of somebody's index behind."""
    source = tmp_path / "library" / "kernel" / "provenance.py"
    source.parent.mkdir(parents=True)
    source.write_text("here = True\n", encoding="utf-8")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e@example.org"]
    for arguments in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "first"]):
        subprocess.run([*git, *arguments], check=True)
    os.utime(source, (0, 0))  # What the index says of the file is out of date, so that it could be refreshed.
    index = tmp_path / ".git" / "index"
    before = index.read_bytes()
    monkeypatch.setattr(provenance, "__file__", str(source))
    clean = provenance._commit()
    assert index.read_bytes() == before
    assert clean is not None
    assert clean.isalnum()
    source.write_text("here = False\n", encoding="utf-8")
    assert provenance._commit() == f"{clean} (changed)"
