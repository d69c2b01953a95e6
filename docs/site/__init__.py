"""The documentation site, which ``make docs`` builds: pages staged, API reference and figures made, rendered by Sphinx, links checked."""
