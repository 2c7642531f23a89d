"""Sphinx: `sphinx-build -W -b html docs docs/_build/html`, without a network."""

import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "fedbandit-envs"
author = "the fedbandit-envs developers"
release = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "generator"]
exclude_patterns = ["_build", "generator"]

html_theme = "furo"
html_title = f"fedbandit-envs {release}"
html_favicon = "favicon.svg"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False

myst_heading_anchors = 4

# Only a view's base class comes from it, and it brings torch.
autodoc_mock_imports = ["stable_baselines3"]
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autoclass_content = "both"
autodoc_default_options = {"members": True, "show-inheritance": True}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
# Of types and errors that docstrings name without their module: several modules may have one of that name.
suppress_warnings = ["ref.python"]
# Each page's navigation would list every method.
toc_object_entries = False
