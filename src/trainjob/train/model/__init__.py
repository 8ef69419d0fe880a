"""Weights, adapters, sharding, attention over packed rows, optimizer.

build      the entry: a model that is ready to be trained, from the configuration
load       which model: configuration, class, files; reasons when there is none
weights    values of weights: read, converted or random, each rank its own part
adapters   LoRA, and 4-bit weights under it
shard      FSDP2, DDP or alone; precision, recomputation, compilation
attention  over documents that lie one behind the other
loss       summed cross entropy, without all logits at once
optim      AdamW, schedules, clipping
facts      weights and floating-point operations
"""
