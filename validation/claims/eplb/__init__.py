"""Claims of EPLB, the load balancer of DeepSeek, each under the name of the problem that it is about."""
