"""The command line: one module per command; turns the session into text or JSON."""
