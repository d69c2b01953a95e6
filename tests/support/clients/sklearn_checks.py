"""scikit-learn's own checks of the Array API on Tensors: of each estimator that claims support, and of each metric.

Run as a program, with a number of so many checks chosen at random (the same in each run), else of all. It prints a JSON object that says of each
check ``right``, or what it raised.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import random
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

os.environ["SCIPY_ARRAY_API"] = "1"

import sklearn  # noqa: E402
from sklearn.preprocessing import LabelEncoder  # noqa: E402
from sklearn.utils import get_tags  # noqa: E402
from sklearn.utils.discovery import all_estimators  # noqa: E402
from sklearn.utils.estimator_checks import check_array_api_input, check_array_api_input_and_values  # noqa: E402

import hologram as hg  # noqa: E402

HERE = "hologram.numpy"
# Other settings than the default ones, where these are not what supports the Array API, or values are compared with those of random numbers.
SETTINGS: dict[str, dict[str, Any]] = {
    "GaussianMixture": {"init_params": "random_from_data", "random_state": 0},
    "LogisticRegression": {"solver": "lbfgs"},
    "PCA": {"n_components": 2, "svd_solver": "full"},
    "Ridge": {"solver": "svd"},
    "RidgeCV": {"gcv_mode": "svd"},
    "RidgeClassifier": {"solver": "svd"},
}
VALUES_DIFFER = {"Nystroem", "GaussianMixture", "GaussianNB"}  # by signs, by random numbers, by the mean of bools, which is of the default float
CHECKS: dict[str, Callable[[str], None]] = {}


def _label_encoder(dtype: str) -> None:
    """scikit-learn's check gives a table, and this takes labels alone."""
    labels = np.array([3, 1, 3, 7, 1], dtype)
    encoder, wanted = LabelEncoder(), LabelEncoder()
    with sklearn.config_context(array_api_dispatch=True):
        found = encoder.fit_transform(hg.tensor(labels))
        back = encoder.inverse_transform(found)
        later = encoder.transform(hg.tensor(labels[::-1].copy()))
    assert type(found) is type(back) is type(later) is type(encoder.classes_) is hg.Tensor
    np.testing.assert_array_equal(found, wanted.fit_transform(labels))
    np.testing.assert_array_equal(later, wanted.transform(labels[::-1]))
    np.testing.assert_array_equal(back, labels)
    assert back.dtype == dtype


def _estimator(name: str, kind: type) -> None:
    if name == "LabelEncoder":
        CHECKS[name] = _label_encoder
        return
    try:
        made = kind(**SETTINGS.get(name, {}))
        if not get_tags(made).array_api_support:
            return
    except (TypeError, AttributeError):  # a meta-estimator, which is made of others
        return
    check = check_array_api_input if name in VALUES_DIFFER else check_array_api_input_and_values
    CHECKS[name] = lambda dtype: check(name, made, HERE, None, dtype)


def _metric(metric: Any, check: Callable[..., None]) -> None:
    name = f"{getattr(metric, '__name__', metric)} {check.__name__.removeprefix('check_array_api_')}"
    CHECKS[name] = lambda dtype: check(metric, HERE, None, dtype)


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for _name, _kind in all_estimators():
        if not inspect.isabstract(_kind):
            _estimator(_name, _kind)
for _of, _checks in importlib.import_module("sklearn.metrics.tests.test_common").array_api_metric_checkers.items():
    for _check in _checks:
        _metric(_of, _check)


def outcome(name: str) -> str:
    try:
        for dtype in ("float64", "float32"):
            CHECKS[name](dtype)
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    return "right"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    chosen = random.Random(3).sample(sorted(CHECKS), int(sys.argv[1])) if len(sys.argv) > 1 else list(CHECKS)
    print(json.dumps({name: outcome(name) for name in chosen}))
