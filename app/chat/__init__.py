"""Conversations on a chosen configuration."""
