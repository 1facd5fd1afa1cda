"""``envcheck matrix refresh``: regenerate what the wheels on a package index tell.

Only this package uses the network.
"""
