class Crash(Exception):
    """A peer is gone."""
