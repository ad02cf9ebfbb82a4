"""The program between the stages: tensors, views, instructions, dependences, streams."""
