"""A profile as another program's command or file."""

from app.export.formats import FORMATS, export, render
from app.export.target import Exported

__all__ = ["FORMATS", "Exported", "export", "render"]
