"""The demo's programs under the name that loops were recorded with: such a loop is resumed with ``-m jumar.app.demo.…``."""

from jumar import demo

__path__ = demo.__path__
