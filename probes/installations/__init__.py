"""What readers of frameworks need: the installed package, its compiled parts, and the libraries that it would load."""
