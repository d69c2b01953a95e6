"""device="hologram" as torch's accelerator: torch.accelerator, pinned memory, generators, and what its module tells."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, RandomSampler, random_split

import hologram_torch
from hologram.errors import DeviceError
from hologram_torch.eager.recording import pending

DEVICE = hologram_torch.device()
MIB = 1 << 20

# --- torch.accelerator -----------------------------------------------------------------------------------------------

ANYTHING = object()
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "set_device_index": (0,),
    "set_device_idx": (0,),
    "set_stream": (torch.Stream(DEVICE),),
    "device_index": (0,),
}
EXPECTED: dict[str, Any] = {
    "current_accelerator": torch.device("hologram"), "current_device_index": 0, "current_device_idx": 0, "current_stream": torch.Stream(DEVICE),
    "device_count": 1, "is_available": True, "device_index": ANYTHING, "get_device_capability": ANYTHING, "get_memory_info": ANYTHING,
    "memory_stats": ANYTHING, "memory_allocated": ANYTHING, "memory_reserved": ANYTHING, "max_memory_allocated": ANYTHING,
    "max_memory_reserved": ANYTHING,
}  # fmt: skip
OF_A_DEVICE = [name for name in torch.accelerator.__all__ if "memory" in name or name in ("synchronize", "set_device_index", "device_index")]
FUNCTIONS = [name for name in torch.accelerator.__all__ if name != "Graph"]  # captured launches: there are none


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::FutureWarning")  # of names that torch will drop
def test_every_function_of_torchs_works(name: str) -> None:
    found = getattr(torch.accelerator, name)(*ARGUMENTS.get(name, ()))
    wanted = EXPECTED.get(name)
    assert found is not None if wanted is ANYTHING else found == wanted


@pytest.mark.parametrize("name", OF_A_DEVICE)
def test_there_is_one_device_to_ask(name: str) -> None:
    function = getattr(torch.accelerator, name)
    for device in (0, "hologram:0", DEVICE):
        if name != "device_index" or device == 0:
            function(device)
    with pytest.raises(DeviceError, match="index 0"):
        with function(7):  # what is no context manager raises when it is called
            pass
    assert torch.accelerator.current_device_index() == 0


def test_synchronize_computes_what_is_pending() -> None:
    x = torch.ones(3, device=DEVICE) * 2
    torch.accelerator.synchronize()
    assert not pending.alive() and x.tolist() == [2, 2, 2]


def test_memory_is_counted() -> None:
    def allocated() -> int:
        torch.accelerator.synchronize()
        gc.collect()
        return torch.accelerator.memory_allocated()

    before = allocated()
    torch.accelerator.reset_peak_memory_stats()
    x = torch.ones(MIB, device=DEVICE) + 1
    held = allocated() - before
    assert 4 * MIB <= held <= torch.accelerator.max_memory_allocated() - before < 16 * MIB
    assert torch.accelerator.memory_reserved() >= torch.accelerator.memory_allocated() and x[2].item() == 2
    del x
    assert allocated() - before < MIB
    assert torch.accelerator.max_memory_allocated() - before >= held
    torch.accelerator.reset_peak_memory_stats()
    assert torch.accelerator.max_memory_allocated() - before < held
    torch.accelerator.empty_cache()
    assert torch.accelerator.memory_reserved() - before < MIB
    free, total = torch.accelerator.get_memory_info()
    assert 0 < free <= total


def test_what_the_device_can_do_is_told() -> None:
    told = torch.hologram.get_device_properties()
    assert told.name == torch.hologram.get_device_name() and told.multi_processor_count >= 1
    assert told.total_memory == torch.hologram.mem_get_info()[1] and told == torch.hologram.get_device_properties("hologram:0")
    with pytest.raises(DeviceError, match="index 0"):
        torch.hologram.get_device_properties(1)
    assert torch.hologram.is_bf16_supported() is True and isinstance(torch.hologram.is_bf16_supported(including_emulation=False), bool)
    for dtype in torch.accelerator.get_device_capability()["supported_dtypes"]:
        assert torch.zeros(2, dtype=dtype, device=DEVICE).tolist() == torch.zeros(2, dtype=dtype).tolist()


# --- pinned memory ---------------------------------------------------------------------------------------------------

TENSORS: dict[str, Callable[[], torch.Tensor]] = {
    "floats": lambda: torch.arange(6.0).reshape(2, 3),
    "turned": lambda: torch.arange(6).reshape(2, 3).t(),
    "channels last": lambda: torch.ones(2, 3, 2, 2).to(memory_format=torch.channels_last),
    "strided": lambda: torch.arange(6.0)[::2],
    "broadcast": lambda: torch.ones(1).expand(3),
    "empty": lambda: torch.empty(0, 3),
    "scalar": lambda: torch.tensor(True),
    "conjugate": lambda: torch.tensor([1 + 2j]).conj(),
    "sparse": lambda: torch.eye(3).to_sparse(),
    "a parameter": lambda: torch.nn.Parameter(torch.ones(2)),
}


@pytest.mark.parametrize("name", TENSORS)
def test_pinned_tensors_are_copies(name: str) -> None:
    plain = TENSORS[name]()
    pinned = plain.pin_memory()
    assert not plain.is_pinned() and pinned.is_pinned() and pinned.pin_memory().is_pinned()
    assert pinned.device.type == "cpu" and torch.equal(pinned.to_dense(), plain.to_dense()) and pinned.requires_grad == plain.requires_grad
    if plain.layout is torch.strided:
        assert pinned.pin_memory() is pinned and pinned.untyped_storage().is_pinned()
        assert (
            torch.equal(pinned.to(DEVICE, non_blocking=True).cpu(), plain)
            and pinned.detach()[..., None].is_pinned()
            and not pinned.clone().is_pinned()
        )


def test_pinning_is_differentiable_and_knows_storages() -> None:
    x = torch.ones(3, requires_grad=True)
    (x * 2).pin_memory().sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2, 2, 2]
    assert torch.ones(2).untyped_storage().pin_memory().is_pinned()


def test_tensors_of_the_device_are_not_pinned() -> None:
    x = torch.ones(2, device=DEVICE)
    assert not x.is_pinned()
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        x.pin_memory()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's, of the argument
def test_memory_is_pinned_for_the_one_accelerator() -> None:
    assert torch.ones(2).pin_memory("hologram").is_pinned("hologram") and not torch.ones(2).pin_memory().is_pinned("cuda")
    with pytest.raises(RuntimeError, match="meta|accelerator"):  # torch's own error
        torch.ones(2).pin_memory("meta")


def test_data_loaders_pin_what_they_load() -> None:
    data = [(torch.full((2,), float(i)), i) for i in range(4)]
    batches = list(DataLoader(data, batch_size=2, pin_memory=True))  # type: ignore[arg-type]
    assert all(t.is_pinned() for batch in batches for t in batch)
    assert [batch[1].tolist() for batch in batches] == [[0, 1], [2, 3]]


# --- generators ------------------------------------------------------------------------------------------------------

DRAWN: dict[str, Callable[[Any, torch.Generator], torch.Tensor]] = {
    "rand": lambda d, g: torch.rand(5, generator=g, device=d),
    "randn": lambda d, g: torch.randn(2, 3, generator=g, device=d, dtype=torch.float64),
    "randint": lambda d, g: torch.randint(2, 90, (9,), generator=g, device=d),
    "randperm": lambda d, g: torch.randperm(9, generator=g, device=d),
    "normal": lambda d, g: torch.normal(torch.zeros(4, device=d), torch.ones(4, device=d), generator=g),
    "bernoulli": lambda d, g: torch.bernoulli(torch.full((20,), 0.4, device=d), generator=g),
    "multinomial": lambda d, g: torch.multinomial(torch.arange(1.0, 9.0, device=d), 5, generator=g),
    "poisson": lambda d, g: torch.poisson(torch.full((9,), 3.0, device=d), generator=g),
    **{
        f"{f}_": lambda d, g, f=f: getattr(torch.ones(6, device=d), f"{f}_")(generator=g)
        for f in ("uniform", "normal", "exponential", "random", "cauchy")
    },
    "init": lambda d, g: torch.nn.init.trunc_normal_(torch.empty(8, device=d), generator=g),
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_generator_draws_what_one_of_the_cpu_draws(name: str) -> None:
    there, here = torch.Generator(device="hologram").manual_seed(3), torch.Generator().manual_seed(3)
    state = torch.get_rng_state()
    for _ in range(2):
        found = DRAWN[name](DEVICE, there)
        assert found.device == DEVICE and torch.equal(found.cpu(), DRAWN[name]("cpu", here))
    assert torch.equal(there.get_state(), here.get_state()) and torch.equal(torch.get_rng_state(), state)


def numbers(g: torch.Generator) -> list[float]:
    return torch.rand(3, generator=g, device=DEVICE).tolist()


def test_generators_have_seeds_and_states() -> None:
    g = torch.Generator(DEVICE)
    assert g.device == DEVICE and g.manual_seed(7) is g and g.initial_seed() == 7
    numbers(g)
    state, copied = g.get_state(), g.clone_state()
    first = numbers(g)
    assert copied.device == DEVICE and numbers(copied) == first
    assert numbers(g.set_state(state)) == first != numbers(g)
    assert g.seed() == g.initial_seed() != 7


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))], ids=["copy", "deepcopy", "pickle"])
@pytest.mark.parametrize("device", ["hologram", "cpu"])
def test_generators_are_copied_with_their_device(device: str, copied: Callable[[torch.Generator], torch.Generator]) -> None:
    g = torch.Generator(device).manual_seed(5)
    torch.rand(3, generator=g, device=device)
    made = copied(g)
    assert made.device == g.device and torch.equal(made.get_state(), g.get_state()) and type(made) is type(g)


def test_torchs_own_generators_stay_what_they_are() -> None:
    plain = torch._C.Generator
    for g in (torch.Generator(), torch.Generator("cpu"), torch.Generator(device=torch.device("cpu")), torch.default_generator):
        assert type(g) is plain and isinstance(g, torch.Generator) and g.device == torch.device("cpu")
    assert issubclass(plain, torch.Generator) and issubclass(torch.Generator, plain) and not isinstance(3, torch.Generator)
    assert pickle.dumps(torch.Generator()).count(b"hologram") == 0 and torch.Generator.__module__ == "torch"
    for wrong in ("meta", "abacus", 2.5):
        with pytest.raises((RuntimeError, TypeError)) as found:
            torch.Generator(wrong)  # type: ignore[arg-type]
        with pytest.raises(found.type):
            plain(wrong)
    with pytest.raises(DeviceError, match="index 0"):
        torch.Generator("hologram:1")


def test_what_takes_a_generator_takes_one_of_the_device() -> None:
    orders = []
    for device in ("hologram", "cpu"):
        g = torch.Generator(device).manual_seed(2)
        orders.append([list(RandomSampler(range(6), generator=g)), [list(part) for part in random_split(range(6), [2, 4], generator=g)]])
    assert orders[0] == orders[1]


def test_states_of_the_device_are_forked_and_restored() -> None:
    torch.manual_seed(1)
    state = torch.hologram.get_rng_state("hologram")
    with torch.random.fork_rng():
        first = torch.rand(3, device=DEVICE).tolist()
    assert torch.equal(torch.hologram.get_rng_state(), state)
    assert torch.rand(3, device=DEVICE).tolist() == first
