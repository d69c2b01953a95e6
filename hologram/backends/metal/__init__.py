"""Apple GPUs, through PyObjC's bindings of Metal."""
