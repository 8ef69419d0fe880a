"""A launcher for training pods: torchrun's options and environment, faster starts, calmer restarts.

`python -m trainjob.launch [torchrun options] script.py [arguments]`, or `trainjob launch ...`, in the
place of `torchrun`. It drives torch's own elastic agent (torch 2.13, torch/distributed/elastic) and
changes what costs time or jobs in a pod:

- torch is imported once. The agent forks the workers instead of starting interpreters that import it
  again, at the start and at every restart.
- A worker that dies is restarted in its pod, on all nodes together, with a fresh store each time.
  torchrun's static rendezvous, the one that Trainer's variables select, cannot do that reliably.
- A program that fails the same way twice is a bug: no more restarts, exit code 70.
- A program that writes the step up to which its work is saved into the file TRAINJOB_PROGRESS gets its
  restarts back with every progress, and with TRAINJOB_STALL_TIMEOUT (seconds) a watchdog.
- The last words of the pod are the traceback of the rank that failed first, and its exit code.

Nothing here is imported by the rest of the package, and torch is imported only when it runs.
"""
