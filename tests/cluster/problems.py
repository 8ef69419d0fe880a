"""What goes wrong, told with the next step."""

from __future__ import annotations


class ClusterError(Exception):
    """The harness cannot go on. `next_step` says what a person can do; `detail` is what a program printed."""

    def __init__(self, message: str, next_step: str, detail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step
        self.detail = detail.strip()

    def __str__(self) -> str:
        parts = [self.message]
        if self.detail:
            parts.append("\n".join(f"    {line}" for line in self.detail.splitlines()))
        parts.append(f"Next: {self.next_step}")
        return "\n".join(parts)
