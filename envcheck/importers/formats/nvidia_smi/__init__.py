"""What nvidia-smi prints: its lists, its table and its full report."""
