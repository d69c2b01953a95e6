"""From groups to kernel IR: indices, scalar code, and where it stands in the loops."""
