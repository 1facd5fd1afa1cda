"""What the forms of ``nvidia-smi`` print, one importer a form."""
