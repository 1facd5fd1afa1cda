"""The full report of nvidia-smi, as XML or as text."""
