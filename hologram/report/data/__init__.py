"""A program as plain data: what the report draws, and what ``report.json`` holds."""
