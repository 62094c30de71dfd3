"""Fast methods for the problems of ElasticFlow (ASPLOS'23)."""
