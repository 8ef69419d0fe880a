"""The reference trainer: causal language models, full or LoRA, on one process or many, resumable.

`torchrun -m trainjob.train --config job.yaml`, or `trainjob launch -m trainjob.train ...` in a pod.

    config      what is to be done: file, environment, flags (no torch)
    faults      why a run ends early: one-line reasons and exit codes (no torch)
    data/       JSONL -> tokens -> packed rows -> the micro-batches of a step, the same for any world size
    model/      weights, adapters, sharding, attention over packed rows, optimizer
    checkpoint/ whole state, asynchronous, atomic, resharded; export for others
    watch/      what can be seen from outside: progress, metrics, TrainJob status, signals, watchdog
    loop        one optimizer step after the other
    run         puts these together

Written for torch 2.13, transformers 5.24 and peft 0.21 (the extra `train`). They are imported by the parts
that need them and when they need them: what a run does not use costs it no time.
"""
