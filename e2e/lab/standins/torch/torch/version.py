__version__ = "2.11.0+standin"
cuda = "13.0"
git_version = "stand-in: simulated GPU"
