"""Rules about frameworks' builds, and the driver and compilers that they need."""
