"""The other kinds of v1 jobs: which rules read them (registry.py), and the rules that only they have."""
