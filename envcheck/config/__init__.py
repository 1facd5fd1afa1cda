"""The configuration: ``[tool.envcheck]`` of a ``pyproject.toml``, or an ``envcheck.toml``."""
