"""What depends on constants alone, computed once and held; operands of products packed before a loop."""
