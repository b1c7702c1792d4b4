"""All cases: importing this collects them in `case.CASES`."""

from cases import content, delivery, instances, matching, presentation, timing

__all__ = ["content", "delivery", "instances", "matching", "presentation", "timing"]
