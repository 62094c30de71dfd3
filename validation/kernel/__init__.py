"""What every kind of question runs on: asking apart, judging, workers, stores, clusters."""
