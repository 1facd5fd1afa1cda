"""What brings the answers of nodes: ssh, Slurm, Kubernetes, Ray, or saved reports."""
