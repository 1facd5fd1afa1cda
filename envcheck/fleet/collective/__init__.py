"""All-reduce over groups of nodes: which node makes it slow, or fail."""
