import math
from dataclasses import FrozenInstanceError, asdict

import pytest

from geomgcn.training import TrainConfig
from graphs import unchecked


def test_defaults_are_the_papers():
    """Section 4.2, and the scheduler of the released program."""
    assert asdict(TrainConfig()) == {
        "learning_rate": 0.05,
        "weight_decay": 5e-5,
        "max_epochs": 5000,
        "patience": 100,
        "checkpoint": "best",
        "decay_factor": 0.8,
        "decay_patience": 50,
        "seed": 0,
        "absent_class": "refuse",
        "device": "auto",
        "precision": "float32",
    }


def test_settings_are_a_frozen_value():
    config = TrainConfig(seed=3)
    assert config == TrainConfig(seed=3)
    assert len({config, TrainConfig(seed=3), TrainConfig()}) == 2
    with pytest.raises(FrozenInstanceError):
        config.seed = 4


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        (
            "learning_rate",
            0.0,
            r"must be positive and at most 1e\+30, got 0\.0\. The default is learning_rate=0\.05",
        ),
        ("learning_rate", math.nan, r"must be positive and at most 1e\+30, got nan\."),
        ("learning_rate", math.inf, r"must be positive and at most 1e\+30, got inf\."),
        (
            "decay_factor",
            0.0,
            r"must be positive and at most 1e\+30, got 0\.0\. The default is decay_factor=0\.8",
        ),
        (
            "decay_factor",
            1.5,
            r"at most 1, which switches it off, got 1\.5\. The default is decay_factor=0\.8",
        ),
        ("learning_rate", 1e300, r"must be positive and at most 1e\+30, got 1e\+300\."),
        ("max_epochs", 2.0, r"must be a whole number from 1, got 2\.0\."),
        ("weight_decay", -1e-9, r"must be from 0 to 1e\+30, got -1e-09\. The default is weight_decay=5e-05"),
        ("weight_decay", math.inf, r"must be from 0 to 1e\+30, got inf\."),
        ("max_epochs", 0, r"must be a whole number from 1, got 0\. The default is max_epochs=5000"),
        ("patience", 0, r"must be a whole number from 1, got 0\. The default is patience=100"),
        ("decay_patience", -1, r"must be a whole number from 1, got -1\. The default is decay_patience=50"),
        ("seed", -1, r"seed is a number from 0 to 4294967295, got -1"),
        ("seed", 2**32, r"seed is a number from 0 to 4294967295, got 4294967296"),
        ("absent_class", "ignore", r"absent_class is 'refuse' or 'warn', got 'ignore'"),
        ("checkpoint", "first", r"checkpoint is 'best' or 'last', got 'first'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(setting, value, message):
    with unchecked(), pytest.raises(ValueError, match=rf"^{setting} .*{message}|^{message}"):
        TrainConfig(**{setting: value})
