"""Reports and baselines in files, and the schemas of what is written."""
