"""What a plan would install, judged: one file a question."""
