"""Making the collection: what it is drawn from, and what is found out about each instance."""
