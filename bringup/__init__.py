"""What is decided: typed, pure, no pyinfra, no network, no subprocess."""

__version__ = "0.1.0"
