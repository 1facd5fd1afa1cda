"""One file a format: a module with a ``NAME`` and ``read``, and ``FILES`` where others are called so too."""
