"""ELF files that nobody vouches for: tables, dynamic section, exported symbols, and what the loader refuses."""
