# A deterministic generator: each iteration has its score; the third fails; the fourth can be held, to be killed in it.
n=$JUMAR_ITERATION
if [ "$n" = 4 ] && [ -e ../hold-agent ]; then
  echo half > text.md
  echo $$ > ../held
  while [ -e ../hold-agent ]; do sleep 0.05; done
  exit 1
fi
case $n in
  1) score=0.60 ;;
  2) score=0.90 ;;
  3) echo "no idea" >&2; exit 3 ;;
  4) score=0.70 ;;
  *) score=0.65 ;;
esac
echo "$score" > score.txt
printf 'pass %s\n\nSome words of a text that is made up.\n' "$n" > text.md
[ "$n" = 4 ] && echo "only here" > extra.md
echo "iteration $n says $score"
echo "{\"token_cost_usd\": 0.0$n, \"tokens_used\": ${n}00, \"input_tokens\": ${n}0, \"output_tokens\": $n, \"model\": \"made-up\"}" > "$JUMAR_USAGE_FILE"
