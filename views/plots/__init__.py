"""Everything drawn over axes. pyqtgraph is used in here only; live strips paint themselves."""
