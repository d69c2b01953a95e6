"""What users call: functions and layers on torch's tensors, ``wrap``, ``convert``, ``torch.ops.hologram``, and the device."""
