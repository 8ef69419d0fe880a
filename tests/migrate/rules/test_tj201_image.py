"""TJ201: the image."""

from __future__ import annotations

from tests.migrate.rules.support import MAIN, alone, chain, refusal, v1
from trainjob.migrate.rules import tj201_image

RULE = tj201_image.RULE


def test_noop_but_for_the_image() -> None:
    """It is carried without a word."""
    ran = alone(RULE, v1({"image": "reg.io/a@sha256:0"}))
    assert ran.findings == []
    assert ran.role.image == "reg.io/a@sha256:0"
    assert chain(v1({"image": "reg.io/a@sha256:0"})).trainer["image"] == "reg.io/a@sha256:0"


def test_an_image_longer_than_the_crd_allows_is_refused() -> None:
    """500 characters fit."""
    assert alone(RULE, v1({"image": "a" * 500})).role.image == "a" * 500
    finding = refusal(RULE, v1({"image": "a" * 501}))
    assert "500 characters" in finding.message
    assert finding.where is not None
    assert finding.where.path == f"{MAIN}.image"
