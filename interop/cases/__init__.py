"""All cases: importing this collects them in `case.CASES`."""

from cases import consistency, content, delivery, doctor, instances, matching, presentation, recording, timing, tools

__all__ = ["consistency", "content", "delivery", "doctor", "instances", "matching", "presentation", "recording", "timing", "tools"]
