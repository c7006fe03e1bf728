"""What this machine is and does now: one module per vendor; imports ``app.domain`` only."""
