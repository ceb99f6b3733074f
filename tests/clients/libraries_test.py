#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The Holdfast authors
"""libraries_test.py FOLDER [TEST…]: the callbacks of the Python package in FOLDER, called by the real libraries.

Run it with `./dev python`, which makes the Python environment. A test whose library is missing or does not
load is skipped, with the reason; exit code 77 if all are.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

FOLDER = tempfile.TemporaryDirectory()
PATH = os.path.join(FOLDER.name, "agent.sock")
SOURCE = os.path.abspath(sys.argv[1])
os.environ.update(HOLDFAST_AGENT_SOCKET=PATH, CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1", USE_LIBUV="0",
                  OMP_NUM_THREADS="1", DS_ACCELERATOR="cpu", TOKENIZERS_PARALLELISM="false", PYTHONWARNINGS="ignore",
                  HOME=FOLDER.name)
for name in ("HOLDFAST_REPORT_SOCKET", "RANK", "WORLD_SIZE", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
             "TORCHELASTIC_RESTART_COUNT"):
    os.environ.pop(name, None)
sys.path.insert(0, SOURCE)
warnings.simplefilter("ignore")
SAMPLES = 8


class Listener:
    """Receives what report() sends. A socket holds about ten datagrams, so a thread reads them at once."""

    END = b"end"

    def __enter__(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(PATH)
        self.lines = []
        self.thread = threading.Thread(target=self.receive)
        self.thread.start()
        return self

    def receive(self):
        while True:
            data = self.socket.recv(1024)
            if data == self.END:
                return
            self.lines.append(dict(pair.split("=", 1) for pair in data.decode().split(" ")[1:]))

    def __exit__(self, *error):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
            end.connect(PATH)
            end.send(self.END)  # it waits until there is room
        self.thread.join()
        self.socket.close()
        os.unlink(PATH)

    def steps(self):
        """Return each report as "step/total", with "other" for a phase other than training."""
        return [f"{line['step']}/{line.get('total')}" + (" other" if line.get("phase") == "other" else "")
                for line in self.lines]

    def losses(self):
        return [line.get("loss") for line in self.lines]


def load(module):
    """Import a module of the package; a library that is missing or does not load skips the test."""
    try:
        return __import__("holdfast_report." + module, fromlist=["*"])
    except Exception as error:  # a library may fail with more than ImportError
        raise unittest.SkipTest(f"holdfast_report.{module} cannot be loaded: {type(error).__name__}: {error}")


def load_library(name):
    try:
        return __import__(name, fromlist=["*"])
    except Exception as error:
        raise unittest.SkipTest(f"{name} cannot be loaded: {type(error).__name__}: {error}")


@contextlib.contextmanager
def in_new_folder():
    with tempfile.TemporaryDirectory() as folder:
        before = os.getcwd()
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(before)


class Transformers(unittest.TestCase):
    def train(self, folder, resume=False, **arguments):
        ours, torch, library = load("transformers"), load_library("torch"), load_library("transformers")
        library.logging.set_verbosity_error()
        torch.manual_seed(1)

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(4, 1)

            def forward(self, x, labels):
                predicted = self.layer(x).squeeze(1)
                return {"loss": torch.nn.functional.mse_loss(predicted, labels), "logits": predicted}

        data = [{"x": torch.randn(4), "labels": torch.tensor(1.0)} for _ in range(SAMPLES)]
        arguments = library.TrainingArguments(output_dir=folder, per_device_train_batch_size=2, use_cpu=True,
                                              report_to=[], disable_tqdm=True, **arguments)
        trainer = library.Trainer(model=Model(), args=arguments, train_dataset=data, eval_dataset=data,
                                  callbacks=[ours.HoldfastCallback()])
        trainer.remove_callback(library.PrinterCallback)
        with Listener() as listener:
            trainer.train(resume_from_checkpoint=resume)
            trainer.evaluate()  # after the training: it is no phase of it
        return listener, trainer

    def test_each_step_with_the_logged_loss(self):
        with in_new_folder() as folder:
            listener, trainer = self.train(folder, max_steps=4, logging_steps=2, save_strategy="no")
        # A step is reported again as soon as its loss is known, and the last step again at the end.
        self.assertEqual(listener.steps(), ["1/4", "2/4", "2/4", "3/4", "4/4", "4/4", "4/4"])
        logged = [f"{line['loss']:.6g}" for line in trainer.state.log_history if "loss" in line]
        self.assertEqual(listener.losses(), [None, None, logged[0], logged[0], logged[0], logged[1], logged[1]])

    def test_evaluation_and_checkpoints_are_another_phase(self):
        with in_new_folder() as folder:
            listener, _ = self.train(folder, max_steps=4, logging_strategy="no", eval_strategy="steps", eval_steps=2,
                                     save_strategy="steps", save_steps=2)
            # Step 2: before the evaluation, between it and the checkpoint, and after the checkpoint.
            self.assertEqual(listener.steps(), ["1/4", "2/4 other", "2/4 other", "2/4",
                                                "3/4", "4/4 other", "4/4 other", "4/4", "4/4"])
            listener, _ = self.train(folder, resume=os.path.join(folder, "checkpoint-2"), max_steps=4,
                                     logging_strategy="no", save_strategy="no")
            self.assertEqual(listener.steps(), ["3/4", "4/4", "4/4"])

    def test_evaluation_at_the_end_of_an_epoch(self):
        with in_new_folder() as folder:
            listener, _ = self.train(folder, num_train_epochs=2, gradient_accumulation_steps=2, logging_strategy="no",
                                     eval_strategy="epoch", save_strategy="no")
        self.assertEqual([s for s in listener.steps() if "other" in s], ["2/4 other", "4/4 other"])
        self.assertEqual(listener.steps()[:4], ["1/4", "2/4", "2/4 other", "2/4"])


class Lightning:
    """The tests of both Lightning packages; PACKAGE is the package that a program imports, MODULE the module of holdfast_report."""

    def train(self, stop_at=None, **arguments):
        ours, torch, library = load(self.MODULE), load_library("torch"), load_library(self.PACKAGE)
        torch.manual_seed(1)

        class Model(library.LightningModule):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(4, 1)
                self.seen = []

            def training_step(self, batch, index):
                loss = self.layer(batch).pow(2).mean()
                self.seen.append(f"{loss.item():.6g}")
                self.trainer.should_stop = len(self.seen) == stop_at
                return loss

            def validation_step(self, batch, index):
                self.log("val_loss", self.layer(batch).pow(2).mean())

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.01)

        loader = torch.utils.data.DataLoader(torch.randn(SAMPLES, 4), batch_size=2)
        trainer = library.Trainer(callbacks=[ours.HoldfastCallback()], accelerator="cpu", devices=1, logger=False,
                                  enable_progress_bar=False, enable_model_summary=False, **arguments)
        model = Model()
        with Listener() as listener:
            trainer.fit(model, loader, loader)
        return listener, model

    def test_each_step_with_its_loss(self):
        with in_new_folder():
            listener, model = self.train(max_steps=4, limit_val_batches=0, enable_checkpointing=False)
        # The last step is reported again at the end.
        self.assertEqual(listener.steps(), ["1/4", "2/4", "3/4", "4/4", "4/4"])
        self.assertEqual(listener.losses(), model.seen + model.seen[-1:])

    def test_accumulated_gradients_are_one_step(self):
        with in_new_folder():
            listener, model = self.train(max_epochs=2, accumulate_grad_batches=2, limit_val_batches=0,
                                         enable_checkpointing=False)
        self.assertEqual(listener.steps(), ["1/4", "2/4", "3/4", "4/4", "4/4"])
        self.assertEqual(len(model.seen), 8)

    def test_validation_and_checkpoints_are_another_phase(self):
        with in_new_folder():
            listener, _ = self.train(max_epochs=2, limit_train_batches=2)
        # The check of the validation before the first step is no report: there is no step yet.
        phases = listener.steps()
        self.assertEqual(phases[:4], ["1/4", "2/4", "2/4 other", "2/4"])
        after = phases.index("3/4")
        self.assertEqual(phases[4:after], ["2/4 other"])  # the checkpoint of the first epoch
        self.assertEqual(phases[after:], ["3/4", "4/4", "4/4 other", "4/4", "4/4 other", "4/4"])

    def test_training_without_an_end_has_no_total(self):
        with in_new_folder():
            listener, _ = self.train(stop_at=2, max_epochs=-1, max_steps=-1, limit_val_batches=0,
                                     enable_checkpointing=False)
        self.assertEqual(listener.steps(), ["1/None", "2/None", "2/None"])


class LightningPytorch(Lightning, unittest.TestCase):
    PACKAGE, MODULE = "lightning.pytorch", "lightning"


class PytorchLightning(Lightning, unittest.TestCase):
    PACKAGE, MODULE = "pytorch_lightning", "pytorch_lightning"


# Two ranks over gloo. The clock is the test's: rank 1 works a quarter of a second on each step, rank 0 an eighth, and
# then waits an eighth in the collective.
DDP = """
import sys, time
sys.path.insert(0, sys.argv[1])
import torch, torch.distributed
from holdfast_report.torch import watch
rank = int(sys.argv[3])
now = 1000.0
time.monotonic = lambda: now
def reduce(state, bucket):
    global now
    now += 0.125 if rank == 0 else 0
    future = torch.distributed.all_reduce(bucket.buffer(), async_op=True).get_future()
    return future.then(lambda done: done.value()[0])
torch.set_num_threads(1)
torch.distributed.init_process_group("gloo", init_method=sys.argv[2], rank=rank, world_size=2)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
model.register_comm_hook(None, reduce)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
watched = watch(optimizer, total=6, model=model)
for step in range(6):
    loss = model(torch.ones(2, 4)).pow(2).mean()
    optimizer.zero_grad()
    now += 0.125 if rank == 0 else 0.25
    loss.backward()
    optimizer.step()
    if step == 3:
        with watched.other():
            now += 60
torch.distributed.barrier()
"""


class Torch(unittest.TestCase):
    def setUp(self):
        self.ours, self.torch = load("torch"), load_library("torch")
        self.model = self.torch.nn.Linear(4, 1)
        self.optimizer = self.torch.optim.SGD(self.model.parameters(), lr=0.01)

    def step(self, optimizer=None):
        optimizer = optimizer or self.optimizer
        optimizer.zero_grad()
        self.model(self.torch.ones(2, 4)).pow(2).mean().backward()
        optimizer.step()

    def test_each_step_of_the_optimizer(self):
        with Listener() as listener:
            watched = self.ours.watch(self.optimizer, total=4, done=2)
            scheduler = self.torch.optim.lr_scheduler.StepLR(self.optimizer, 1)
            self.step()
            scheduler.step()
            watched.loss = 0.5
            self.step()
            watched.remove()
            self.step()
        self.assertEqual(listener.steps(), ["3/4", "4/4"])
        self.assertEqual(listener.losses(), [None, "0.5"])
        self.assertEqual([line for line in listener.lines if "own_us" in line or "rank" in line], [])

    def test_another_phase(self):
        with Listener() as listener:
            watched = self.ours.watch(self.optimizer)
            with watched.other():  # before the first step: there is none to report
                pass
            self.step()
            with self.assertRaises(KeyError):
                with watched.other():
                    raise KeyError
            self.step()
        self.assertEqual(listener.steps(), ["1/None", "1/None other", "1/None", "2/None"])

    def test_a_step_that_computes_gradients_itself_has_no_own_time(self):
        optimizer = self.torch.optim.LBFGS(self.model.parameters(), max_iter=1)

        def closure():
            optimizer.zero_grad()
            loss = self.model(self.torch.ones(2, 4)).pow(2).mean()
            loss.backward()
            return loss

        with Listener() as listener:
            self.ours.watch(optimizer, total=3, model=self.model)
            for _ in range(3):
                optimizer.step(closure)
        self.assertEqual(listener.steps(), ["1/3", "2/3", "3/3"])
        self.assertEqual([line for line in listener.lines if "own_us" in line], [])

    def test_the_slow_rank_has_the_longer_own_time(self):
        can_measure = hasattr(self.torch.autograd.graph, "register_multi_grad_hook")
        with in_new_folder() as folder, Listener() as listener:
            ranks = [subprocess.Popen([sys.executable, "-c", DDP, SOURCE, "file://" + folder + "/store", str(rank)])
                     for rank in range(2)]
            codes = [rank.wait() for rank in ranks]
        self.assertEqual(codes, [0, 0])
        times = {"0": ("125000", "125000"), "1": ("250000", "0")} if can_measure else {"0": (None,) * 2, "1": (None,) * 2}
        for rank, expected in times.items():
            lines = [line for line in listener.lines if line["rank"] == rank]
            self.assertEqual([line["step"] for line in lines], ["1", "2", "3", "4", "4", "4", "5", "6"])
            # The first step has no time before it, and step 5 would count the time of the other phase.
            self.assertEqual([(line.get("own_us"), line.get("wait_us")) for line in lines],
                             [(None, None), expected, expected, expected, (None, None), (None, None), (None, None), expected])
        if not can_measure:
            print("this PyTorch has no register_multi_grad_hook: own_ms is not measured", file=sys.stderr)


class Accelerate(Torch):
    """The tests of OptimizerTest with an optimizer that Accelerate has prepared."""

    test_a_step_that_computes_gradients_itself_has_no_own_time = None
    test_the_slow_rank_has_the_longer_own_time = None

    def setUp(self):
        super().setUp()
        library = load_library("accelerate")
        self.accelerator = library.Accelerator(cpu=True, gradient_accumulation_steps=2)
        self.model, self.optimizer = self.accelerator.prepare(self.model, self.optimizer)

    def tearDown(self):
        library = load_library("accelerate")
        library.state.AcceleratorState._reset_state(True)

    def step(self, optimizer=None):
        for _ in range(2):  # accumulated: one step
            with self.accelerator.accumulate(self.model):
                self.accelerator.backward(self.model(self.torch.ones(2, 4)).pow(2).mean())
                self.optimizer.step()
                self.optimizer.zero_grad()


class DeepSpeed(unittest.TestCase):
    def test_the_steps_of_the_engine(self):
        for tool in ("ninja", "g++"):
            if not shutil.which(tool):
                raise unittest.SkipTest(f"DeepSpeed compiles an operation when it starts, and {tool} is missing")
        library, torch = load_library("deepspeed"), load_library("torch")
        from holdfast_report import report

        os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="29671")
        self.addCleanup(lambda: [os.environ.pop(name) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE")])
        model = torch.nn.Linear(4, 1)
        engine, *_ = library.initialize(
            model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
            config={"train_batch_size": 4, "train_micro_batch_size_per_gpu": 2}, dist_init_required=True)
        self.addCleanup(torch.distributed.destroy_process_group)
        with Listener() as listener:
            done = 0
            for _ in range(4):
                loss = engine(torch.ones(2, 4)).pow(2).mean()
                engine.backward(loss)
                engine.step()
                if engine.global_steps > done:
                    done = engine.global_steps
                    report(done, total=2)
        self.assertEqual(listener.steps(), ["1/2", "2/2"])
        self.assertEqual({line["rank"] for line in listener.lines}, {"0"})


class Result(unittest.TextTestResult):
    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        print(f"SKIPPED: {test.id()}: {reason}", file=sys.stderr)


if __name__ == "__main__":
    done = unittest.main(argv=[sys.argv[0], *sys.argv[2:]], exit=False,
                         testRunner=unittest.TextTestRunner(resultclass=Result, verbosity=2)).result
    if not done.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if len(done.skipped) == done.testsRun else 0)
