"""What PyTorchJobs a live cluster holds, who creates them, what can move, and what the target lacks."""
