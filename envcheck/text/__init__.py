"""Text made safe, measured, wrapped and written: nothing here knows what a report is."""
