"""``generate()`` of transformers with growing and static caches, beside eager mode and inductor: ``python -m benchmarks.torch.generation``.

A llama of 8 layers, 512 wide, with random weights writes 200 tokens greedily. Each model has a process of its own, which generates twice: the first
time tells what is compiled, and at which token; the second gives the median time of a step. Tokens have to be those of eager mode. Asked are a step
with the growing cache within 1.3 of one with the static cache, and within 0.6 of inductor's best. Needs ``pip install transformers``.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import sys
import time
from typing import Any

import torch

from benchmarks.process import Worker
from benchmarks.torch.compile import compiled

PROMPT, TOKENS, VOCABULARY = 16, 200, 8000
COMPILING = 0.5  # seconds: a step that takes longer compiles, where nothing else keeps the machine busy
CACHES = {"growing": {}, "static": {"cache_implementation": "static"}}
MODELS = ("eager", "inductor", "hologram")
STATIC_RATIO, INDUCTOR_RATIO = 1.3, 0.6


def _llama() -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=512, intermediate_size=1408, num_hidden_layers=8, num_attention_heads=8, num_key_value_heads=8,
        max_position_embeddings=1024,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    model.generation_config.pad_token_id, model.generation_config.eos_token_id = 0, None
    return model


def _generated(framework: str, cache: str) -> dict[str, Any]:
    """Both runs of one model: ``compiling`` steps of the first as (token, seconds), ``step`` in seconds, the tokens."""
    torch.manual_seed(0)
    model = _llama()
    step, seconds = compiled(model.forward, framework), []

    @functools.wraps(model.forward)
    def forward(*args: Any, **options: Any) -> Any:
        start = time.perf_counter()
        made = step(*args, **options)
        seconds.append(time.perf_counter() - start)
        return made

    model.forward = forward
    prompt = torch.randint(0, VOCABULARY, (1, PROMPT))
    options = {"max_new_tokens": TOKENS, "min_new_tokens": TOKENS, "do_sample": False, "disable_compile": True, **CACHES[cache]}
    with torch.no_grad():
        tokens = model.generate(prompt, **options)
        compiling = [(i, round(s, 2)) for i, s in enumerate(seconds) if s > COMPILING]
        seconds.clear()
        again = model.generate(prompt, **options)
    if not torch.equal(tokens, again):
        return {"error": "the second run gave other tokens"}
    return {"compiling": compiling, "step": statistics.median(seconds[1:]), "tokens": tokens[0].tolist()}


def _work(cache: str, threads: int) -> None:
    torch.set_num_threads(threads)
    for line in sys.stdin:
        print(json.dumps(_generated(line.strip(), cache)), flush=True)


def _row(framework: str, cache: str, found: dict[str, Any], want: list[int]) -> str:
    if "error" in found:
        return f"{framework:9} {cache:8} {found['error']}"
    same = "" if found["tokens"] == want else "; tokens differ from those of eager mode"
    compiling = ", ".join(f"{i} in {s} s" for i, s in found["compiling"]) or "none"
    return f"{framework:9} {cache:8} {found['step'] * 1e3:7.2f} ms a token; steps that compile: {compiling}{same}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--frameworks", default=",".join(MODELS))
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        _work(options.worker, options.threads)
        return 0
    steps: dict[tuple[str, str], float] = {}
    wrong = False
    for cache in CACHES:
        want: list[int] = []
        for framework in options.frameworks.split(","):
            with Worker("benchmarks.torch.generation", "--worker", cache, "--threads", str(options.threads), quiet=True) as worker:
                found = worker.ask(framework)
            want = want or found.get("tokens", [])
            print(_row(framework, cache, found, want), flush=True)
            wrong |= framework == "hologram" and found.get("tokens") != want
            if "step" in found:
                steps[framework, cache] = found["step"]
    ours = steps.get(("hologram", "growing"))
    peers = [s for (framework, _), s in steps.items() if framework == "inductor"]
    if ours and ("hologram", "static") in steps:
        print(f"growing by static cache: {ours / steps['hologram', 'static']:.2f} (asked {STATIC_RATIO})")
    if ours and peers:
        print(f"growing cache by inductor's best: {ours / min(peers):.2f} (asked {INDUCTOR_RATIO})")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
