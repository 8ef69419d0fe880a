"""The summed cross entropy of a micro-batch, without ever holding the logits of all its tokens.

Logits are the largest tensor of a step: tokens x vocabulary, in half precision, again in fp32 and again as
their gradient. Here the head runs over some hundred tokens at a time and their gradient is computed at once, so
the backward has nothing left to do there but to scale: as many multiplications as the plain way, memory for one chunk.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any, Final

import torch

from trainjob.train.data.batch import IGNORE, Batch
from trainjob.train.model import attention

# Logits that exist at one time. On a GPU large enough for full speed of the matrix product; on a CPU a chunk stays
# in its caches (measured, vocabulary 2048: 512 tokens at once take 84 ms where all 2048 take 102).
_CHUNK_GPU: Final = 1 << 26
_CHUNK_CPU: Final = 1 << 21
# Tokens in a chunk, however large the vocabulary: each chunk reads and writes the gradient of the whole head.
_LEAST: Final = 256

Head = Callable[[torch.Tensor], torch.Tensor]


def install(causal: Any) -> None:
    """Give the model a forward that takes `batch=` and returns the loss; other calls go to its own.

    It has to be the forward of the model itself: FSDP and DDP act on calls of the module that they wrap.
    """

    def forward(self: Any, *args: Any, batch: Batch | None = None, **kwargs: Any) -> Any:
        return type(self).forward(self, *args, **kwargs) if batch is None else _loss(self, batch)

    causal.forward = MethodType(forward, causal)


def batch_loss(model: Any, batch: Batch) -> torch.Tensor:
    """Sum of the cross entropies of `batch`'s targets, fp32, shape (); `model` has an installed forward.

    An empty batch gives 0 and gradients of 0, through every layer: other ranks wait for this one there.
    """
    if batch.labels.shape[0] == 0:
        return 0.0 * batch_loss(model, _dummy(batch))
    loss: torch.Tensor = model(batch=batch)
    return loss


def _dummy(batch: Batch) -> Batch:
    zero = torch.zeros(1, dtype=torch.int64, device=batch.labels.device)
    starts = torch.tensor([0, 1], dtype=torch.int32, device=batch.labels.device)
    return Batch(input_ids=zero, labels=zero, positions=zero, starts=starts, longest=1, targets=1)


def _loss(causal: Any, batch: Batch) -> torch.Tensor:
    base = getattr(causal, causal.base_model_prefix)
    device = causal.get_input_embeddings().weight.device
    labels = batch.labels.to(device, non_blocking=True)
    # nonzero_static: `targets` is known, so a GPU need not be waited for.
    learnt = torch.nonzero_static(labels != IGNORE, size=batch.targets)[:, 0]
    outputs = base(
        input_ids=batch.input_ids[None].to(device, non_blocking=True),
        position_ids=batch.positions[None].to(device, non_blocking=True),
        use_cache=False,
        **attention.arguments(batch, device),
    )
    # squeeze: the backward of [0] fills a tensor of the full size.
    hidden = outputs.last_hidden_state.squeeze(0)
    head = _head(causal, outputs)
    weights = [p for p in _head_parameters(causal, base) if p.requires_grad]
    chunks = _chunks(learnt, causal.config.get_text_config().vocab_size)
    loss: torch.Tensor = _SummedCrossEntropy.apply(head, chunks, labels, torch.is_grad_enabled(), hidden, *weights)
    return loss


def _chunks(learnt: torch.Tensor, vocabulary: int) -> tuple[torch.Tensor, ...]:
    """`learnt` in parts of about equal size, with at most so many logits each, or `_LEAST` tokens."""
    most = max(_LEAST, (_CHUNK_GPU if learnt.is_cuda else _CHUNK_CPU) // vocabulary)
    count = -(-learnt.shape[0] // most)
    return learnt.tensor_split(count) if count else ()


def _head(causal: Any, outputs: Any) -> Head:
    """What the model does with hidden states (T, H): its own forward, with a base that returns these.

    So scaling of logits (Granite), soft caps (Gemma) and whatever else a model has stays what it is.
    """
    forward = type(causal).forward
    name = causal.base_model_prefix

    def logits(hidden: torch.Tensor) -> torch.Tensor:
        seen = type(outputs)(**{**outputs, "last_hidden_state": hidden[None]})
        result: torch.Tensor = forward(_WithBase(causal, name, lambda *_, **__: seen), use_cache=False).logits.squeeze(
            0
        )
        return result

    return logits


class _WithBase:
    """The model, seen with another base."""

    def __init__(self, causal: Any, name: str, base: Callable[..., Any]) -> None:
        self.__dict__.update({"_causal": causal, name: base})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._causal, name)


def _head_parameters(causal: Any, base: Any) -> list[torch.Tensor]:
    """Weights outside the base. Looked up at each call: FSDP and mixed precision exchange them."""
    inside = set(base.modules())
    found = [p for m in causal.modules() if m not in inside for p in m._parameters.values() if p is not None]
    return list(dict.fromkeys(found))


class _SummedCrossEntropy(torch.autograd.Function):  # type: ignore[misc]
    """loss = sum over t of -log softmax(head(hidden[t]))[labels[t]], t in `chunks`; the gradients on the way."""

    @staticmethod
    def forward(
        ctx: Any,
        head: Head,
        chunks: tuple[torch.Tensor, ...],
        labels: torch.Tensor,
        wanted: bool,
        hidden: torch.Tensor,
        *weights: torch.Tensor,
    ) -> torch.Tensor:
        hidden_grad = torch.zeros_like(hidden) if wanted else None
        # Sums over chunks in fp32, also of half-precision weights.
        sums: list[torch.Tensor | None] = [None] * len(weights)
        loss = torch.zeros((), dtype=torch.float32, device=hidden.device)
        for chunk in chunks:
            with torch.set_grad_enabled(wanted):
                rows = hidden.detach()[chunk].requires_grad_(wanted)
                logits = head(rows)
            part, logits_grad = _cross_entropy(logits, labels[chunk], wanted)
            loss += part
            if hidden_grad is not None:
                rows_grad, *grads = torch.autograd.grad(logits, [rows, *weights], logits_grad)
                hidden_grad.index_copy_(0, chunk, rows_grad)
                for i, grad in enumerate(grads):
                    so_far = sums[i]
                    sums[i] = (grad if len(chunks) == 1 else grad.float()) if so_far is None else so_far.add_(grad)
        ctx.grads = hidden_grad, sums
        ctx.shapes = [(w.shape, w.dtype, w.device) for w in weights]
        return loss

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, scale: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        hidden_grad, sums = ctx.grads
        ctx.grads = None  # each may be freed as soon as it is used
        grads: list[torch.Tensor] = []
        for i, (shape, dtype, device) in enumerate(ctx.shapes):
            total, sums[i] = sums[i], None
            if total is None:  # no targets: other ranks still wait for a gradient
                total = torch.zeros(shape, dtype=dtype, device=device)
            grads.append(total.mul_(scale).to(dtype))
        return (None, None, None, None, hidden_grad.mul_(scale), *grads)


def _cross_entropy(
    logits: torch.Tensor, labels: torch.Tensor, wanted: bool
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Sum of the cross entropies of `logits` (T, V), in fp32, and if wanted its gradient in the logits' dtype.

    With the gradient, fp32 logits are overwritten by it, unless their own backward needs them. The loss is not
    taken from the label's probability, which may underflow: the largest one, exp(0) / sum, is at least 1 / V.
    """
    exact = logits.detach().float()
    at = labels[:, None]
    label = exact.gather(1, at)
    if not wanted:
        return (torch.logsumexp(exact, dim=1, keepdim=True) - label).sum(), None
    above = exact.amax(1, keepdim=True) - label
    if exact.dtype is logits.dtype and _kept(logits):
        exact = torch.softmax(exact, 1)
    else:
        torch.softmax(exact, 1, out=exact)
    loss = (above - exact.amax(1, keepdim=True).log()).sum()
    return loss, exact.scatter_add_(1, at, torch.full_like(label, -1.0)).to(logits.dtype)


# What only looks at the same memory in another shape.
_VIEWS: Final = frozenset(("Squeeze", "Unsqueeze", "Select", "Slice", "View", "UnsafeView", "ReshapeAlias", "Alias"))


def _kept(tensor: torch.Tensor) -> bool:
    """Whether the function that made `tensor` keeps it for its backward, as tanh does."""
    node = tensor.grad_fn
    while node is not None and node.name().partition("Backward")[0] in _VIEWS:
        node = node.next_functions[0][0]
    return hasattr(node, "_saved_result")
