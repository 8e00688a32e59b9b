{ echo "# Diagnosis"; cat "$1"; echo "by iteration $JUMAR_ITERATION"; } > "$2"
