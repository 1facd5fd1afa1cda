"""What deep probes need to import a framework, put it to work, and say why it failed."""
