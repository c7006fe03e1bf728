"""The window: Qt Widgets over the session; no measuring and no decisions live here."""
