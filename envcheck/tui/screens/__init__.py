"""The four screens and what they show."""
