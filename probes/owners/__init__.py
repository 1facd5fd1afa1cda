"""Who installed a file, and whether it is still what was installed."""
