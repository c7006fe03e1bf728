"""Pure formulas: what a configuration needs per device, and what bandwidth allows."""
