"""Prism's problem: a GPU for each model, in exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

from .common import Counter, Number, Problem, Record, Rules, TooLarge, need

MOST_MODELS = 60
"""Models up to which all plans are looked for, one model after the other."""


class Placement(Problem):
    """Search over plans, model by model; the pressure of a GPU only grows with what comes to it."""

    sense = "min"
    data = {
        "memory": "num> m",
        "sizes": "num+ n",
        "rates": "num+ n",
        "slos": "num> n",
        "current": "int n",
        "move_limit": "num+?",
    }
    decisions = {"gpus": "int n"}

    def check(self, it: Record) -> None:
        need(all(-1 <= gpu < it.dims["m"] for gpu in it.current), "current: there is no such GPU")
        # A weight is the double that is nearest to rate over objective.
        it.weights = [Fraction(float(rate) / float(slo)) for rate, slo in zip(it.rates, it.slos, strict=True)]

    def _moves(self, it: Record, job: int, gpu: int) -> Fraction:
        """Return what is moved of a model that comes to a GPU, GB."""
        return Fraction(it.sizes[job]) if -1 < it.current[job] != gpu else Fraction(0)

    def value(self, it: Record, plan: Record) -> Number:
        if any(not 0 <= gpu < it.dims["m"] for gpu in plan.gpus):
            return math.inf
        worst = Fraction(0)
        for gpu, memory in enumerate(it.memory):
            jobs = [job for job, where in enumerate(plan.gpus) if where == gpu]
            free = memory - sum(it.sizes[job] for job in jobs)
            if free <= 0:
                return math.inf
            worst = max(worst, sum((it.weights[job] for job in jobs), Fraction(0)) / free)
        return worst

    def broken(self, it: Record, plan: Record, rules: Rules) -> None:
        for where in plan.gpus:
            rules.require("gpu_exists", 0 <= where < it.dims["m"])
        for gpu, memory in enumerate(it.memory):
            taken = sum(it.sizes[job] for job, where in enumerate(plan.gpus) if where == gpu)
            rules.require("memory", taken < memory)
        moved = sum((self._moves(it, job, gpu) for job, gpu in enumerate(plan.gpus)), Fraction(0))
        rules.require("moves", moved <= it.move_limit)

    def search(self, it: Record) -> Number:
        n, m = it.dims["n"], it.dims["m"]
        if n > MOST_MODELS:
            raise TooLarge
        counter = Counter()
        order = sorted(range(n), key=lambda job: (-it.sizes[job], -it.weights[job]))
        best: list[Number] = [math.inf]
        free, weight = [Fraction(memory) for memory in it.memory], [Fraction(0)] * m

        def place(at: int, moved: Fraction, worst: Fraction) -> None:
            if at == n:
                best[0] = min(best[0], worst)
                return
            job = order[at]
            tried = set()
            for gpu in range(m):
                further = moved + self._moves(it, job, gpu)
                # GPUs that have the same left, and hold as much, are not told apart where nothing is limited.
                alike = (free[gpu], weight[gpu], gpu if it.move_limit != math.inf else -1)
                if alike in tried or free[gpu] <= it.sizes[job] or further > it.move_limit:
                    continue
                tried.add(alike)
                counter.step()
                left, load = free[gpu] - it.sizes[job], weight[gpu] + it.weights[job]
                if max(worst, load / left) >= best[0]:
                    continue
                before = free[gpu], weight[gpu]
                free[gpu], weight[gpu] = left, load
                place(at + 1, further, max(worst, load / left))
                free[gpu], weight[gpu] = before

        place(0, Fraction(0), Fraction(0))
        return best[0]


PROBLEMS = {"prism.placement": Placement()}
