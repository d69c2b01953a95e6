"""Graphs run one op at a time, without being compiled as a whole: for small work that is met for the first time."""
