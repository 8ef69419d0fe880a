"""The same job under the v1 Training Operator and, migrated, under Trainer v2: what differs, and why."""
