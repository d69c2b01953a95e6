"""Tests of hologram_torch.bridge."""
