"""The application in a browser of this machine."""
