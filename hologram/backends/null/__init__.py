"""Devices that compute nothing, to look at what a program would do on one."""
