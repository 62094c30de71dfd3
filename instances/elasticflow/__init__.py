"""Problems of ElasticFlow (ASPLOS'23)."""
