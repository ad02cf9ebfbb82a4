"""The program between the stages: tensors, views, access patterns, instructions, schedules."""
