"""What every probe needs: bounded reads below a root, records, and the way to tell the parent."""
