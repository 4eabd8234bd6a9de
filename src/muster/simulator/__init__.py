"""The second body of the kernel: virtual time, simulated nodes, seeded load and faults."""
