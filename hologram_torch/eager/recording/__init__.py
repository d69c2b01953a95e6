"""What is recorded and not yet computed, and templates of what is recorded again."""
