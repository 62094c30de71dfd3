"""What a second reading of the claims against the papers' text changed, apart from their making."""

from __future__ import annotations

__all__ = ["CHANGED", "CLAIMS_READ", "DATE", "READINGS_READ"]

DATE = "24 November 2026"
"""When it was."""
CLAIMS_READ, READINGS_READ = 141, 252
"""How many there were then: all of them."""

CHANGED = {
    "afs_l_sooner_than_max_min": "section 2.2 compares averages on two traces, not on 11.",
    "afs_l_sooner_than_srtf_elastic": "the text does not say on how many traces Figure 11 compares.",
    "afs_l_sooner_than_srsf_elastic": "the text does not say on how many traces Figure 11 compares.",
    "priority_comparison_transitive": "instances are held to what the page says they keep: every GPU helps.",
    "max_min_sooner_than_srtf": "section 2.2 counts 5 of 11 traces, too, on which max-min shares are sooner.",
    "srtf_sooner_than_max_min": "the same.",
    "proposition_1": "the statement was without its first half: every job is on the fewest machines.",
    "phase_one_order": "that demands are equal is the library's condition; section 1 says that the policy solves the "
    "phase.",
    "phase_one_most_jobs": "section 5.2 does not say it; section 1 and Appendix F do.",
    "knapsack_dynamic_program": "ties do not matter, as values are compared.",
    "line_17_never_gains": "the statement was that line 17 fills the GPUs that are left, which was not what was tried; "
    "what was tried is stated by nobody.",
    "heterogeneous_degradation": "refuted, where it depended on the reading: the greatest loss of all rows is no way "
    "to read an average.",
    "placement_fewest_servers": "that little is left in fragments is in section 1, too; the paper names no sizes of "
    "workers, so that servers of 8 GPUs are enough to keep its assumptions, and to refute.",
    "reclaim_fewest_jobs": "the paper measures it on its trace, and does not state it of every cluster; in the second "
    "reading servers may host no job.",
    "reclaim_separate_jobs": "servers may host no job, which section 4 does not have.",
    "reclaim_figure_5": "the paper calls the first two servers optimal, and does not say that its cost leads to them.",
    "reclaim_against_job_count": "what is compared is one method at its best with the other at its worst.",
    "reclaim_against_gpu_fraction": "what is compared is one method at its best with the other at its worst.",
    "two_job_extremes": "the text has it within formula (9) only.",
    "two_job_neither_waits": "that waiting does not pay is the library's; the paper infers that neither job waits.",
    "two_job_smaller_first": "the second reading is stated in Appendix C.",
    "algorithm_2_least_gpu_time": "that curves are concave is said of the theorem in section 1.",
    "algorithm_2_from_least_shares": "that curves are concave is said of the theorem in section 1.",
    "powers_of_two_stay_powers_of_two": "the counterexample hung on the order of equal deadlines; the new one does "
    "not. The clusters of some of the paper's traces are no powers of two.",
    "types_as_printed": "the limit that the first reading adds is the library's.",
    "tune_within_10_percent": "10% is said of averages of completion times, and of allocations, not of allocations on "
    "average.",
    "greedy_leaves_gpus_idle": "that Tune does not is in section 4.2.",
    "highest_priorities_across_types": "the section likens the problem to a multiple-choice knapsack, no more.",
    "algorithm_1_ends": "the words of the first reading were in a wrong order; the counterexample was a job that might "
    "run nowhere, which the section does not have.",
    "rounds_realise_target": "what is refuted hung on which of many optimal allocations is taken, and on ties; the new "
    "counterexample has one optimum, and ties change nothing.",
    "rounds_realise_target_wide": "what is refuted is so for every way to break ties, of an only optimum.",
    "entity_shares_by_weight": "time on workers is compared in all optimal allocations, where it was in one.",
    "sharing_incentive_cost_slos": "the counterexample held for the cost of workers and not for the printed one, which "
    "leaves out how many a job holds; the new one holds for both.",
    "sharing_incentive_throughput_per_dollar_slos": "as with the cost.",
}
"""What was changed of a claim, by its name."""
