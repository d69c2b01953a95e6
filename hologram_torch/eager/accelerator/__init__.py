"""What torch asks of an accelerator: ``torch.hologram``, ``torch.accelerator``, autocast, generators, pinned memory."""
