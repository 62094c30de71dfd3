"""Who decides in replays of the tables and is of no catalogue."""

from benchmarks.replays import allox_first
from instances.gavel.makespan import Makespan


def test_allox_runs_the_first_job_of_each_worker() -> None:
    """On the fast worker jobs take 1 and 2 s, 4 s together to their ends; the longer on the slow one, 1 and 4 s."""
    instance = Makespan(throughputs=[[2.0, 1.0]] * 2, num_workers=[1, 1], steps=[4.0, 2.0])
    assert allox_first(instance).time_fractions.tolist() == [[0, 0], [1, 0]]
    # Where the other worker is nearly as fast nobody waits, 2 and 4/3 s.
    alike = Makespan(throughputs=[[2.0, 1.5]] * 2, num_workers=[1, 1], steps=[4.0, 2.0])
    assert allox_first(alike).time_fractions.tolist() == [[1, 0], [0, 1]]
