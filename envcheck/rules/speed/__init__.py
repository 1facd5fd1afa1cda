"""Rules about measured figures."""
