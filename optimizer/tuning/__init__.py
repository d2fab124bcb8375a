"""What every optimizer works with: the champion, iterations, the time kept for the test, and the result."""
