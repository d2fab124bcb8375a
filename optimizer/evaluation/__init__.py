"""What a candidate scores on conversations: memories built or reused, questions asked, replies judged, statistics."""
