"""Heat and power: a quiet machine, a steady speed, and nothing left changed.

Only ``helper`` writes to hardware; it is a program of its own that nothing here imports.
"""
