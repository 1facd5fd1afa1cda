"""Foreign text in HTML and Markdown, and what only those formats need."""
