"""``python -m benchmarks.results -o docs/results``: the results of a release, measured by one command.

Each part measures something and makes one page of it, with its table as CSV and its pictures: ``collection``,
``real``, ``times``, ``replay`` and ``faults``.  What has been measured is kept until the code changes, so that a run
that is killed goes on with the same command (:mod:`benchmarks.results.kept`).
"""
