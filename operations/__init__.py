"""What changes a host: pyinfra operations, one subject a file. Each asks bringup.steps what is needed, and does only that."""
