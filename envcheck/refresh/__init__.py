"""``envcheck matrix refresh``: regenerate rows from the wheels on a package index.

Only this package uses the network.
"""
