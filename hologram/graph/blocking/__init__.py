"""Large scores in loops over blocks of rows, so that they are never whole in memory."""
