"""What everybody shares: the Snapshot of a machine, the checks of a report, versions and their bounds."""
