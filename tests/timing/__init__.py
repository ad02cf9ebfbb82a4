"""Compare simulated time with published times: `make timing`."""
