# Each iteration and candidate writes stories of its own, and meddles with the check once: it is put back.
n=$JUMAR_ITERATION
id=$(( (n - 1) % 4 + 1 ))
criteria='"It ends with a file", "The file opens"'
[ $((n % 2)) = 1 ] && criteria="$criteria"', "An empty export says so"'
[ "$n" = 3 ] && echo "exit 0" > check.sh
{
  echo "{\"id\": \"export-$id\", \"title\": \"Add export $id\", \"description\": \"The user can keep what was counted.\", \"acceptance_criteria\": [$criteria]}"
  echo "{\"id\": \"list-$id\", \"title\": \"As a user I want a list of exports so that I find them\", \"description\": \"A list, the newest first.\", \"acceptance_criteria\": [$criteria]}"
} > stories.jsonl
echo "{\"cost\": 0.0$n, \"tokens\": $n}"
