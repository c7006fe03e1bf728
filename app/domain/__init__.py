"""Values the whole program speaks in; imports nothing of ours."""
