"""The benchmark of wrong gold answers: answers spoiled by code, sound ones beside them, and how both are judged."""
