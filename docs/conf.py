"""Sphinx: `sphinx-build -W -b html docs docs/_build/html`, without a network."""

import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "fedbandit-envs"
author = "the fedbandit-envs developers"
metadata = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]
version = release = metadata["version"]
# Until its release a version's heading in the changelog has this instead of a date.
released = "(not yet released)" not in (HERE.parent / "CHANGELOG.md").read_text()

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "generator", "generator.formulas"]
exclude_patterns = ["_build", "generator", "paper"]

html_theme = "furo"
html_title = f"fedbandit-envs {release}" if released else f"fedbandit-envs {release}, not yet released"
html_favicon = "favicon.svg"
html_static_path = ["static"]
html_extra_path = ["leaderboard/croissant.json"]
# Links from each page to its source, once there is a public repository.
if "urls" in metadata:
    html_theme_options = {
        "source_repository": metadata["urls"]["Repository"],
        "source_branch": "main",
        "source_directory": "docs/",
    }
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False

myst_heading_anchors = 4
# Formulas stand between dollars, in docstrings that are pages as well.
myst_enable_extensions = ["dollarmath"]
html_math_renderer = "mathml"

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
