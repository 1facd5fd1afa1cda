"""What the readers of plans share."""
