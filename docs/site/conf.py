"""Sphinx's settings for the site.  ``docs/make_site.py`` prepares the pages and runs Sphinx."""

import dmlemu

project = "dmlemu"
version = release = dmlemu.__version__
root_doc = "index"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
suppress_warnings = ["ref.python"]  # an annotation such as Device is one of two classes

highlight_language = "none"
smartquotes = False  # quotation marks are often code
html_theme = "furo"
html_title = f"dmlemu {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = [("filter.js", {"defer": "defer"})]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
pygments_style, pygments_dark_style = "default", "github-dark"

myst_heading_anchors = 4  # those of GitHub

autodoc_member_order = "groupwise"
autodoc_typehints_format = "short"
maximum_signature_line_length = 100
add_module_names = False
toc_object_entries = False
