"""One file a format: a module with a ``NAME``, ``recognise`` and ``read``."""
