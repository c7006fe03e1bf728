"""RigTune's core: everything except the window and the probes. Imports no Qt."""
