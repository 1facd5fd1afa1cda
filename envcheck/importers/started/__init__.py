"""How what a text is about was started: by containers, images, Kubernetes and Slurm; one importer a source."""
