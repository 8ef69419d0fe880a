"""What can be seen of a run from outside, and what it hears from there.

reporter        all of the following for rank 0, put together from the settings
  meter         rates, MFU and the time that is left
  progress      lines in the log
  metrics       one JSON object a step in a file
  sinks         threads that keep slow and broken sinks away from the training
  tensorboard_sink, mlflow_sink
  trainer_status  progress in the TrainJob's own status
stop            SIGTERM
watchdog        ends a run that hangs
last_words      why a run ended: one line, exit code, traceback
versions        do all ranks run the same software with the same settings?
"""
