"""What is read from a host: pyinfra facts, one subject a file. A fact never changes a host."""
