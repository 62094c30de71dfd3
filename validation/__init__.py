"""What is true: the catalogue, optimality-gap studies, checks, and the command line."""
