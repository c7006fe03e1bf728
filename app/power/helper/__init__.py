"""The privileged helper: a program of its own that sets one GPU's limit and always puts it back.

It imports nothing of RigTune but the protocol, reads no environment variable, takes no arguments
on Linux, and runs only from the folder that an administrator installed it to.
"""
