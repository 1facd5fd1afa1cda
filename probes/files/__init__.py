"""What is on the disk: Pythons, their packages, native libraries, who owns them, what GPU code they carry."""
