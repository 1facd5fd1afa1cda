"""Questions about compatibility; ``answer.ask`` answers them.

Rules use some of these modules, and a check shall not wait for the others.
"""
