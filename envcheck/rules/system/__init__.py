"""Rules about what the machine runs in and on: containers, WSL, Jetson, Windows, memory, the C library."""
