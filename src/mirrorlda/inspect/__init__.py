"""What a fitted model says: its topics, and why it predicts what it predicts."""
