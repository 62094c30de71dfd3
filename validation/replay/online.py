"""Programs that decide online: one function ``decide(state) -> plan``, one event at a time, with no future beside it.

A program is a file with a function of that name.  It gets plain JSON and answers the plan's JSON form, or None, so that
it needs nothing of the library.  It runs in a process that a fresh interpreter has forked, in whose memory nothing of
the trace has ever been, behind walls as strict as the judge's (:mod:`validation.kernel.walls`).  The replay goes on
outside, and carries out the plan that it has made and judged of the answer itself.
"""

from __future__ import annotations

import functools
import glob
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

from instances.base import Instance, Plan, PlanError
from validation.catalogue import IMPORT_SECONDS, import_object
from validation.errors import ReplayError, StudyError
from validation.kernel.isolation import Apart, become_keeper, death, describe, plain, remove, silence
from validation.kernel.judging import Answer, Asked, Status, judge
from validation.kernel.walls import LINUX, Rules, enclose, ruled, rules

__all__ = ["DECIDE", "PARCELS", "OnlineProgram", "is_program", "serve"]

AnyInstance = Instance[Any]

DECIDE = "decide"
"""Name of the function, by which a program is told from a heuristic."""

PARCELS = "kept"
"""Folder of temporary files with what is kept of replays, which tell of other jobs than have come in this one."""

PATIENCE = 5.0
"""Seconds for a process to end that has nothing more to do."""


def is_program(given: Any) -> bool:
    """Return whether a decision maker is a program: "file.py:decide" or "module:decide"."""
    return isinstance(given, str) and ":" in given and given.rpartition(":")[2] == DECIDE


class OnlineProgram:
    """A program that decides; a decision maker of :mod:`validation.replay.deciders`.

    Parameters
    ----------
    problem, given : str
        Of the catalogue, and the program's reference.
    time_limit : float
        For each answer, s.
    memory : int, optional
        Bytes above which it is stopped.

    Notes
    -----
    It is one process from the first event to the last, so that it may remember what it has seen.  To be used as a
    context.
    """

    def __init__(self, problem: str, given: str, *, time_limit: float, memory: int | None = None) -> None:
        self.problem, self.name = problem, given
        self.time_limit, self.memory = time_limit, memory
        self.process: subprocess.Popen[str] | None = None
        self.place = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is None:
            return
        assert self.process.stdin is not None
        try:
            # It ends when nothing more can come.
            self.process.stdin.close()
            self.process.wait(PATIENCE)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process = None
        remove(self.place)

    def ask(self, instance: AnyInstance, **_: Any) -> Answer:
        """Return its plan for an instance of which there is nothing else to tell."""
        return self.decide(instance, {})

    def decide(self, instance: AnyInstance, told: Mapping[str, Any], forgiven: Collection[str] = ()) -> Answer:
        """Return its plan for the instance of an event, judged.

        Parameters
        ----------
        instance : Instance
        told : mapping
            What else the state has: ``event``, ``time``, ``jobs`` and ``rows``.
        forgiven : collection of str
            Rules that a plan may break.

        Raises
        ------
        ReplayError
            When it has no answer, no plan in it, or one that breaks another rule; names program, event and rule.
        """
        state = {**told, "problem": self.problem, "instance": instance.to_dict()}
        said = self._said(json.dumps(state, allow_nan=False), self.time_limit)
        answer = _judged(instance, said)
        broken = answer.status == Status.INFEASIBLE and answer.plan is not None
        if broken and all(one.rule in forgiven for one in instance.violations(answer.plan)):
            return answer
        if broken or answer.status == Status.FAILED:
            at = f"event {told['event']} at {told['time']:.10g} s" if told else "no event"
            raise ReplayError(f"{self.name}, {at}, {self.problem}: {answer.reason}")
        return answer

    def _said(self, state: str, seconds: float) -> dict[str, Any]:
        """Return what the process says to a state; "" has it import the program and nothing else."""
        if self.process is None:
            self._start()
            first = self._said("", IMPORT_SECONDS)
            if first["reason"]:
                raise ReplayError(f"{self.name}: {first['reason']}")
        process = self.process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps([state, seconds]) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise ReplayError(f"{self.name}: the process that asks it died: {death(process.wait())}")
        found: dict[str, Any] = json.loads(line)
        return found

    def _start(self) -> None:
        """Start a fresh interpreter: what this process has in memory, the jobs to come among it, is nowhere in that."""
        now = rules()
        temporary = tempfile.gettempdir()
        beside = [Path(one) for one in glob.glob(f"{glob.escape(temporary)}/optgap-*")]
        self.place = tempfile.mkdtemp(prefix="optgap-")
        asked = {
            "given": self.name,
            "path": sys.path,
            "network": now.network,
            "memory": self.memory or now.memory,
            "hidden": [str(one) for one in (*now.hidden, *beside, Path(temporary, PARCELS))],
        }
        # Without the current directory, whose files may have the names of other modules.
        program = [sys.executable, "-P", "-c", "from validation.replay.online import serve; serve()"]
        self.process = subprocess.Popen(
            program,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            # In a session of its own, so that Ctrl-C in the terminal is for this process to handle.
            start_new_session=True,
            env={**os.environ, "TMPDIR": self.place},
        )
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(asked) + "\n")


def _judged(instance: AnyInstance, said: Mapping[str, Any]) -> Answer:
    """Make a plan of an answer, field by field, and judge it."""
    seconds = float(said["seconds"])
    if said["reason"]:
        return Answer(None, Status.FAILED, seconds=seconds, reason=plain(said["reason"]))
    try:
        data = json.loads(said["plan"])
        plan: Plan | None = None if data is None else instance.plan_type.from_dict(data)
    except (PlanError, TypeError, ValueError, RecursionError) as error:
        return Answer(None, Status.FAILED, seconds=seconds, reason=plain(str(error)))
    return judge(instance, Asked(plan, seconds))


# --- the process beside -------------------------------------------------------------------------


def serve() -> None:
    """Body of the process beside: pass states on to the program and answers back, until there are no more."""
    become_keeper(os.getppid())
    questions = os.fdopen(os.dup(0), encoding="utf-8")
    asked = json.loads(questions.readline())
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    silence(0, 1)
    sys.path += [place for place in asked["path"] if place not in sys.path]
    hidden = tuple(map(Path, asked["hidden"]))
    with ruled(Rules(hidden, asked["network"], strict=True, memory=asked["memory"])):
        if LINUX:
            enclose()
        with Apart(functools.partial(_decided, asked["given"])) as apart:
            for line in questions:
                state, seconds = json.loads(line)
                reply = apart.ask(state, seconds=seconds)
                found = reply.content or {}
                said = {"plan": found.get("plan"), "reason": reply.reason or str(found.get("error", ""))}
                answers.write(json.dumps({**said, "seconds": reply.seconds}) + "\n")
                answers.flush()


def _decided(given: str, state: str) -> dict[str, Any]:
    """Ask the program, behind the walls; what it answers is text."""
    place = given.rpartition(":")[0]
    if not state and LINUX:
        # The command line of a process names files, and seeds.
        others = (Path("/proc", one) for one in os.listdir("/proc") if one.isdecimal() and one != f"{os.getpid()}")
        with ruled(hidden=tuple(others)):
            enclose()
    try:
        function = getattr(import_object(place), DECIDE, None)
    except StudyError as error:
        return {"error": str(error)}
    if not callable(function):
        return {"error": f"{place} has no function {DECIDE}(state)"}
    if not state:
        return {}
    plan = function(json.loads(state))
    try:
        return {"plan": json.dumps(plan, default=_listed)}
    except (TypeError, ValueError, RecursionError) as error:
        return {"error": f"{DECIDE} returned what is no JSON: {describe(error)}"}


def _listed(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not among what it has")
