"""What of the native runtime is native code: routines in the language of :mod:`hologram.backends.native_lang`, and what they share."""
