"""What backends of devices with memory of their own share: a driver implements :mod:`hologram.backends.device.driver`, the rest is here."""
