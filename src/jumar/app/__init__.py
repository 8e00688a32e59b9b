"""The composition root: from configuration to objects. The only importer of adapters."""
