#!/bin/sh
# Runs jumar, and says how to get it where it is not installed. Hooks of sessions without /jumar:loop are not bothered with that.
if command -v jumar >/dev/null 2>&1; then
  exec jumar "$@"
fi
missing="jumar is not on PATH: pip install 'jumar[mcp]', then start this session anew"
if [ "$1" != hook ]; then
  echo "$missing" >&2
  exit 1
fi
if grep -q '"prompt": *"/jumar:'; then
  printf '{"decision":"block","reason":"%s"}\n' "$missing"
fi
