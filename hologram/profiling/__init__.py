"""Profiles: where the time of compiled programs goes, by kernel and thread (:func:`hologram.profile`)."""
