"""The third body of the kernel: it runs a fork of the world ahead. It promises nothing; nothing it finds is kept."""
