"""What goes along axes: reductions, scans, segments, sorts, searches, sets."""
