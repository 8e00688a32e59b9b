"""What knows no subject; and the version of jumar, in one place."""

__version__ = "0.1.0"
