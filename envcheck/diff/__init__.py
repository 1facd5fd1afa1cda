"""What changed between saved reports."""
