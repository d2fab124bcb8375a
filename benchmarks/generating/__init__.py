"""Generated questions measured: an author that knows the written questions, figures, and questions to be read."""
