# Scores by a table: what an expert would have said of each iteration.
case $JUMAR_CASE_NUM.$JUMAR_ITERATION in
  1.1) accuracy=6 overall=6.5 ;;
  1.3) accuracy=7 overall=6.0 ;;
  2.1) accuracy=8 overall=7.5 ;;
  2.2) accuracy=5 overall=5.0 ;;
  *) accuracy=8 overall=7.5 ;;
esac
cat > "$JUMAR_OUT_JUDGE" <<END
{"composite_score": $overall, "usage": {"cost": 0.$JUMAR_ITERATION},
 "dimensions": [{"name": "Root Cause Accuracy", "score": $accuracy, "reasoning": "as the table says", "improvements": ["name the unit"]},
                {"name": "Causal Chain Completeness", "score": $overall}]}
END
