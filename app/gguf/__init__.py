"""Reads GGUF files: header, metadata, tensor table and shards, as hostile input."""

from app.gguf.reader import read_model

__all__ = ["read_model"]
