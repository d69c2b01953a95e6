"""Which values are kept in memory, and which are computed together in one kernel."""
