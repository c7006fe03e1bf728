"""Heat and power in the window: the mode, how it stands, what was changed, and putting it back."""
