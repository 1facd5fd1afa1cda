"""The terminal application. Everything that it shows comes from a Report and from the events of a session."""
