"""Matrix products on tensor cores, by PTX instructions."""
