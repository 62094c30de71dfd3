"""The ``optgap`` command: one module for each family of commands."""

from validation.cli import bench, doctor, problems, studies, testing
from validation.cli.app import app, main

__all__ = ["app", "bench", "doctor", "main", "problems", "studies", "testing"]
