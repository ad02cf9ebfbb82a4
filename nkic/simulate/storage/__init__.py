"""The memories of a run: bytes on chip and in HBM, which of them were written, who uses them."""
