"""Draw the picture of the front page: a plan of a heuristic beside the optimal one.

``python docs/first_gap.py`` writes ``docs/first_gap.svg`` anew.
"""

from pathlib import Path

import formulations
from heuristics.aryl.reclaim import server_fraction
from instances.aryl.reclaim import wide_job
from validation.pages.drawing import as_svg, own_style


def picture() -> str:
    """Return the picture as SVG."""
    instance = wide_job()
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    plans = {"Aryl's Algorithm 1": server_fraction(instance), "the proven optimum": solution.plan}
    values = {name: round(instance.objective(plan)) for name, plan in plans.items()}
    found, best = values.values()
    with own_style({"font.size": 12}, salt="first gap"):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7.2, 4), layout="constrained")
        figure.suptitle(
            f"{instance.demand} of {instance.num_servers} servers must go back: a gap of {found / best - 1:.0%}"
        )
        for axes, (name, plan) in zip(figure.subplots(1, 2, sharey=True), plans.items(), strict=True):
            instance.plot(plan, ax=axes)
            axes.set_title(f"{name}:\n{values[name]} job{'s' * (values[name] != 1)} preempted", fontsize="medium")
            axes.label_outer()
            legend = axes.get_legend()
            legend.remove()
        marks = dict(zip([text.get_text() for text in legend.get_texts()], legend.legend_handles, strict=True))
        shown = ["returned server", "preempted job"]
        figure.legend([marks[name] for name in shown], shown, loc="outside lower center", ncols=2, frameon=False)
        return as_svg(figure)


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(picture(), encoding="utf-8")
