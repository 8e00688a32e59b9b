# Prints what pytest prints: partial credit, and tests that are told apart.
n=$(wc -l < stories.jsonl)
echo "tests/test_stories.py::test_there PASSED"
if [ "$n" -ge 2 ]; then echo "tests/test_stories.py::test_two PASSED"; else echo "tests/test_stories.py::test_two FAILED"; fi
if grep -q 'empty' stories.jsonl; then
  echo "tests/test_stories.py::test_empty PASSED"; echo "=== 3 passed in 0.01s ==="
else
  echo "tests/test_stories.py::test_empty FAILED"; echo "=== 1 failed, 2 passed in 0.01s ==="; exit 1
fi
