"""What every optimizer works with: the champion, rounds, the time kept for the test, and the result."""
