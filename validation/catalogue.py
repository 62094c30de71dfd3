"""The library's table of contents: every problem with its instances, model and heuristics.

Adding a problem means adding its files, one in each room under the same name, and one entry here.
The exact model of a problem needs no mention: it is ``formulations.<paper>.<problem>``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from heuristics.afs import elastic_sharing as afs_elastic_sharing_heuristics
from heuristics.afs import gpu_placement as afs_gpu_placement_heuristics
from heuristics.afs import network_packing as afs_network_packing_heuristics
from heuristics.afs import two_job as afs_two_job_heuristics
from heuristics.aryl import elastic_allocation as aryl_elastic_allocation
from heuristics.aryl import placement as aryl_placement_heuristics
from heuristics.aryl import reclaim as aryl_reclaim
from heuristics.aryl import two_job as aryl_two_job_heuristics
from heuristics.elasticflow import admission as elasticflow_admission_heuristics
from heuristics.elasticflow import allocation as elasticflow_allocation_heuristics
from heuristics.elasticflow import minimum_satisfactory_share as elasticflow_share_heuristics
from heuristics.elasticflow import placement as elasticflow_placement_heuristics
from heuristics.gavel import cost as gavel_cost_heuristics
from heuristics.gavel import fifo as gavel_fifo_heuristics
from heuristics.gavel import finish_time_fairness as gavel_finish_time_fairness_heuristics
from heuristics.gavel import hierarchical_fairness as gavel_hierarchical_fairness_heuristics
from heuristics.gavel import makespan as gavel_makespan_heuristics
from heuristics.gavel import max_min_fairness as gavel_max_min_fairness_heuristics
from heuristics.gavel import round_assignment as gavel_round_assignment_heuristics
from heuristics.gavel import shortest_job_first as gavel_shortest_job_first_heuristics
from heuristics.gavel import throughput_per_dollar as gavel_throughput_per_dollar_heuristics
from heuristics.gavel import total_throughput as gavel_total_throughput_heuristics
from heuristics.synergy import allocation as synergy_allocation_heuristics
from heuristics.synergy import heterogeneous_allocation as synergy_heterogeneous_allocation_heuristics
from heuristics.synergy import placement as synergy_placement_heuristics
from heuristics.synergy import tuning as synergy_tuning_heuristics
from instances.afs import elastic_sharing as afs_elastic_sharing
from instances.afs import gpu_placement as afs_gpu_placement
from instances.afs import network_packing as afs_network_packing
from instances.afs import traces as afs_traces
from instances.afs import two_job as afs_two_job
from instances.aryl import elastic_allocation, reclaim
from instances.aryl import placement as aryl_placement
from instances.aryl import two_job as aryl_two_job
from instances.base import Instance, nearest
from instances.elasticflow import admission as elasticflow_admission
from instances.elasticflow import allocation as elasticflow_allocation
from instances.elasticflow import minimum_satisfactory_share as elasticflow_share
from instances.elasticflow import placement as elasticflow_placement
from instances.gavel import cost as gavel_cost
from instances.gavel import fifo as gavel_fifo
from instances.gavel import finish_time_fairness as gavel_finish_time_fairness
from instances.gavel import hierarchical_fairness as gavel_hierarchical_fairness
from instances.gavel import makespan as gavel_makespan
from instances.gavel import max_min_fairness as gavel_max_min_fairness
from instances.gavel import round_assignment as gavel_round_assignment
from instances.gavel import shortest_job_first as gavel_shortest_job_first
from instances.gavel import throughput_per_dollar as gavel_throughput_per_dollar
from instances.gavel import total_throughput as gavel_total_throughput
from instances.synergy import allocation as synergy_allocation
from instances.synergy import heterogeneous_allocation as synergy_heterogeneous_allocation
from instances.synergy import placement as synergy_placement
from instances.synergy import tuning as synergy_tuning


@dataclass(frozen=True)
class Heuristic:
    """A heuristic, and what is promised of it.

    Attributes
    ----------
    function : callable
        ``function(instance, **options) -> Plan``; one that takes ``rng`` is random.
    optimal : bool
        Whether its plans are promised to be optimal.
    declines : bool
        Whether it may return None on instances that have a feasible plan.
    infeasible_because : str
        Why its plans may break rules, where the paper's algorithm lets them; empty otherwise.
    """

    function: Callable[..., Any]
    optimal: bool = False
    declines: bool = False
    infeasible_because: str = ""


@dataclass(frozen=True)
class Rescaling:
    """A unit: multiplying these fields by c multiplies every plan's value by c ** ``power``."""

    fields: tuple[str, ...]
    power: int


@dataclass(frozen=True)
class Entry:
    """One problem.

    Attributes
    ----------
    title : str
        What the problem is, in a line.
    source : str
        Paper and section.
    instance : type
        The instance class; it names the problem.
    generate : callable
        ``generate(rng, *, ...) -> Instance``.
    size : str
        The parameter of ``generate`` that ``--sizes`` sets.
    sizes : tuple of int
        Its values in a study that names none.
    heuristics : mapping
        Name to heuristic.
    from_trace : callable, optional
        ``from_trace(rng, *, throughputs, trace, <size>) -> Instance``: an instance of the given
        size from files of real data.
    symmetric : tuple of str
        Dimensions whose numbering means nothing, so that the optimum does not depend on it.
    rescalings : tuple of Rescaling
        Units that can be changed.
    enlarge : callable, optional
        ``enlarge(instance)`` gives it more resources, so that its optimum gets no worse.
    relaxation : callable, optional
        ``relaxation(instance)`` is the bound that the paper measures its heuristic against; studies
        then show how much of a heuristic's distance to it is the bound's own slack.
    """

    title: str
    source: str
    instance: type[Instance[Any]]
    generate: Callable[..., Instance[Any]]
    size: str
    sizes: tuple[int, ...]
    heuristics: Mapping[str, Heuristic] = field(default_factory=dict)
    from_trace: Callable[..., Instance[Any]] | None = None
    symmetric: tuple[str, ...] = ()
    rescalings: tuple[Rescaling, ...] = ()
    enlarge: Callable[[Any], Instance[Any]] | None = None
    relaxation: Callable[[Any], float] | None = None

    @property
    def problem(self) -> str:
        return self.instance.problem


BLIND_TO_SLOS = "it does not look at SLOs"
SKIPS_JOBS = "it skips the jobs whose best-case demand no longer fits"
NO_ROOM_UNSPLIT = "a job that may not be split can find no server with enough free GPUs"
MISSES_WHOLE_GPUS = "the demands can exceed the servers, and with whole GPUs it can miss a placement"
NO_TYPE_LEFT = "a job can find no machine type with enough free GPUs"
MISSES_DEADLINES = "earlier jobs take every GPU that makes them faster, so later ones can miss their deadlines"
TAKES_CURVES_FOR_LINEAR = "Theorem 1 takes every curve for linear, so jobs can fall short of their iterations"
LEAVES_GPUS_IDLE = "as printed, jobs get one GPU at most beyond their shares, so that useful ones can stay idle"


def _stage_one_bound(instance: synergy_tuning.Tuning) -> float:
    """Synergy's super-machine: the relaxation of stage one (Theorem 4.1)."""
    # Pyomo is imported only where a bound is asked for.
    import formulations
    from formulations.synergy.allocation import relaxation

    return formulations.solve(relaxation(instance.stage_one())).bound


_ENTRIES = [
    Entry(
        title="Which servers to give back, preempting the fewest jobs",
        source="Aryl, section 4 and Algorithm 1",
        instance=reclaim.Reclaim,
        generate=reclaim.generate,
        size="num_servers",
        sizes=(10, 20, 40),
        heuristics={
            "server_fraction": Heuristic(aryl_reclaim.server_fraction),
            "gpu_fraction": Heuristic(aryl_reclaim.gpu_fraction),
            "smallest_count_first": Heuristic(aryl_reclaim.smallest_count_first),
            "random": Heuristic(aryl_reclaim.random),
            "local_search": Heuristic(aryl_reclaim.local_search),
        },
        symmetric=("n", "s"),
    ),
    Entry(
        title="Which elastic jobs get the spare GPUs, reducing running time the most",
        source="Aryl, section 5.2 and Algorithm 2, phase two",
        instance=elastic_allocation.ElasticAllocation,
        generate=elastic_allocation.generate,
        size="num_jobs",
        sizes=(10, 40, 160),
        heuristics={
            "dynamic_program": Heuristic(aryl_elastic_allocation.dynamic_program, optimal=True),
            "marginal_greedy": Heuristic(aryl_elastic_allocation.marginal_greedy),
        },
        from_trace=elastic_allocation.from_trace,
        symmetric=("n",),
        rescalings=(Rescaling(("min_running_times", "running_times"), 1),),
        enlarge=lambda instance: replace(instance, capacity=instance.capacity + 1),
    ),
    Entry(
        title="Which servers hold the workers, opening the fewest",
        source="Aryl, section 5.3",
        instance=aryl_placement.Placement,
        generate=aryl_placement.generate,
        size="total_workers",
        sizes=(10, 20, 40),
        heuristics={
            "best_fit_decreasing": Heuristic(
                aryl_placement_heuristics.best_fit_decreasing,
                infeasible_because="a worker that fits on no server any more is left out",
            ),
        },
        symmetric=("n", "s"),
        enlarge=lambda instance: replace(instance, server_gpus=instance.server_gpus + 1),
    ),
    Entry(
        title="How two elastic jobs share GPUs until the first completes",
        source="Aryl, section 5.1 and Appendix C",
        instance=aryl_two_job.TwoJob,
        generate=aryl_two_job.generate,
        size="num_gpus",
        sizes=(8, 64, 512),
        heuristics={"closed_form": Heuristic(aryl_two_job_heuristics.closed_form)},
        rescalings=(Rescaling(("workloads",), 1),),
        enlarge=lambda instance: replace(instance, num_gpus=instance.num_gpus + 1),
    ),
    Entry(
        title="Time on worker types, so that the job that fares worst fares best",
        source="Gavel, section 4.1",
        instance=gavel_max_min_fairness.MaxMinFairness,
        generate=gavel_max_min_fairness.generate,
        size="num_jobs",
        sizes=(8, 32, 128),
        heuristics={
            "isolated": Heuristic(gavel_max_min_fairness_heuristics.isolated),
            "equal_share": Heuristic(gavel_max_min_fairness_heuristics.equal_share),
            "heterogeneity_agnostic": Heuristic(gavel_max_min_fairness_heuristics.heterogeneity_agnostic),
            "random_packing": Heuristic(gavel_max_min_fairness_heuristics.random_packing),
            "multiplicative_weights": Heuristic(gavel_max_min_fairness_heuristics.multiplicative_weights),
        },
        from_trace=gavel_max_min_fairness.from_trace,
        symmetric=("n", "k", "p", "q"),
        rescalings=(Rescaling(("throughputs", "pair_throughputs"), 0), Rescaling(("weights",), -1)),
    ),
    Entry(
        title="Time on worker types, so that the last job finishes as early as possible",
        source="Gavel, section 4.2",
        instance=gavel_makespan.Makespan,
        generate=gavel_makespan.generate,
        size="num_jobs",
        sizes=(8, 32, 128),
        heuristics={
            "same_finish": Heuristic(gavel_makespan_heuristics.same_finish),
            "isolated": Heuristic(gavel_makespan_heuristics.isolated),
            "equal_share": Heuristic(gavel_makespan_heuristics.equal_share),
            "heterogeneity_agnostic": Heuristic(gavel_makespan_heuristics.heterogeneity_agnostic),
            "random_packing": Heuristic(gavel_makespan_heuristics.random_packing),
        },
        from_trace=gavel_makespan.from_trace,
        symmetric=("n", "k", "p", "q"),
        rescalings=(Rescaling(("throughputs", "pair_throughputs"), -1), Rescaling(("steps",), 1)),
        enlarge=lambda instance: replace(instance, num_workers=instance.num_workers + 1),
    ),
    Entry(
        title="Time on worker types, so that no job finishes much later than in isolation",
        source="Gavel, section 4.2, after Themis",
        instance=gavel_finish_time_fairness.FinishTimeFairness,
        generate=gavel_finish_time_fairness.generate,
        size="num_jobs",
        sizes=(8, 32, 128),
        heuristics={
            "same_ratio": Heuristic(gavel_finish_time_fairness_heuristics.same_ratio),
            "isolated": Heuristic(gavel_finish_time_fairness_heuristics.isolated),
            "equal_share": Heuristic(gavel_finish_time_fairness_heuristics.equal_share),
            "heterogeneity_agnostic": Heuristic(gavel_finish_time_fairness_heuristics.heterogeneity_agnostic),
            "random_packing": Heuristic(gavel_finish_time_fairness_heuristics.random_packing),
        },
        from_trace=gavel_finish_time_fairness.from_trace,
        symmetric=("n", "k", "p", "q"),
        rescalings=(
            Rescaling(("throughputs", "pair_throughputs", "steps"), 0),
            Rescaling(("steps", "elapsed", "isolated_elapsed"), 0),
        ),
    ),
    Entry(
        title="Time on worker types, so that jobs run fast, the earlier the faster",
        source="Gavel, section 4.2",
        instance=gavel_fifo.Fifo,
        generate=gavel_fifo.generate,
        size="num_jobs",
        sizes=(8, 32, 128),
        heuristics={
            "fastest_free_type": Heuristic(gavel_fifo_heuristics.fastest_free_type),
            "backfilling": Heuristic(gavel_fifo_heuristics.backfilling),
            "isolated": Heuristic(gavel_fifo_heuristics.isolated),
            "equal_share": Heuristic(gavel_fifo_heuristics.equal_share),
            "heterogeneity_agnostic": Heuristic(gavel_fifo_heuristics.heterogeneity_agnostic),
            "random_packing": Heuristic(gavel_fifo_heuristics.random_packing),
        },
        from_trace=gavel_fifo.from_trace,
        symmetric=("k", "p", "q"),
        rescalings=(Rescaling(("throughputs", "pair_throughputs"), 0),),
    ),
    Entry(
        title="Time on worker types, so that one job finishes as soon as possible",
        source="Gavel, section 4.2",
        instance=gavel_shortest_job_first.ShortestJobFirst,
        generate=gavel_shortest_job_first.generate,
        size="num_jobs",
        sizes=(8, 32, 128),
        heuristics={
            "shortest_first": Heuristic(gavel_shortest_job_first_heuristics.shortest_first),
            "isolated": Heuristic(gavel_shortest_job_first_heuristics.isolated),
            "equal_share": Heuristic(gavel_shortest_job_first_heuristics.equal_share),
            "heterogeneity_agnostic": Heuristic(gavel_shortest_job_first_heuristics.heterogeneity_agnostic),
            "random_packing": Heuristic(gavel_shortest_job_first_heuristics.random_packing),
        },
        from_trace=gavel_shortest_job_first.from_trace,
        symmetric=("n", "k", "p", "q"),
        rescalings=(Rescaling(("throughputs", "pair_throughputs"), -1), Rescaling(("steps",), 1)),
        enlarge=lambda instance: replace(instance, num_workers=instance.num_workers + 1),
    ),
    Entry(
        title="Time on worker types, so that all jobs together make the most steps",
        source="Gavel, section 4.2 and Table 1",
        instance=gavel_total_throughput.TotalThroughput,
        generate=gavel_total_throughput.generate,
        size="num_jobs",
        sizes=(8, 32, 128),
        heuristics={
            "fastest_first": Heuristic(gavel_total_throughput_heuristics.fastest_first),
            "isolated": Heuristic(gavel_total_throughput_heuristics.isolated),
            "equal_share": Heuristic(gavel_total_throughput_heuristics.equal_share),
            "heterogeneity_agnostic": Heuristic(gavel_total_throughput_heuristics.heterogeneity_agnostic),
            "random_packing": Heuristic(gavel_total_throughput_heuristics.random_packing),
        },
        from_trace=gavel_total_throughput.from_trace,
        symmetric=("n", "k", "p", "q"),
        rescalings=(Rescaling(("throughputs", "pair_throughputs"), 1),),
        enlarge=lambda instance: replace(instance, num_workers=instance.num_workers + 1),
    ),
    Entry(
        title="Time on paid workers, for the most steps per dollar within the SLOs",
        source="Gavel, section 4.2 and Table 1",
        instance=gavel_cost.Cost,
        generate=gavel_cost.generate,
        size="num_jobs",
        sizes=(8, 32, 128),
        heuristics={
            "best_bargain": Heuristic(gavel_cost_heuristics.best_bargain, infeasible_because=BLIND_TO_SLOS),
            "isolated": Heuristic(gavel_cost_heuristics.isolated, infeasible_because=BLIND_TO_SLOS),
            "equal_share": Heuristic(gavel_cost_heuristics.equal_share, infeasible_because=BLIND_TO_SLOS),
            "heterogeneity_agnostic": Heuristic(
                gavel_cost_heuristics.heterogeneity_agnostic, infeasible_because=BLIND_TO_SLOS
            ),
            "random_packing": Heuristic(gavel_cost_heuristics.random_packing, infeasible_because=BLIND_TO_SLOS),
        },
        from_trace=gavel_cost.from_trace,
        symmetric=("n", "k", "p", "q"),
        rescalings=(
            Rescaling(("throughputs", "pair_throughputs", "steps"), 1),
            Rescaling(("costs",), -1),
            Rescaling(("steps", "slos"), 0),
        ),
        enlarge=lambda instance: replace(instance, num_workers=instance.num_workers + 1),
    ),
    Entry(
        title="Time on paid workers, for the greatest sum of throughput per price within the SLOs",
        source="the released code of Gavel, for section 4.2",
        instance=gavel_throughput_per_dollar.ThroughputPerDollar,
        generate=gavel_throughput_per_dollar.generate,
        size="num_jobs",
        sizes=(8, 32, 128),
        heuristics={
            "best_bargain_first": Heuristic(
                gavel_throughput_per_dollar_heuristics.best_bargain_first, infeasible_because=BLIND_TO_SLOS
            ),
            "isolated": Heuristic(gavel_throughput_per_dollar_heuristics.isolated, infeasible_because=BLIND_TO_SLOS),
            "equal_share": Heuristic(
                gavel_throughput_per_dollar_heuristics.equal_share, infeasible_because=BLIND_TO_SLOS
            ),
            "heterogeneity_agnostic": Heuristic(
                gavel_throughput_per_dollar_heuristics.heterogeneity_agnostic, infeasible_because=BLIND_TO_SLOS
            ),
            "random_packing": Heuristic(
                gavel_throughput_per_dollar_heuristics.random_packing, infeasible_because=BLIND_TO_SLOS
            ),
        },
        from_trace=gavel_throughput_per_dollar.from_trace,
        symmetric=("n", "k", "p", "q"),
        rescalings=(
            Rescaling(("throughputs", "pair_throughputs", "steps"), 1),
            Rescaling(("costs",), -1),
            Rescaling(("steps", "slos"), 0),
        ),
        enlarge=lambda instance: replace(instance, num_workers=instance.num_workers + 1),
    ),
    Entry(
        title="How entities share a cluster, and their jobs what each gets, by water filling",
        source="Gavel, section 4.3",
        instance=gavel_hierarchical_fairness.HierarchicalFairness,
        generate=gavel_hierarchical_fairness.generate,
        size="num_jobs",
        sizes=(8, 32, 128),
        heuristics={
            "entity_share": Heuristic(gavel_hierarchical_fairness_heuristics.entity_share),
            "isolated": Heuristic(gavel_hierarchical_fairness_heuristics.isolated),
            "equal_share": Heuristic(gavel_hierarchical_fairness_heuristics.equal_share),
            "heterogeneity_agnostic": Heuristic(gavel_hierarchical_fairness_heuristics.heterogeneity_agnostic),
            "random_packing": Heuristic(gavel_hierarchical_fairness_heuristics.random_packing),
        },
        from_trace=gavel_hierarchical_fairness.from_trace,
        symmetric=("k", "p", "q", "e"),
        rescalings=(Rescaling(("throughputs", "pair_throughputs"), 0), Rescaling(("entity_weights",), -1)),
    ),
    Entry(
        title="Which jobs run in the next round, by priority",
        source="Gavel, section 5 and Algorithm 1",
        instance=gavel_round_assignment.RoundAssignment,
        generate=gavel_round_assignment.generate,
        size="num_jobs",
        sizes=(8, 32, 128),
        heuristics={"greedy_priority": Heuristic(gavel_round_assignment_heuristics.greedy_priority)},
        symmetric=("n", "k", "p"),
        rescalings=(Rescaling(("priorities",), 1),),
        enlarge=lambda instance: replace(instance, num_workers=instance.num_workers + 1),
    ),
    Entry(
        title="How much CPU and memory each job gets, for the greatest total throughput",
        source="Synergy, section 4.1.1, program (1)-(5)",
        instance=synergy_allocation.Allocation,
        generate=synergy_allocation.generate,
        size="num_servers",
        sizes=(4, 16, 64),
        heuristics={
            "proportional": Heuristic(synergy_allocation_heuristics.proportional),
            "greedy_marginal": Heuristic(synergy_allocation_heuristics.greedy_marginal),
        },
        from_trace=synergy_allocation.from_trace,
        symmetric=("n",),
        rescalings=(Rescaling(("server_cpus", "server_memory", "configs", "fair_throughputs"), 1),),
        enlarge=lambda instance: replace(instance, num_servers=instance.num_servers + 1),
    ),
    Entry(
        title="How much CPU and memory each job gets, on which type of machine",
        source="Synergy, appendix A.2, program (22)-(26)",
        instance=synergy_heterogeneous_allocation.HeterogeneousAllocation,
        generate=synergy_heterogeneous_allocation.generate,
        size="num_servers",
        sizes=(2, 8, 32),
        heuristics={
            "proportional": Heuristic(
                synergy_heterogeneous_allocation_heuristics.proportional, infeasible_because=NO_TYPE_LEFT
            ),
            "greedy_marginal": Heuristic(
                synergy_heterogeneous_allocation_heuristics.greedy_marginal, infeasible_because=NO_TYPE_LEFT
            ),
        },
        symmetric=("n",),
        rescalings=(Rescaling(("server_cpus", "server_memory", "configs", "fair_throughputs"), 1),),
        enlarge=lambda instance: replace(instance, num_servers=instance.num_servers + 1),
    ),
    Entry(
        title="Which server each job runs on, with the fewest jobs on more than one",
        source="Synergy, section 4.1.2 and appendix A.1.3",
        instance=synergy_placement.Placement,
        generate=synergy_placement.generate,
        size="num_servers",
        sizes=(2, 4, 8),
        heuristics={
            "best_fit": Heuristic(synergy_placement_heuristics.best_fit, infeasible_because=MISSES_WHOLE_GPUS),
            "balanced_fit": Heuristic(synergy_placement_heuristics.balanced_fit, infeasible_because=MISSES_WHOLE_GPUS),
            "swap_fit": Heuristic(synergy_placement_heuristics.swap_fit, infeasible_because=MISSES_WHOLE_GPUS),
        },
        from_trace=synergy_placement.from_trace,
        symmetric=("n",),
        enlarge=lambda instance: replace(instance, num_servers=instance.num_servers + 1),
    ),
    Entry(
        title="How much CPU and memory each job gets, and on which servers, for the greatest total throughput",
        source="Synergy, section 4.2",
        instance=synergy_tuning.Tuning,
        generate=synergy_tuning.generate,
        size="num_servers",
        sizes=(1, 2, 4),
        heuristics={
            "proportional": Heuristic(synergy_tuning_heuristics.proportional, infeasible_because=NO_ROOM_UNSPLIT),
            "greedy": Heuristic(synergy_tuning_heuristics.greedy, infeasible_because=SKIPS_JOBS),
            "drf": Heuristic(synergy_tuning_heuristics.drf, infeasible_because=SKIPS_JOBS),
            "tetris": Heuristic(synergy_tuning_heuristics.tetris, infeasible_because=SKIPS_JOBS),
            "tune": Heuristic(synergy_tuning_heuristics.tune, infeasible_because=NO_ROOM_UNSPLIT),
            "tune_and_upgrade": Heuristic(
                synergy_tuning_heuristics.tune_and_upgrade, infeasible_because=NO_ROOM_UNSPLIT
            ),
            "balanced_tune": Heuristic(synergy_tuning_heuristics.balanced_tune, infeasible_because=NO_ROOM_UNSPLIT),
        },
        from_trace=synergy_tuning.from_trace,
        symmetric=("n",),
        rescalings=(Rescaling(("server_cpus", "server_memory", "configs", "fair_throughputs"), 1),),
        enlarge=lambda instance: replace(instance, num_servers=instance.num_servers + 1),
        relaxation=_stage_one_bound,
    ),
    Entry(
        title="Who gets the next GPU, so that elastic jobs complete soonest on average",
        source="AFS, sections 3 and 4, Algorithm 1",
        instance=afs_elastic_sharing.ElasticSharing,
        generate=afs_elastic_sharing.generate,
        size="num_jobs",
        sizes=(2, 3, 4),
        heuristics={
            "afs_l": Heuristic(afs_elastic_sharing_heuristics.afs_l),
            "afs_p": Heuristic(afs_elastic_sharing_heuristics.afs_p),
            "srtf": Heuristic(afs_elastic_sharing_heuristics.srtf),
            "srsf": Heuristic(afs_elastic_sharing_heuristics.srsf),
            "srtf_elastic": Heuristic(afs_elastic_sharing_heuristics.srtf_elastic),
            "srsf_elastic": Heuristic(afs_elastic_sharing_heuristics.srsf_elastic),
            "max_min": Heuristic(afs_elastic_sharing_heuristics.max_min),
            "optimus": Heuristic(afs_elastic_sharing_heuristics.optimus),
            "aryl_two_phase": Heuristic(afs_elastic_sharing_heuristics.aryl_two_phase),
        },
        from_trace=afs_traces.from_trace,
        symmetric=("n",),
        rescalings=(Rescaling(("work", "arrivals"), 1), Rescaling(("work", "throughputs"), 0)),
        enlarge=lambda instance: replace(
            instance,
            num_gpus=instance.num_gpus + 1,
            throughputs=[[*curve, curve[-1]] for curve in instance.throughputs.tolist()],
        ),
    ),
    Entry(
        title="Which of two running jobs gets one more GPU",
        source="AFS, section 4.2, formulas (1) to (3)",
        instance=afs_two_job.TwoJob,
        generate=afs_two_job.generate,
        size="max_share",
        sizes=(2, 8, 32),
        heuristics={
            "pairwise_rule": Heuristic(afs_two_job_heuristics.pairwise_rule),
            "shorter_first": Heuristic(afs_two_job_heuristics.shorter_first),
        },
        rescalings=(Rescaling(("work",), 1), Rescaling(("work", "throughputs"), 0)),
    ),
    Entry(
        title="Which shares, near those wanted, pack without sharing networks",
        source="AFS, section 4.4 and Appendix E",
        instance=afs_network_packing.NetworkPacking,
        generate=afs_network_packing.generate,
        size="num_jobs",
        sizes=(10, 50, 200),
        heuristics={"floor_and_grow": Heuristic(afs_network_packing_heuristics.floor_and_grow)},
        symmetric=("n",),
    ),
    Entry(
        title="Which machines host which jobs, keeping as many as possible in place",
        source="AFS, section 4.4, Proposition 1",
        instance=afs_gpu_placement.GpuPlacement,
        generate=afs_gpu_placement.generate,
        size="num_jobs",
        sizes=(8, 16, 32),
        heuristics={"first_fit_decreasing": Heuristic(afs_gpu_placement_heuristics.first_fit_decreasing)},
        symmetric=("n", "m"),
        enlarge=lambda instance: replace(
            instance,
            num_machines=instance.num_machines + 1,
            previous=[[*held, 0] for held in instance.previous.tolist()],
        ),
    ),
    Entry(
        title="How many GPUs jobs hold in each slot, meeting their deadlines at the least GPU time",
        source="ElasticFlow, section 4.1, (2)-(4) and Algorithm 1",
        instance=elasticflow_share.MinimumSatisfactoryShare,
        generate=elasticflow_share.generate,
        size="num_jobs",
        sizes=(4, 8, 12),
        heuristics={
            "progressive_filling": Heuristic(elasticflow_share_heuristics.progressive_filling, declines=True),
            "edf": Heuristic(elasticflow_share_heuristics.edf, infeasible_because=MISSES_DEADLINES),
        },
        from_trace=elasticflow_share.from_trace,
        symmetric=("n",),
        rescalings=(Rescaling(("iterations", "throughputs"), 0),),
        enlarge=lambda instance: replace(
            instance,
            num_gpus=instance.num_gpus + 1,
            throughputs=[[*curve, curve[-1]] for curve in instance.throughputs.tolist()],
        ),
    ),
    Entry(
        title="Which jobs are promised their deadlines, as many as possible",
        source="ElasticFlow, section 4.1, Theorem 1 and Algorithm 1",
        instance=elasticflow_admission.Admission,
        generate=elasticflow_admission.generate,
        size="num_jobs",
        sizes=(5, 10, 15),
        heuristics={
            "progressive_filling": Heuristic(elasticflow_admission_heuristics.progressive_filling),
            "edf_condition": Heuristic(
                elasticflow_admission_heuristics.edf_condition, infeasible_because=TAKES_CURVES_FOR_LINEAR
            ),
            "edf": Heuristic(elasticflow_admission_heuristics.edf),
            "edf_with_admission": Heuristic(elasticflow_admission_heuristics.edf_with_admission),
        },
        from_trace=elasticflow_admission.from_trace,
        symmetric=("n",),
        rescalings=(Rescaling(("iterations", "throughputs"), 0),),
        enlarge=lambda instance: replace(
            instance,
            num_gpus=instance.num_gpus + 1,
            throughputs=[[*curve, curve[-1]] for curve in instance.throughputs.tolist()],
        ),
    ),
    Entry(
        title="How many GPUs each job gets now, with none idle that would help",
        source="ElasticFlow, section 4.2, (4)-(7) and Algorithm 2",
        instance=elasticflow_allocation.Allocation,
        generate=elasticflow_allocation.generate,
        size="num_jobs",
        sizes=(4, 8, 12),
        heuristics={
            "greedy_marginal_return": Heuristic(
                elasticflow_allocation_heuristics.greedy_marginal_return,
                declines=True,
                infeasible_because=LEAVES_GPUS_IDLE,
            ),
            "greedy_marginal_return_repaired": Heuristic(
                partial(elasticflow_allocation_heuristics.greedy_marginal_return, repaired=True), declines=True
            ),
        },
        from_trace=elasticflow_allocation.from_trace,
        symmetric=("n",),
        rescalings=(Rescaling(("iterations", "throughputs"), 0),),
    ),
    Entry(
        title="Which GPUs each job runs on, moving the fewest jobs",
        source="ElasticFlow, section 4.3",
        instance=elasticflow_placement.Placement,
        generate=elasticflow_placement.generate,
        size="num_servers",
        sizes=(4, 16, 64),
        heuristics={
            "buddy_best_fit": Heuristic(elasticflow_placement_heuristics.buddy_best_fit, declines=True),
            "buddy_repack": Heuristic(elasticflow_placement_heuristics.buddy_repack),
        },
        symmetric=("n",),
        enlarge=lambda instance: replace(instance, num_gpus=instance.num_gpus + instance.gpus_per_server),
    ),
]

CATALOGUE: dict[str, Entry] = {entry.problem: entry for entry in _ENTRIES}


class CatalogueError(ValueError):
    """There is no problem or heuristic of that name; the message suggests the nearest one."""


def entry(problem: str) -> Entry:
    """The catalogue's entry for ``problem``.

    Raises
    ------
    CatalogueError
    """
    if problem not in CATALOGUE:
        raise CatalogueError(f"unknown problem {problem!r}{nearest(problem, CATALOGUE)}")
    return CATALOGUE[problem]


def heuristic(problem: str, name: str) -> Heuristic:
    """A heuristic of ``problem`` by its name.

    Raises
    ------
    CatalogueError
    """
    known = entry(problem).heuristics
    if name not in known:
        raise CatalogueError(f"{problem} has no heuristic {name!r}{nearest(name, known)}")
    return known[name]
