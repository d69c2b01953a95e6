"""What backends of devices with memory of their own share: a driver implements :mod:`hologram.backends.common.driver`, the rest is here."""
