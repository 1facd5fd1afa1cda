"""The four screens, and the pages that they show."""
