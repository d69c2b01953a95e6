"""Blocking: large intermediates, such as attention scores, computed in loops over blocks, so that they are never whole in memory."""
