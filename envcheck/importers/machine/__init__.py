"""What a text tells of the machine: its processor, GPUs on the bus, kernel modules and services; one importer a source."""
