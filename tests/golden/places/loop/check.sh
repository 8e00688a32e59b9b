# Passes unless it is the fifth; of the second it can be held, to be killed while a snapshot waits to be scored.
if grep -q 'pass 2' text.md && [ -e ../hold-check ]; then
  echo $$ > ../held
  while [ -e ../hold-check ]; do sleep 0.05; done
  exit 1
fi
! grep 'pass 5' text.md
