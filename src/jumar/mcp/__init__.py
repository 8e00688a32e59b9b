"""The MCP server: an agent records what it does, chooses the best of it, or hands the whole loop over."""
