"""The local page: reads the subjects' reports, acts through :mod:`jumar.app.decide`, never through the engine."""
