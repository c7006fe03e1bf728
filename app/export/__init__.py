"""A profile as another program's command or file; and such a command in our settings."""

from app.export.command import Command, read_command
from app.export.formats import FORMATS, export, render
from app.export.target import Exported

__all__ = ["FORMATS", "Command", "Exported", "export", "read_command", "render"]
