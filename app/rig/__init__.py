"""Where trials run: worker processes, a replay, a simulated machine; all behind one interface."""
