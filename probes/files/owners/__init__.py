"""The owner of a file, and whether the file is as it was installed."""
