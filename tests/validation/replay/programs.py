"""Programs that decide online, as files."""

from pathlib import Path

SHORTEST = (Path(__file__).parents[3] / "examples" / "replay" / "shortest_first.py").read_text(encoding="utf-8")
"""Decides ``aryl.base_allocation``, in plain Python."""


def program(folder: Path, text: str) -> str:
    """Write a program; its reference."""
    (folder / "policy.py").write_text(text)
    return f"{folder}/policy.py:decide"
