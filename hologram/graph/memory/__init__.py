"""Arena allocation: addresses of all buffers of a call in one arena, and their verifier."""
