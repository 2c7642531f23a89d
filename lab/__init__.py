"""The lab: a marimo notebook that compares settings of a federation, and runs SAMBA; see ``fedbandit lab``."""

from pathlib import Path

NOTEBOOK = Path(__file__).with_name("notebook.py")
"""The notebook, of which ``fedbandit lab`` makes a copy that users can change."""
