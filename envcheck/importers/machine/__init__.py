"""What a text tells of the machine: processor, GPUs on the bus, kernel modules, services; one importer a source."""
