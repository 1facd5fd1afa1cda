"""The parts of the page for people, which other formats read too."""
