"""Work that must not hold up a key: done in processes beside the application, and what they tell."""
