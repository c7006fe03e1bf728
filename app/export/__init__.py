"""A profile as another program's command or file; and such a command in our settings."""

from app.export.command import Command, read_command
from app.export.formats import FORMATS, export, render
from app.export.llama_cpp import draft_arguments
from app.export.target import Exported, command_line

__all__ = [
    "FORMATS",
    "Command",
    "Exported",
    "command_line",
    "draft_arguments",
    "export",
    "read_command",
    "render",
]
