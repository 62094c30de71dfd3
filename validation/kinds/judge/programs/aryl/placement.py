"""A first program for aryl.placement."""

from typing import Any


def solve(instance: dict[str, Any]) -> dict[str, Any]:
    """Place the largest workers first, each on the fullest open server that takes it, else on the smallest."""
    sizes, free = instance["gpus_per_worker"], list(instance["server_gpus"])
    servers = range(len(free))
    on_loan = [group == "inference" for group in instance["server_groups"]]
    holds = [{False} if used else set() for used in instance["used_gpus"]]
    workers = [[0 for _ in servers] for _ in sizes]
    for job in sorted(range(len(sizes)), key=lambda one: -sizes[one]):
        flexible = instance["flexible"][job]
        for _ in range(instance["num_workers"][job]):
            taking = [
                server
                for server in servers
                if free[server] >= sizes[job] and not (on_loan[server] and holds[server] - {flexible})
            ]
            if not taking:
                break
            server = min(taking, key=lambda one: (not holds[one], free[one]))
            workers[job][server] += 1
            free[server] -= sizes[job]
            holds[server].add(flexible)
    return {"workers": workers}
