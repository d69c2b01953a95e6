"""What tensors of the device hold: storages, views of them, and reads and writes of their values."""
