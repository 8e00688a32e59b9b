grep -q empty stories.jsonl && echo 0.8$JUMAR_REPEAT || echo 0.7$JUMAR_REPEAT
