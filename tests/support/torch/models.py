"""Small models in plain PyTorch, of the kinds that people write: each is a module, its arguments, and which of them are trained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.utils.checkpoint
from torch import Tensor, nn
from torch.nn import functional as F

Case = tuple[nn.Module, tuple[Any, ...]]
MODELS: dict[str, Callable[[], Case]] = {}


def _model(function: Callable[[], Case]) -> Callable[[], Case]:
    MODELS[function.__name__] = function
    return function


class Does(nn.Module):
    """A function with layers: ``f(layers, *args)``."""

    def __init__(self, f: Callable[..., Any], **layers: nn.Module) -> None:
        super().__init__()
        self.f, self.layers = f, nn.ModuleDict(layers)

    def forward(self, *args: Any) -> Any:
        return self.f(self.layers, *args)


# --- images ----------------------------------------------------------------------------------------------------------


class Residual(nn.Module):
    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.one, self.two = nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.norm_one, self.norm_two = nn.BatchNorm2d(after), nn.BatchNorm2d(after)
        self.across = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm_one(self.one(x)), inplace=True)
        return F.relu(self.norm_two(self.two(y)) + self.across(x))


@_model
def resnet() -> Case:
    stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5))
    return nn.Sequential(stem, Residual(8, 8, 1), Residual(8, 16, 2), head), (torch.randn(2, 3, 32, 32),)


@_model
def mobile_net() -> Case:
    def block(n: int) -> nn.Module:
        return nn.Sequential(nn.Conv2d(n, n, 3, padding=1, groups=n), nn.BatchNorm2d(n), nn.Hardswish(), nn.Conv2d(n, n, 1), nn.ReLU6())

    squeeze = Does(lambda own, x: x * own["gate"](x.mean((2, 3), keepdim=True)), gate=nn.Sequential(nn.Conv2d(8, 8, 1), nn.Hardsigmoid()))
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2), block(8), squeeze, nn.AvgPool2d(2)), (torch.randn(2, 3, 17, 17),)


@_model
def u_net() -> Case:
    def f(own: Any, x: Tensor) -> Tensor:
        skip = own["down"](x)
        low = F.silu(own["low"](F.max_pool2d(skip, 2)))
        up = torch.cat([own["up"](low), skip], dim=1)
        fine = F.interpolate(own["out"](up), scale_factor=2, mode="bilinear", align_corners=False)
        return fine + F.interpolate(low.mean(1, keepdim=True), size=fine.shape[2:], mode="nearest")

    layers = {"down": nn.Conv2d(2, 6, 3, padding=1), "low": nn.Conv2d(6, 8, 3, padding=1), "up": nn.ConvTranspose2d(8, 6, 2, 2)}
    return Does(f, **layers, out=nn.Sequential(nn.GroupNorm(3, 12), nn.Conv2d(12, 3, 3, padding=1))), (torch.randn(2, 2, 12, 12),)


@_model
def super_resolution() -> Case:
    layers = [nn.Conv2d(1, 8, 5, padding=2, padding_mode="reflect"), nn.PReLU(8), nn.Conv2d(8, 4, 3, padding=1, padding_mode="circular")]
    return nn.Sequential(*layers, nn.PixelShuffle(2), nn.InstanceNorm2d(1, affine=True), nn.Upsample(scale_factor=2, mode="bicubic")), (
        torch.randn(2, 1, 8, 8),
    )


@_model
def dense_prediction() -> Case:
    """Dilations, group norm, Lp pooling, unfold and fold, grid sampling."""

    def f(own: Any, x: Tensor) -> Tensor:
        y = own["body"](x)
        patches = F.unfold(y, 3, padding=1)
        folded = F.fold(patches * 0.5, y.shape[2:], 3, padding=1)
        theta = torch.eye(2, 3).expand(x.shape[0], 2, 3) * 0.9
        grid = F.affine_grid(theta, list(folded.shape), align_corners=False)
        return F.grid_sample(folded, grid, align_corners=False)

    return Does(f, body=nn.Sequential(nn.Conv2d(2, 4, 3, padding=2, dilation=2), nn.LeakyReLU(0.1))), (torch.randn(2, 2, 9, 9),)


@_model
def volumes() -> Case:
    layers = [nn.Conv3d(1, 4, 3, padding=1), nn.BatchNorm3d(4), nn.ELU(), nn.MaxPool3d(2), nn.ConvTranspose3d(4, 2, 2, 2), nn.AvgPool3d(2)]
    return nn.Sequential(*layers), (torch.randn(1, 1, 6, 6, 6),)


@_model
def sound() -> Case:
    """Convolutions in one dimension, gated and weight-normed; a spectrogram."""

    def f(own: Any, x: Tensor) -> Tensor:
        spectrum = torch.stft(x.squeeze(1), 16, 8, window=torch.hann_window(16), return_complex=True).abs()
        gated = F.glu(own["conv"](x), dim=1)
        return torch.log1p(spectrum).mean() + F.avg_pool1d(gated, 2).tanh()

    conv = nn.utils.parametrizations.weight_norm(nn.Conv1d(1, 8, 5, padding=4, dilation=2))
    return Does(f, conv=conv), (torch.randn(2, 1, 64),)


# --- sequences -------------------------------------------------------------------------------------------------------


@_model
def cells() -> Case:
    def f(own: Any, x: Tensor) -> Tensor:
        state = torch.zeros(x.shape[1], 6), torch.zeros(x.shape[1], 6)
        h, plain = state[0], state[0]
        for step in x:
            state = own["lstm"](step, state)
            h = own["gru"](state[0], h)
            plain = own["rnn"](h, plain)
        return torch.cat([h, state[1], plain], dim=-1)

    return Does(f, lstm=nn.LSTMCell(4, 6), gru=nn.GRUCell(6, 6), rnn=nn.RNNCell(6, 6)), (torch.randn(5, 3, 4),)


@_model
def transformer_encoder() -> Case:
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True, activation="gelu")
    mask = torch.zeros(2, 7, dtype=torch.bool)
    mask[0, 5:] = True
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return Does(lambda own, x: own["encoder"](x, src_key_padding_mask=mask), encoder=encoder), (torch.randn(2, 7, 16),)


@_model
def transformer_decoder() -> Case:
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 2, 24, dropout=0.0, batch_first=True, norm_first=True), 2)
    causal = nn.Transformer.generate_square_subsequent_mask(5)
    return Does(lambda own, x, y: own["decoder"](x, y, tgt_mask=causal, tgt_is_causal=True), decoder=decoder), (
        torch.randn(2, 5, 16),
        torch.randn(2, 6, 16),
    )


@_model
def attention_with_weights() -> Case:
    attention = nn.MultiheadAttention(12, 3, batch_first=True, add_bias_kv=True, kdim=8, vdim=8)
    return Does(lambda own, x, y: own["attention"](x, y, y), attention=attention), (torch.randn(2, 4, 12), torch.randn(2, 5, 8))


@_model
def gpt() -> Case:
    """Positions by rotation, RMS norms, grouped queries, and a cache of keys and values that is written in place."""

    def rotated(x: Tensor, at: Tensor) -> Tensor:
        angle = at[:, None] * torch.exp2(-torch.arange(4.0))
        first, second = x.chunk(2, dim=-1)
        return torch.cat([first * angle.cos() - second * angle.sin(), first * angle.sin() + second * angle.cos()], dim=-1)

    def f(own: Any, tokens: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
        x = own["embed"](tokens)
        q, k, v = own["qkv"](own["norm"](x)).split([32, 16, 16], dim=-1)
        q, k, v = (t.unflatten(-1, (-1, 8)).transpose(1, 2) for t in (q, k, v))
        keys, values = torch.zeros(2, 2, 12, 8), torch.zeros(2, 2, 12, 8)
        keys[:, :, at] = rotated(k, at)
        values = values.index_put((torch.arange(2)[:, None, None], torch.arange(2)[:, None], at), v)
        seen = torch.arange(12) <= at[:, None]
        y = F.scaled_dot_product_attention(rotated(q, at), keys, values, attn_mask=seen, enable_gqa=True)
        x = x + own["out"](y.transpose(1, 2).flatten(2))
        return own["embed"].weight @ x.mT, keys

    layers = {"embed": nn.Embedding(20, 32), "norm": nn.RMSNorm(32), "qkv": nn.Linear(32, 64), "out": nn.Linear(32, 32)}
    return Does(f, **layers), (torch.randint(20, (2, 4)), torch.arange(3, 7))


@_model
def vit() -> Case:
    def f(own: Any, x: Tensor) -> Tensor:
        patches = own["patches"](x).flatten(2).transpose(1, 2)
        x = torch.cat([own["embed"].weight[:1].expand(x.shape[0], -1, -1), patches], dim=1) + own["embed"].weight
        return own["head"](own["encoder"](x)[:, 0])

    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
    return Does(f, patches=nn.Conv2d(3, 16, 4, 4), embed=nn.Embedding(5, 16), encoder=encoder, head=nn.Linear(16, 3)), (torch.randn(2, 3, 8, 8),)


@_model
def mixer() -> Case:
    def mlp(n: int) -> nn.Module:
        return nn.Sequential(nn.LayerNorm(n), nn.Linear(n, 2 * n), nn.GELU(approximate="tanh"), nn.Dropout(0.0), nn.Linear(2 * n, n))

    return Does(lambda own, x: (y := x + own["tokens"](x.mT).mT) + own["channels"](y), tokens=mlp(6), channels=mlp(8)), (torch.randn(2, 6, 8),)


# --- tables and graphs -----------------------------------------------------------------------------------------------


@_model
def bags() -> Case:
    def f(own: Any, indices: Tensor, offsets: Tensor) -> Tensor:
        return torch.cat([own["sum"](indices, offsets), own["mean"](indices, offsets), own["max"](indices.view(2, 3))], dim=-1)

    bag = {mode: nn.EmbeddingBag(10, 4, mode=mode) for mode in ("sum", "mean", "max")}
    return Does(f, **bag), (torch.tensor([1, 2, 4, 5, 4, 3]), torch.tensor([0, 4]))


@_model
def message_passing() -> Case:
    """Gathers along edges, and sums, means and maxima back to the nodes."""

    def f(own: Any, x: Tensor, edges: Tensor) -> Tensor:
        source, target = edges
        messages = F.elu(own["message"](torch.cat([x[source], x[target]], dim=-1)))
        weights = torch.exp(messages.mean(-1))
        total = torch.zeros(x.shape[0]).index_add(0, target, weights) + 1e-6
        summed = torch.zeros_like(x).scatter_add(0, target[:, None].expand_as(messages), messages * (weights / total[target])[:, None])
        highest = torch.full_like(x, -1.0).scatter_reduce(0, target[:, None].expand_as(messages), messages, "amax")
        return own["norm"](summed + highest + x)

    return Does(f, message=nn.Linear(12, 6), norm=nn.BatchNorm1d(6)), (torch.randn(5, 6), torch.randint(5, (2, 9)))


@_model
def selection() -> Case:
    """Sorts, top-k, gathers, running sums, quantiles, searches, masks."""

    def f(own: Any, x: Tensor) -> tuple[Tensor, ...]:
        scores = own["score"](x)
        best, places = scores.topk(3, dim=-1)
        ordered = scores.sort(dim=-1, descending=True).values
        masked = scores.masked_fill(scores < 0, float("-inf")).softmax(-1).nan_to_num()
        routed = torch.zeros_like(scores).scatter(-1, places, best.softmax(-1))
        running = torch.cumsum(ordered, -1) + torch.logcumsumexp(scores, -1)
        return (
            routed,
            running,
            masked,
            scores.gather(-1, places),
            scores.median(-1).values,
            scores.kthvalue(2, -1).values,
            torch.searchsorted(torch.linspace(-1, 1, 5), scores.detach()),
        )

    return Does(f, score=nn.Linear(4, 6)), (torch.randn(3, 4),)


@_model
def mixture_of_experts() -> Case:
    def f(own: Any, x: Tensor) -> Tensor:
        weights, chosen = own["gate"](x).softmax(-1).topk(2, dim=-1)
        hidden = torch.einsum("ni,eio->neo", x, own["experts"].weight.view(4, 6, 6))
        picked = hidden.take_along_dim(chosen[..., None], dim=1)
        load = F.one_hot(chosen, 4).float().mean((0, 1))
        return (picked * weights[..., None]).sum(1) + load.var()

    return Does(f, gate=nn.Linear(6, 4), experts=nn.Linear(6, 24)), (torch.randn(5, 6),)


@_model
def variational() -> Case:
    """A normal, its divergence, and a flow with a triangular Jacobian."""

    def f(own: Any, x: Tensor, noise: Tensor) -> Tensor:
        mean, log_scale = own["encode"](x).chunk(2, dim=-1)
        z = mean + F.softplus(log_scale) * noise
        divergence = -0.5 * (1 + log_scale - mean.square() - log_scale.exp()).sum(-1)
        log_p = torch.distributions.Normal(mean, F.softplus(log_scale) + 0.1, validate_args=False).log_prob(z).sum(-1)
        return divergence + log_p + torch.lgamma(z.abs() + 1).sum(-1) + F.mish(z).logsumexp(-1)

    return Does(f, encode=nn.Linear(5, 8)), (torch.randn(3, 5), torch.randn(3, 4))


@_model
def gaussian_process() -> Case:
    def f(own: Any, x: Tensor) -> Tensor:
        z = own["features"](x)
        gram = torch.exp(-torch.cdist(z, z).square()) + torch.eye(len(x))
        half = torch.cholesky_solve(x[:, :1], torch.linalg.cholesky(gram))
        return torch.logdet(gram) + half.square().sum() + torch.linalg.inv(gram).diagonal().sum()

    return Does(f, features=nn.Linear(3, 2)), (torch.randn(5, 3),)


@_model
def complex_layers() -> Case:
    """A Fourier layer: a product with complex weights among the frequencies."""

    def f(own: Any, x: Tensor) -> Tensor:
        weight = torch.view_as_complex(own["weight"].weight.view(4, 4, 5, 2))
        mixed = torch.einsum("bif,iof->bof", torch.fft.rfft(x), weight)
        return torch.fft.irfft(mixed, n=8).real + torch.polar(x.abs(), x).imag

    return Does(f, weight=nn.Linear(10, 16)), (torch.randn(2, 4, 8),)


# --- further kinds ---------------------------------------------------------------------------------------------------


@_model
def shifted_windows() -> Case:
    """Attention within windows of an image that is rolled by half a window."""

    def f(own: Any, x: Tensor) -> Tensor:
        n, height, width, channels = x.shape
        windows = torch.roll(x, (-2, -2), (1, 2)).view(n, height // 4, 4, width // 4, 4, channels).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, channels)
        q, k, v = own["qkv"](windows).reshape(-1, 16, 3, 2, channels // 2).permute(2, 0, 3, 1, 4)
        y = ((q @ k.mT).softmax(-1) @ v).transpose(1, 2).reshape(-1, height // 4, width // 4, 4, 4, channels)
        return x + torch.roll(y.permute(0, 1, 3, 2, 4, 5).reshape(x.shape), (2, 2), (1, 2))

    return Does(f, qkv=nn.Linear(8, 24)), (torch.randn(2, 8, 8, 8),)


@_model
def selective_state_space() -> Case:
    """The same recurrence as running sums of logarithms, and step by step."""

    def f(own: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        step = F.softplus(own["step"](x))
        decay = -step[..., None] * own["decay"].weight.exp()
        driven = step[..., None] * own["into"](x)[:, :, None] * x[..., None]
        total = decay.cumsum(1)
        states = torch.exp(total) * (driven * torch.exp(-total)).cumsum(1)
        state, outputs = torch.zeros(x.shape[0], 3, 4), []
        for t in range(x.shape[1]):
            state = torch.exp(decay[:, t]) * state + driven[:, t]
            outputs.append((state * own["out"](x[:, t])[:, None]).sum(-1))
        return (states * own["out"](x)[:, :, None]).sum(-1) * F.silu(x), torch.stack(outputs, 1)

    layers = {"step": nn.Linear(3, 3), "into": nn.Linear(3, 4), "out": nn.Linear(3, 4), "decay": nn.Linear(4, 3)}
    return Does(f, **layers), (torch.randn(2, 5, 3),)


@_model
def routed_experts() -> Case:
    """Tokens sorted by their experts, weighted, and added back."""

    def f(own: Any, x: Tensor) -> tuple[Tensor, ...]:
        weights, chosen = own["gate"](x).softmax(-1).topk(2, -1)
        flat = chosen.reshape(-1)
        order = flat.argsort(stable=True)
        token = order // 2
        out = torch.zeros_like(x).index_add(0, token, own["expert"](x[token]) * weights.reshape(-1)[order][:, None])
        load = torch.zeros(3).scatter_add(0, flat, torch.ones(flat.numel()))
        places = (F.one_hot(flat, 3).cumsum(0) * F.one_hot(flat, 3)).sum(-1)
        return out, load, places

    return Does(f, gate=nn.Linear(4, 3), expert=nn.Linear(4, 4)), (torch.randn(6, 4),)


@_model
def rotated_by_complex_numbers() -> Case:
    def f(own: Any, x: Tensor) -> Tensor:
        angles = torch.outer(torch.arange(x.shape[1]).float(), torch.exp2(-torch.arange(4.0)))
        turned = torch.view_as_complex(own["q"](x).unflatten(-1, (4, 2))) * torch.polar(torch.ones_like(angles), angles)
        return torch.view_as_real(turned).flatten(-2)

    return Does(f, q=nn.Linear(8, 8)), (torch.randn(2, 5, 8),)


@_model
def low_rank_adapter() -> Case:
    def f(own: Any, x: Tensor) -> Tensor:
        return own["frozen"](x) + own["up"](own["down"](x)) * 0.5

    frozen = nn.Linear(6, 5).requires_grad_(False)
    return Does(f, frozen=frozen, down=nn.Linear(6, 2, bias=False), up=nn.Linear(2, 5, bias=False)), (torch.randn(4, 6),)


@_model
def constrained_weights() -> Case:
    spectral, orthogonal = nn.utils.parametrizations.spectral_norm, nn.utils.parametrizations.orthogonal
    return nn.Sequential(spectral(nn.Linear(5, 4)), nn.ReLU(), orthogonal(nn.Linear(4, 4, bias=False))), (torch.randn(3, 5),)


@_model
def quantised() -> Case:
    """Weights and activations rounded to 8 bits, and a product of integers."""

    def f(own: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        weight = own["layer"].weight
        scales = weight.detach().abs().amax(1) / 127
        rounded = torch.fake_quantize_per_channel_affine(weight, scales, torch.zeros(5, dtype=torch.int32), 0, -128, 127)
        whole = torch.round(weight / scales[:, None]).to(torch.int8).int()
        return torch.fake_quantize_per_tensor_affine(x, 0.05, 3, -128, 127) @ rounded.T, torch.round(x * 20).int() @ whole.T

    return Does(f, layer=nn.Linear(6, 5)), (torch.randn(4, 6),)


@_model
def beam_search_step() -> Case:
    def f(own: Any, scores: Tensor, tokens: Tensor, cache: Tensor) -> tuple[Tensor, ...]:
        found = own["embed"](tokens)
        total = (scores[..., None] + found.log_softmax(-1)).flatten(1)
        best, at = total.topk(scores.shape[1], -1)
        beams = torch.div(at, 9, rounding_mode="floor")
        cache = cache.index_copy(2, torch.tensor([2]), found[:, :, None, :4])
        return best, at % 9, cache.gather(1, beams[:, :, None, None].expand(-1, -1, *cache.shape[2:]))

    return Does(f, embed=nn.Embedding(9, 9)), (torch.randn(2, 3), torch.randint(9, (2, 3)), torch.randn(2, 3, 5, 4))


@_model
def transforms() -> Case:
    """``torch.func`` inside: gradients of each sample, tangents, Jacobians, a Hessian."""

    def f(own: Any, x: Tensor) -> tuple[Tensor, ...]:
        w = own["layer"].weight.T
        each = torch.func.vmap(torch.func.grad(lambda w, row: torch.tanh(row @ w).square().sum()), in_dims=(None, 0))(w, x)
        tangent = torch.func.jvp(lambda a: torch.sin(a) * a, (x,), (torch.ones_like(x),))[1]
        return each, tangent, torch.func.jacrev(lambda a: a.cos() * a.sum())(x[0]), torch.func.hessian(lambda a: (a**3).sum())(x[0])

    return Does(f, layer=nn.Linear(4, 3)), (torch.randn(5, 4),)


@_model
def checkpointed() -> Case:
    def f(own: Any, x: Tensor) -> Tensor:
        return torch.utils.checkpoint.checkpoint(own["body"], x, use_reentrant=False) + x

    return Does(f, body=nn.Sequential(nn.Linear(4, 9), nn.GELU(), nn.Linear(9, 4))), (torch.randn(3, 4),)


@_model
def overlaps() -> Case:
    """Focal, Dice and contrastive losses."""

    def f(own: Any, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        logits = own["layer"](x)
        p, wanted = logits.sigmoid(), F.one_hot(y, 5).float()
        hit = p * wanted + (1 - p) * (1 - wanted)
        focal = 0.25 * (1 - hit) ** 2 * F.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
        dice = 1 - (2 * (p * wanted).sum(0) + 1) / ((p + wanted).sum(0) + 1)
        unit = F.normalize(logits, dim=-1)
        alike = (unit @ unit.T / 0.1).masked_fill(torch.eye(len(x), dtype=torch.bool), -1e9)
        return focal.mean(), dice.mean(), F.cross_entropy(alike, torch.arange(len(x)).roll(1)), F.pdist(logits).mean()

    return Does(f, layer=nn.Linear(4, 5)), (torch.randn(6, 4), torch.tensor([0, 1, 2, 3, 4, 1]))


# --- losses ----------------------------------------------------------------------------------------------------------


def _loss(loss: nn.Module, *args: Tensor) -> Case:
    return Does(lambda own, x, *rest: own["loss"](own["layer"](x), *rest), layer=nn.Linear(4, 5), loss=loss), (torch.randn(6, 4), *args)


LOSSES: dict[str, Callable[[], Case]] = {
    "cross_entropy": lambda: _loss(nn.CrossEntropyLoss(torch.rand(5), label_smoothing=0.1), torch.tensor([0, 1, -100, 3, 4, 2])),
    "soft_cross_entropy": lambda: _loss(nn.CrossEntropyLoss(), torch.rand(6, 5).softmax(1)),
    "bce_with_logits": lambda: _loss(nn.BCEWithLogitsLoss(pos_weight=torch.rand(5)), torch.rand(6, 5)),
    "kl_div": lambda: _loss(nn.KLDivLoss(reduction="batchmean"), torch.rand(6, 5).softmax(1)),
    "huber": lambda: _loss(nn.HuberLoss(delta=0.5), torch.randn(6, 5)),
    "smooth_l1": lambda: _loss(nn.SmoothL1Loss(beta=0.3), torch.randn(6, 5)),
    "gaussian_nll": lambda: _loss(nn.GaussianNLLLoss(), torch.randn(6, 5), torch.rand(6, 5)),
    "poisson_nll": lambda: _loss(nn.PoissonNLLLoss(full=True), torch.rand(6, 5) * 4),
    "multi_margin": lambda: _loss(nn.MultiMarginLoss(), torch.randint(5, (6,))),
    "multi_label": lambda: _loss(nn.MultiLabelSoftMarginLoss(), torch.randint(2, (6, 5)).float()),
    "cosine_embedding": lambda: _loss(nn.CosineEmbeddingLoss(), torch.randn(6, 5), torch.tensor([1, -1, 1, -1, 1, 1])),
    "triplet": lambda: _loss(nn.TripletMarginLoss(), torch.randn(6, 5), torch.randn(6, 5)),
    "hinge": lambda: _loss(nn.HingeEmbeddingLoss(), torch.tensor([1.0, -1.0]).repeat(3)[:, None].expand(6, 5)),
    "nll_of_images": lambda: (
        Does(lambda own, x, y: F.nll_loss(own["conv"](x).log_softmax(1), y), conv=nn.Conv2d(2, 3, 1)),
        (torch.randn(2, 2, 3, 3), torch.randint(3, (2, 3, 3))),
    ),
    "ctc": lambda: (
        Does(lambda own, x, y: F.ctc_loss(own["layer"](x).log_softmax(-1), y, torch.tensor([7, 6]), torch.tensor([3, 2])), layer=nn.Linear(4, 5)),
        (torch.randn(7, 2, 4), torch.randint(1, 5, (2, 3))),
    ),
}
MODELS |= LOSSES
