"""Rules about the results of trials (``--deep``)."""
