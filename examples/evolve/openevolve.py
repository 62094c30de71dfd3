"""What OpenEvolve asks for: ``evaluate(program_path)``, by the judge's command in a fresh process for each program.

The program defines ``heuristic(instance)``.  Whatever it does, it gets a score.
"""

import json
import subprocess
import sys

PROBLEM = "aryl.reclaim"
OPTGAP = [sys.executable, "-c", "from validation.cli import main; main()"]


def evaluate(program_path: str) -> dict[str, float]:
    """The judge's number as ``combined_score``, and the fraction of instances with a feasible plan."""
    asked = ["judge", f"{program_path}:heuristic", "--problem", PROBLEM, "--json"]
    done = subprocess.run([*OPTGAP, *asked], capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return {"combined_score": 0.0, "feasible": 0.0}
    found = json.loads(done.stdout)
    return {"combined_score": found["score"], "feasible": found["counts"]["feasible"] / len(found["instances"])}
