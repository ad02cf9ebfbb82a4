"""The memories of a run: bytes on chip and in HBM, and which of them are initialised."""
