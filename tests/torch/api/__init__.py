"""Tests of hologram_torch.api."""
