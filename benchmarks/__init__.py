"""What is timed; the documents name the command of every figure that they give."""
