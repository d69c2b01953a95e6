"""Options that benchmarks share: rounds and threads."""

from __future__ import annotations

import argparse

import torch

import hologram as hg


def rounds_and_threads(description: str | None, rounds: int) -> argparse.Namespace:
    """Parses ``--rounds`` and ``--threads``; both frameworks have as many threads from then on, and PyTorch a fixed seed."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    hg.set_num_threads(options.threads)
    torch.manual_seed(0)
    return options
