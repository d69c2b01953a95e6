"""``torch.autocast("hologram")``: products in a 16-bit type, ops that lose precision by it in float32, by the lists of torch's CPU autocast.

A kernel of autocast casts the arguments and calls the op again below autocast; all other ops fall through.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._ops import OpOverload
from torch.library import Library, fallthrough_kernel

from hologram_torch.eager.identity import NAME
from hologram_torch.eager.kernels.variants import overloads

KEY = "AutocastPrivateUse1"
TYPES = (torch.bfloat16, torch.float16)
LOWER_PRECISION = """conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d mm bmm baddbmm addmm addbmm linear matmul
linalg_vecdot prelu scaled_dot_product_attention _native_multi_head_attention""".split()
FLOAT32 = """avg_pool3d binary_cross_entropy grid_sampler polar prod quantile nanquantile stft cdist trace cholesky cholesky_inverse cholesky_solve
inverse lu_solve pinverse max_pool3d max_unpool2d max_unpool3d adaptive_avg_pool3d reflection_pad1d reflection_pad2d replication_pad1d
replication_pad2d replication_pad3d mse_loss cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss poisson_nll_loss smooth_l1_loss
cross_entropy_loss l1_loss huber_loss margin_ranking_loss soft_margin_loss triplet_margin_loss multi_margin_loss ctc_loss kl_div
multilabel_margin_loss binary_cross_entropy_with_logits fft_fft fft_ifft fft_fft2 fft_ifft2 fft_fftn fft_ifftn fft_rfft fft_irfft fft_rfft2
fft_irfft2 fft_rfftn fft_irfftn fft_hfft fft_ihfft linalg_cond linalg_matrix_rank linalg_solve linalg_cholesky linalg_svdvals linalg_eigvals
linalg_eigvalsh linalg_inv linalg_householder_product linalg_tensorinv linalg_tensorsolve linalg_qr linalg_cholesky_ex linalg_svd linalg_eig
linalg_eigh linalg_lstsq linalg_inv_ex""".split()
PROMOTED = ("cat", "stack", "index_copy")

_below = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)  # type: ignore[attr-defined]


_libraries: list[Library] = []  # a kernel lives as long as its library


@functools.cache
def require() -> None:
    """Registers autocast's kernels, once."""
    library, rest = Library("aten", "IMPL"), Library("_", "IMPL")
    _libraries.extend((library, rest))
    rest.fallback(fallthrough_kernel, KEY)
    for names, choose in ((LOWER_PRECISION, _lower), (FLOAT32, _higher), (PROMOTED, _widest)):
        for name in names:
            for op in overloads(name):
                if not op._schema.is_mutable:
                    library.impl(op, functools.partial(_run, op, choose), KEY)


def _run(op: OpOverload, choose: Callable[[list[torch.Tensor]], torch.dtype], *args: Any, **options: Any) -> Any:
    found: list[torch.Tensor] = []
    _collect((*args, *options.values()), found)
    if found:
        dtype = choose(found)
        args = tuple(_cast(x, dtype) for x in args)
        options = {name: _cast(x, dtype) for name, x in options.items()}
    with torch._C._ExcludeDispatchKeyGuard(_below):
        return op(*args, **options)


def _collect(values: Sequence[Any], into: list[torch.Tensor]) -> None:
    """Collects the tensors that autocast casts: floats of the device, but not float64."""
    for x in values:
        if isinstance(x, (list, tuple)):
            _collect(x, into)
        elif _is_cast(x):
            into.append(x)


def _is_cast(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.device.type == NAME and x.is_floating_point() and x.dtype is not torch.float64


def _cast(x: Any, dtype: torch.dtype) -> Any:
    if isinstance(x, (list, tuple)):
        return type(x)(_cast(e, dtype) for e in x)
    return x.to(dtype) if _is_cast(x) else x


def _lower(tensors: list[torch.Tensor]) -> torch.dtype:
    return torch.get_autocast_dtype(NAME)


def _higher(tensors: list[torch.Tensor]) -> torch.dtype:
    return torch.float32


def _widest(tensors: list[torch.Tensor]) -> torch.dtype:
    return functools.reduce(torch.promote_types, [t.dtype for t in tensors])
