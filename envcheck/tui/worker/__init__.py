"""Work that must not delay a key: it runs in other processes and threads."""
