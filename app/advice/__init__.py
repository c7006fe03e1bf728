"""What RigTune tells the user: rules and the text of every code, in the user's language."""
