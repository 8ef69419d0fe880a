"""One run from its settings to its exit code: puts data, model, checkpoints and reports together."""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from trainjob.launch.policy import PROGRESS
from trainjob.storage import CHECKPOINTS, RUN_VARIABLE, URL_VARIABLE
from trainjob.train import heap, settings
from trainjob.train.checkpoint.save import Checkpointer
from trainjob.train.checkpoint.state import State
from trainjob.train.config import Config
from trainjob.train.faults import Code, TrainError
from trainjob.train.loop import Done, Loop
from trainjob.train.watch import last_words, reporter, versions
from trainjob.train.watch.reporter import Reporter
from trainjob.train.watch.stop import Stop
from trainjob.train.watch.watchdog import Watchdog


@dataclass(frozen=True, slots=True)
class Place:
    """Where this process stands among the ranks."""

    rank: int
    world: int
    local: int
    device: torch.device


def run(config: Config) -> int:
    """Trains as `config` says. Returns the exit code; why it is not 0 has been said."""
    stop, dog = Stop(), Watchdog(config.report.watchdog)
    last_words.clear()
    stop.install()
    dog.start()
    made: _Run | None = None
    try:
        made = _Run(config, _join(config), stop, dog)
        made.train()
    except BaseException as error:
        if made is not None and made.report is not None:
            made.report.end(ok=False)
        # Not by an orderly exit: it may wait for ranks that are gone.
        last_words.leave(error)
    dog.stop()
    if dist.is_initialized():
        dist.destroy_process_group()
    return 0


def _join(config: Config) -> Place:
    """Finds the other ranks."""
    environ = os.environ
    world, local = int(environ.get("WORLD_SIZE", 1)), int(environ.get("LOCAL_RANK", 0))
    gpu = torch.cuda.is_available()
    device = torch.device("cuda", local) if gpu else torch.device("cpu")
    if gpu:
        torch.cuda.set_device(device)
    place = Place(int(environ.get("RANK", 0)), world, local, device)
    backend = "cpu:gloo,cuda:nccl" if gpu else "gloo"
    if world > 1:
        dist.init_process_group(backend)
    elif config.parallel.mode in ("fsdp", "ddp") or config.parallel.cpu_offload:
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    if config.train.deterministic:
        environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
    # Dropout falls differently on each rank; what must be equal on all is drawn from train.seed alone.
    random.seed(config.train.seed + place.rank)
    torch.manual_seed(config.train.seed + place.rank)
    return place


class _Run:
    """What a run is made of."""

    def __init__(self, config: Config, place: Place, stop: Stop, dog: Watchdog) -> None:
        from trainjob.train.model import lean

        lean.imports(accelerate=bool(config.lora.rank), compiled=config.train.compile)
        from trainjob.train.data import tokens
        from trainjob.train.data.loader import Loader
        from trainjob.train.model.build import build

        self.config, self.place, self.stop, self.dog = config, place, stop, dog
        reporter.check(config.report)
        self.url = config.checkpoint.url or os.environ.get(URL_VARIABLE) or CHECKPOINTS
        self.tokenizer = tokens.load(config.model)
        train = config.train
        self.epochs = train.epochs or (0 if train.steps else 1)
        self.loader = Loader(
            config.data,
            tokenizer=self.tokenizer,
            global_batch=train.global_batch,
            micro_batch=train.micro_batch,
            seed=train.seed,
            rank=place.rank,
            world=place.world,
            epochs=self.epochs,
            log=self._say,
        )
        versions.compare(config, self.loader.identity)
        if train.steps:
            # While the model is built. A checkpoint that is found later begins elsewhere.
            self.loader.start()
        self.built = build(config, device=place.device, rank=place.rank, world=place.world)
        if place.device.type == "cpu" and self.built.mode != "fsdp":
            heap.keep()
        tokens.check_vocabulary(self.tokenizer, self.built.model.config.get_text_config().vocab_size)
        self.total = train.steps  # 0 until the data are counted
        self.report: Reporter | None = None
        # No schedule: it follows from the settings and the step, so that changed settings count after a resume.
        state = State(self.built.model, self.built.optimizer, extra=self._extra, seed=train.seed, rank=place.rank)
        self.saver = Checkpointer(
            config.checkpoint, url=self.url, state=state, fingerprint=self._fingerprint(),
            run=os.environ.get(RUN_VARIABLE, ""), saved=self._saved, say=self._say,
        )  # fmt: skip

    def train(self) -> None:
        """All steps, the last checkpoint and the export."""
        began = time.monotonic()
        with self.dog.phase("resume"):
            first = self._resume()
        self.loader.start()
        report = self.report
        assert report is not None
        report.begin(self._facts())
        loop = Loop(
            self.built, self._schedule(first), self.config.train.max_grad_norm, self.place.device,
            self.saver.before_update, lambda: self.stop.requested, first,
        )  # fmt: skip
        self.stop.defer()
        done = self._steps(loop, report)
        with self.dog.phase("last checkpoint"):
            if loop.step > 0:
                self.saver.save(loop.step, wait=True)
            self.saver.finish()
        if done is not None and done.told:
            raise TrainError(Code.TOLD, f"told to end; saved after step {loop.step}", "it goes on from there")
        with self.dog.phase("export"):
            self._export()
        if self.total and loop.step < self.total:
            raise TrainError(
                Code.DATA_ENDED,
                f"the data ended after {loop.step} of {self.total} steps; they are saved and exported",
                "set train.epochs to 0 to go through the data as often as train.steps needs, or lower train.steps",
            )
        self._say(f"{self.saver.stalled:.2f} s of {time.monotonic() - began:.1f} s went into waiting for checkpoints")
        report.end()

    def _steps(self, loop: Loop, report: Reporter) -> Done | None:
        """The steps until the end, or until a rank is told to end; returns the last one."""
        done = None
        every = self.config.checkpoint.every
        try:
            if self.total and loop.step >= self.total:
                return None
            for done in loop.steps(self.loader):
                self.dog.beat(done.step)
                report.step(done)
                if done.told or done.step == self.total:
                    break
                if every and done.step % every == 0:
                    with self.dog.phase("save"):
                        self.saver.save(done.step)
        finally:
            self.loader.close()
        return done

    def _resume(self) -> int:
        """Goes on from a checkpoint if there is one; returns the steps that are done."""
        from trainjob.train.model.facts import peak_flops

        resumed = self.saver.resume()
        extra: dict[str, Any] = dict(resumed.extra) if resumed else {}
        if resumed:
            self.loader.load_state_dict(extra["data"])
        if not self.total:
            with self.dog.phase("count the data", 100):
                self.total = self.loader.count()
        first = resumed.step if resumed else 0
        self.report = Reporter(
            self.config.report,
            self.place.rank,
            self.place.world,
            self.place.device,
            self.total,
            first,
            self.url,
            flops_per_token=self.built.facts.flops_per_token,
            peak_flops=peak_flops(self.place.device) or 0.0,
            params={f"{s}.{k}": str(v) for s, body in settings.effective(self.config).items() for k, v in body.items()},
            state=extra.get("report", {}),
        )
        for note in self.built.notes:
            self._say(note)
        return first

    def _schedule(self, done: int) -> Any:
        """The schedule after `done` steps, with the settings of now."""
        groups = self.built.optimizer.param_groups
        for group in groups:
            group["lr"] = group["initial_lr"] = self.config.optim.lr
        made: Any = self.built.schedule(self.total)
        made.last_epoch = done
        made._last_lr = [base * at(done) for base, at in zip(made.base_lrs, made.lr_lambdas, strict=True)]
        for group, lr in zip(groups, made._last_lr, strict=True):
            group["lr"] = lr
        return made

    def _export(self) -> None:
        """The folder that others load, unless it is there already."""
        kind = self.config.export.kind
        if kind == "auto":
            kind = "adapter" if self.config.lora.rank else "full"
        if kind == "none":
            return
        from trainjob.train.checkpoint.export import export

        url = self.config.export.url or f"{self.url.rstrip('/')}/export"
        export(kind, self.built.model, url=url, tokenizer=self.tokenizer, model=self.config.model)
        self._say(f"exported ({kind}): {url}")

    def _extra(self) -> dict[str, Any]:
        """What a checkpoint holds beside the tensors."""
        report = self.report.state_dict() if self.report else {}
        return {"data": self.loader.state_dict(), "report": report}

    def _fingerprint(self) -> dict[str, Any]:
        """What has to be the same in order to go on. Names and shapes of weights are compared anyway."""
        lora, model = self.config.lora, self.built.model.config
        # Steps are counted in batches.
        found: dict[str, Any] = {
            "the kind of model": model.model_type, "train.global_batch": self.config.train.global_batch,
        }  # fmt: skip
        if lora.rank:
            found |= {"lora.rank": lora.rank, "lora.alpha": lora.alpha, "lora.quantize": lora.quantize}
        return found

    def _saved(self, step: int) -> None:
        """A checkpoint is whole. Called by the thread that writes."""
        if self.place.local == 0 and PROGRESS in os.environ:
            Path(os.environ[PROGRESS]).write_text(str(step))
        if self.report:
            self.report.saved(step)

    def _say(self, text: str) -> None:
        if self.report:
            self.report.say(text)
        elif self.place.rank == 0:
            print(text, flush=True)

    def _facts(self) -> dict[str, str]:
        """What is about to run, for the head of the log."""
        config, facts, world = self.config, self.built.facts, self.place.world
        part = f" of which {facts.trainable:,} trained" if facts.trainable != facts.parameters else ""
        train, data = config.train, config.data
        length = f"{self.total} steps" + (f", {self.epochs} epochs" if self.epochs else "")
        return {
            "model": f"{config.model.path}, {facts.parameters:,} parameters{part}",
            "ranks": f"{world}, {self.built.mode}, {train.precision} on {self.place.device.type}",
            "step": f"{train.global_batch} rows of {data.seq_length} tokens, {'' if data.packing else 'not '}packed",
            "length": length,
            "checkpoints": f"{self.url}, every {config.checkpoint.every} steps, {config.checkpoint.keep} kept",
        }
