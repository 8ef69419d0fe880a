"""Documents to micro-batches. The order of rows is the same for any number of ranks."""
