"""The program representation shared by all stages: tensors, views, patterns, schedules."""
