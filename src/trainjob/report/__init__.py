"""What a migration came to, for people and tools: text, JSON, SARIF, Markdown and one HTML page."""

from __future__ import annotations

from trainjob.report.model import JobView, Review, Rule

__all__ = ["JobView", "Review", "Rule"]
