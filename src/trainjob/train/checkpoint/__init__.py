"""The whole state of a run: saved while it goes on, whole or not at all, loaded on any number of ranks."""
