"""Statements that are others today: what a kernel returns, what an assignment moves by DMA."""
