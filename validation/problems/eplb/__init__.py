"""Entries of the problems of EPLB, the expert-parallelism load balancer of DeepSeek."""
