"""Chat on tuned settings."""
