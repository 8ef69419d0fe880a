"""The steps of all ranks, and going on from any of them."""

from __future__ import annotations

import json
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.train.data.material import CHATML, chat, data, texts, tokenizer, write, write_texts
from trainjob.train.data import documents as documents_module
from trainjob.train.data import rows as rows_module
from trainjob.train.data.batch import IGNORE, Batch, Step
from trainjob.train.data.loader import Loader
from trainjob.train.faults import Code, TrainError

# What a piece of a document is in a batch: its inputs and their labels.
Seen = tuple[tuple[int, ...], tuple[int, ...]]
Make = Callable[..., Loader]


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes loaders, and closes them."""
    made: list[Loader] = []
    before = threading.active_count()

    def of(*paths: Path, rank: int = 0, world: int = 1, epochs: int = 1, **more: Any) -> Loader:
        given = {
            "tokenizer": tokenizer(more.pop("template", "")),
            "global_batch": more.pop("global_batch", 4),
            "micro_batch": more.pop("micro_batch", 1),
            "seed": more.pop("seed", 0),
        }
        if "log" in more:
            given["log"] = more.pop("log")
        options = data(*paths, **{"seq_length": 32, "window": 8, **more})
        made.append(Loader(options, rank=rank, world=world, epochs=epochs, **given))
        return made[-1]

    yield of
    for loader in made:
        loader.close()
    assert threading.active_count() == before


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_texts(tmp_path_factory.mktemp("data") / "a.jsonl", texts(40, seed=4))


def seen(batch: Batch) -> list[Seen]:
    """The pieces of a batch; what the contract says of it is checked on the way."""
    starts = batch.starts.tolist()
    found = []
    for start, end in pairwise(starts):
        found.append((tuple(batch.input_ids[start:end].tolist()), tuple(batch.labels[start:end].tolist())))
        assert batch.positions[start:end].tolist() == list(range(end - start))
    assert starts[0] == 0
    assert starts[-1] == len(batch.input_ids) == len(batch.labels) == len(batch.positions)
    assert batch.longest == max((len(ids) for ids, _ in found), default=0)
    assert batch.targets == int((batch.labels != IGNORE).sum())
    return found


def together(ranks: list[list[Step]]) -> list[tuple[Counter[Seen], int, int, int]]:
    """Each step over all ranks: its pieces, targets, tokens, epoch."""
    found = []
    for step in zip(*ranks, strict=True):
        pieces = Counter(piece for rank in step for batch in rank.batches for piece in seen(batch))
        assert len({len(rank.batches) for rank in step}) == 1
        (facts,) = {(rank.targets, rank.tokens, rank.epoch) for rank in step}
        assert facts[0] == sum(batch.targets for rank in step for batch in rank.batches)
        assert facts[1] == sum(len(batch.input_ids) for rank in step for batch in rank.batches)
        found.append((pieces, *facts))
    return found


def same(left: list[Step], right: list[Step]) -> bool:
    """Bit for bit."""
    return len(left) == len(right) and all(
        (a.targets, a.tokens, a.epoch, len(a.batches)) == (b.targets, b.tokens, b.epoch, len(b.batches))
        and all(
            torch.equal(x.input_ids, y.input_ids)
            and torch.equal(x.labels, y.labels)
            and torch.equal(x.positions, y.positions)
            and torch.equal(x.starts, y.starts)
            for x, y in zip(a.batches, b.batches, strict=True)
        )
        for a, b in zip(left, right, strict=True)
    )


def expected(path: Path, seq_length: int) -> Counter[Seen]:
    """The pieces of an epoch, from the file, by transformers."""
    made, found = tokenizer(), Counter[Seen]()
    for line in path.read_text().splitlines():
        ids = [*made(json.loads(line)["text"])["input_ids"], made.eos_token_id]
        for at in range(0, len(ids) - 1, seq_length):
            labels = tuple(ids[at + 1 : at + 1 + seq_length])
            found[tuple(ids[at : at + len(labels)]), labels] += 1
    return found


@settings(max_examples=25, deadline=None)
@given(
    documents=st.integers(1, 30),
    seed=st.integers(0, 5),
    seq_length=st.integers(2, 40),
    window=st.integers(1, 40),
    global_batch=st.integers(4, 9),
    micro_batch=st.integers(1, 3),
    packing=st.booleans(),
    shuffle=st.booleans(),
    world=st.integers(1, 4),
)
def test_every_token_once_an_epoch_on_any_number_of_ranks(
    tmp_path_factory: pytest.TempPathFactory,
    documents: int,
    seed: int,
    world: int,
    global_batch: int,
    micro_batch: int,
    **more: Any,
) -> None:
    path = write_texts(tmp_path_factory.mktemp("data") / "a.jsonl", texts(documents, seed=seed))

    def steps(rank: int, world: int) -> list[Step]:
        loader = Loader(
            data(path, **more), tokenizer=tokenizer(), global_batch=global_batch, micro_batch=micro_batch, seed=seed,
            rank=rank, world=world, epochs=2,
        )  # fmt: skip
        found = list(loader)
        assert len(found) == loader.count()
        loader.close()
        return found

    spread = together([steps(rank, world) for rank in range(world)])
    assert spread == together([steps(0, 1)])
    total = sum((pieces for pieces, *_ in spread), Counter[Seen]())
    assert total == Counter({piece: 2 * n for piece, n in expected(path, more["seq_length"]).items()})


def test_one_two_three_and_four_ranks(path: Path, make: Make) -> None:
    alone = together([list(make(path, epochs=2))])
    assert len(alone) > 10
    for world in (2, 3, 4):
        assert together([list(make(path, rank=rank, world=world, epochs=2)) for rank in range(world)]) == alone
    for micro_batch in (2, 4):
        assert together([list(make(path, epochs=2, micro_batch=micro_batch))]) == alone


def test_rows_belong_to_their_step(path: Path, make: Make) -> None:
    """Row k of the order to step k // global_batch: a batch twice as large holds the rows of two steps."""
    small, large = together([list(make(path))]), together([list(make(path, global_batch=8))])
    pairs = [a[0] + b[0] for a, b in zip(small[::2], [*small[1::2], (Counter[Seen](), 0, 0, 0)], strict=False)]
    assert [step[0] for step in large] == pairs[: len(large)]


@pytest.mark.parametrize("kept", [True, False])
def test_going_on_after_any_step(path: Path, make: Make, monkeypatch: pytest.MonkeyPatch, kept: bool) -> None:
    if not kept:
        monkeypatch.setattr(rows_module, "KEPT_BYTES", 0)
    loader = make(path, epochs=2, micro_batch=2)
    states, whole = [loader.state_dict()], []
    for step in loader:
        whole.append(step)
        states.append(loader.state_dict())
    assert len(whole) == loader.count()
    for number, state in enumerate(states):
        other = make(path, epochs=2, micro_batch=2)
        other.load_state_dict(json.loads(json.dumps(state)))
        assert same(list(other), whole[number:])
    assert all(len(json.dumps(state)) < 700 for state in states)


def test_going_on_with_other_ranks_and_batches(path: Path, make: Make) -> None:
    first = make(path, epochs=2)
    whole = together([list(make(path, epochs=2))])
    list(islice(first, 5))
    state = first.state_dict()
    for world in (1, 2, 3):
        ranks = [make(path, rank=rank, world=world, epochs=2, micro_batch=3) for rank in range(world)]
        for rank in ranks:
            rank.load_state_dict(state)
        assert together([list(rank) for rank in ranks]) == whole[5:]
    other = make(path, epochs=2, global_batch=12)
    other.load_state_dict(state)
    rest = sum((pieces for pieces, *_ in together([list(other)])), Counter[Seen]())
    assert rest == sum((pieces for pieces, *_ in whole[5:]), Counter[Seen]())


def test_the_state_is_of_what_was_handed_out(path: Path, make: Make) -> None:
    """However much is prepared already."""
    loader = make(path, epochs=2)
    fresh = loader.state_dict()
    loader.start()
    assert loader.state_dict() == fresh
    whole = list(make(path, epochs=2))
    first = list(islice(loader, 3))
    loader.close()
    assert same(first + list(loader), whole)


def test_counting_after_the_start(path: Path, make: Make) -> None:
    loader = make(path, epochs=2)
    first = list(islice(loader, 2))
    assert loader.count() == len(list(make(path, epochs=2)))
    assert same(first + list(loader), list(make(path, epochs=2)))


def test_memory_holds_a_few_windows(tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of files that are not small: the one in use, the next, and the one after that in the making."""
    made: list[weakref.ref[Any]] = []

    class Watched(rows_module.Row):
        __slots__ = ("__weakref__",)

        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            made.append(weakref.ref(self))

    monkeypatch.setattr(rows_module, "Row", Watched)
    monkeypatch.setattr(rows_module, "KEPT_BYTES", 0)
    loader = make(write_texts(tmp_path / "a.jsonl", ["the data"] * 1000), packing=False, window=20)
    most = 0
    for _ in loader:
        most = max(most, sum(each() is not None for each in list(made)))
    assert len(made) == 1000
    assert 20 <= most <= 4 * 20 + 4 * 4


def test_ranks_with_other_data_or_settings_can_be_told_apart(path: Path, tmp_path: Path, make: Make) -> None:
    assert make(path).identity == make(path, rank=1, world=2, global_batch=8).identity
    other = write_texts(tmp_path / path.name, ["x"])
    assert len({make(path).identity, make(other).identity, make(path, seq_length=16).identity}) == 3


def test_counting_is_kept_in_the_state(path: Path, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = make(path, epochs=3)
    count = loader.count()
    assert count == len(list(loader)) > 10
    other = make(path, epochs=3)
    other.load_state_dict(loader.state_dict())
    monkeypatch.setattr(rows_module.Rows, "count", None)
    assert other.count() == count
    told = make(path, epochs=3)
    told.epoch_rows = loader.epoch_rows
    assert told.count() == count


def test_more_epochs_after_the_last(path: Path, make: Make) -> None:
    loader = make(path, epochs=1)
    list(loader)
    assert list(loader) == []
    other = make(path, epochs=2)
    other.load_state_dict(loader.state_dict())
    rest = list(other)
    assert {step.epoch for step in rest} == {1}
    assert sum(step.tokens for step in rest) == sum(step.tokens for step in make(path))


def test_without_end(tmp_path: Path, make: Make) -> None:
    loader = make(write_texts(tmp_path / "a.jsonl", texts(3)), epochs=0)
    epochs = [step.epoch for step in islice(loader, 200)]
    assert epochs == sorted(epochs)
    assert epochs[-1] > 20
    with pytest.raises(ValueError, match="do not end"):
        loader.count()


def test_the_last_step_has_the_rows_that_are_left(tmp_path: Path, make: Make) -> None:
    path = write_texts(tmp_path / "a.jsonl", ["the data"] * 5)
    ranks = [list(make(path, rank=rank, world=4, packing=False)) for rank in range(4)]
    steps = together(ranks)
    assert [sum(pieces.values()) for pieces, *_ in steps] == [4, 1]
    last = [rank[1].batches for rank in ranks]
    assert [len(batches) for batches in last] == [1, 1, 1, 1]
    assert sorted(batch.input_ids.numel() > 0 for (batch,) in last) == [False, False, False, True]


def test_a_batch_that_ranks_cannot_share_evenly(path: Path, make: Make) -> None:
    ranks = [list(make(path, rank=rank, world=3, global_batch=8, micro_batch=2, packing=False)) for rank in range(3)]
    assert together(ranks) == together([list(make(path, global_batch=8, packing=False))])
    assert {len(rank[0].batches) for rank in ranks} == {2}


def test_more_ranks_than_rows(path: Path, make: Make) -> None:
    with pytest.raises(TrainError, match="5 ranks share the 4 rows of a step: 1 would have none") as caught:
        make(path, world=5)
    assert caught.value.code is Code.WORLD_SIZE
    assert "train.global_batch to 5" in caught.value.fix


def test_chats(tmp_path: Path, make: Make) -> None:
    talk = chat("the data", "in order", "x", "y")
    path = write(tmp_path / "a.jsonl", [{"messages": talk}, {"messages": chat("no answer")}])
    log: list[str] = []
    (step,) = list(make(path, template=CHATML, seq_length=200, log=log.append))
    ((ids, labels),) = [piece for batch in step.batches for piece in seen(batch)]
    made = tokenizer(CHATML)
    whole = made.apply_chat_template(talk)["input_ids"]
    assert list(ids) == whole[: len(ids)]
    assert [label for label in labels if label != IGNORE] == made.encode("in order<|im_end|>y<|im_end|>")
    assert all(label in (IGNORE, whole[at + 1]) for at, label in enumerate(labels))
    assert step.targets < step.tokens == len(ids)
    assert len(log) == 1


def test_a_bad_line_comes_to_the_consumer(tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the steps of the windows before it."""
    monkeypatch.setattr(documents_module, "_TOGETHER", 4)
    path = write_texts(tmp_path / "a.jsonl", texts(20))
    with path.open("a") as file:
        file.write("{\n")
    loader = make(path, global_batch=2)
    got: list[Step] = []
    with pytest.raises(TrainError, match=r"a\.jsonl:21: is not JSON"):
        got.extend(loader)
    assert same(got, list(islice(make(path, global_batch=2), len(got))))
    assert len(got) > 3
    loader.close()
    with pytest.raises(TrainError, match=r"a\.jsonl:21: is not JSON"):
        make(path).count()


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ({"seq_length": 33}, "data.seq_length has changed: 33 now, 32 in the checkpoint"),
        ({"packing": False}, "data.packing"),
        ({"shuffle": False}, "data.shuffle"),
        ({"window": 9}, "data.window"),
        ({"seed": 1}, "train.seed"),
    ],
)
def test_other_settings_are_refused(path: Path, make: Make, changed: dict[str, Any], names: str) -> None:
    state = make(path).state_dict()
    with pytest.raises(TrainError, match=names) as caught:
        make(path, **changed).load_state_dict(state)
    assert caught.value.code is Code.CONFIG


def test_another_template_or_tokenizer_is_refused(tmp_path: Path, make: Make) -> None:
    path = write(tmp_path / "a.jsonl", [{"messages": chat("a", "b"), "body": "x"}])
    state = make(path, template=CHATML).state_dict()
    with pytest.raises(TrainError, match="the chat template has changed; its place"):
        make(path, template=CHATML + " ").load_state_dict(state)
    with pytest.raises(TrainError, match=r"data\.learn has changed: all now, assistant in"):
        make(path, template=CHATML, learn="all").load_state_dict(state)
    with pytest.raises(TrainError, match=r"data\.format has changed: text now, chat in"):
        make(path, text_field="body", format="text").load_state_dict(state)
    state["order"]["the tokenizer"] = "another"
    with pytest.raises(TrainError, match="the tokenizer has changed"):
        make(path, template=CHATML).load_state_dict(state)


def test_other_data_are_refused(path: Path, tmp_path: Path, make: Make) -> None:
    state = make(path).state_dict()
    moved = tmp_path / "elsewhere" / path.name
    moved.parent.mkdir()
    moved.write_bytes(path.read_bytes())
    make(moved).load_state_dict(state)
    with moved.open("a") as file:
        file.write('{"text": "x"}\n')
    with pytest.raises(TrainError, match="not those of the checkpoint") as caught:
        make(moved).load_state_dict(state)
    assert caught.value.code is Code.BAD_CHECKPOINT
    state["version"] = 0
    with pytest.raises(TrainError, match="another version"):
        make(path).load_state_dict(state)
