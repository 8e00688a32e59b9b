# Adds an entity an iteration; the second of the first case fails, the second of the second can be held, to be killed in it.
at=$JUMAR_CASE_NUM.$JUMAR_ITERATION
[ "$at" = 1.2 ] && { echo "no idea" >&2; exit 4; }
if [ "$at" = 2.2 ] && [ -e ../hold-step ]; then
  echo $$ > ../held
  while [ -e ../hold-step ]; do sleep 0.05; done
  exit 1
fi
echo "{\"entities\": [{\"id\": \"e$at\"}], \"relations\": []}" > "$JUMAR_OUT_CKG"
echo "{\"added_entities\": [\"e$at\"], \"added_relations\": []}" > "$JUMAR_OUT_CKG_DIFF"
printf 'fix %s\n' "$at" > "$JUMAR_OUT_FIX_DB"
{ cat "${JUMAR_IN_NOTES:-/dev/null}"; echo "seen $at"; } > "$JUMAR_OUT_NOTES"
echo "{\"token_cost_usd\": 0.01, \"tokens_used\": 10}" > "$JUMAR_USAGE_FILE"
