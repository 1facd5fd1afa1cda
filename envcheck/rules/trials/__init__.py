"""Rules about what came of trying a framework (``--deep``)."""
