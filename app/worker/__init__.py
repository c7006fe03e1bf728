"""The child process: the only part that loads llama.cpp."""
