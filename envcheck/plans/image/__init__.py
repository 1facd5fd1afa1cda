"""What the commands of a container's build install, and from which files."""
