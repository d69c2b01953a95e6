"""Programs in files: ``hg.export`` and ``hg.load``. The format is written down in docs/export.md."""
