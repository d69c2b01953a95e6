"""Sphinx's configuration. Pages are Markdown (MyST), tutorials are scripts in percent format, which MyST-NB executes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from docs.site import missing
from hologram.version import __version__

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))
os.environ["MATPLOTLIBRC"] = str(HERE / "matplotlibrc")  # how the tutorials' figures look: kernels inherit it

project, release = "Hologram", __version__
copyright = "Hologram's authors, Apache License 2.0"
html_title = f"Hologram {__version__}"
root_doc = "index"
extensions = ["myst_nb", "sphinx_copybutton"]
nitpicky = True
suppress_warnings = ["ref.python"]  # a type in a signature that several modules have is the same one

myst_enable_extensions = ["colon_fence", "attrs_inline"]
myst_heading_anchors = 4
nb_custom_formats = {".py": ["jupytext.reads", {"fmt": "py:percent"}]}
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300  # seconds of a cell: machines may be busy
nb_merge_streams = True
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # these would come from the network

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_favicon = "static/hologram.svg"
html_logo = "static/hologram.svg"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b6e78", "color-brand-content": "#0b6e78", "color-brand-visited": "#5b5b9a"},
    "dark_css_variables": {"color-brand-primary": "#4fc3cf", "color-brand-content": "#4fc3cf", "color-brand-visited": "#a9a9e6"},
    "top_of_page_buttons": [],
}
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
pygments_style, pygments_dark_style = "friendly", "github-dark"
python_maximum_signature_line_length = 110
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"
add_module_names = False
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True


def setup(app: object) -> None:
    missing.register(app)
