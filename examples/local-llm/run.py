"""One small model writes answers, and judges them: real tokens, real latency, real nonsense. No network, no key.

python run.py [--json]        starts serve.py, asks through the ordinary client, and ends it
"""

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import openai

from jumar.judging import JudgeRubric, ReplyCache, evaluate_expensive, make_judge

HERE = Path(__file__).parent
QUESTIONS = ("Name three colours.", "How do I boil an egg?")
RUBRIC = JudgeRubric(
    task="Judge how well the text answers the prompt.",
    criteria=("It answers what was asked.", "It is right."),
    anchors={"1": "useless", "5": "right and complete"},
)


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """Start the server, give its address with the model's name, end it."""
    server = subprocess.Popen(
        [sys.executable, str(HERE / "serve.py")], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        address = server.stdout.readline().strip() if server.stdout else ""
        if not address:
            sys.exit("the model does not start; `python serve.py` says why")
        yield address
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        if server.stdout:
            server.stdout.close()


def answers(address: str) -> Iterator[dict[str, str]]:
    """The generator: an answer to each question."""
    base, _, model = address.partition("#")
    with openai.OpenAI(base_url=base, api_key="none") as client:
        for number, question in enumerate(QUESTIONS, start=1):
            said = client.chat.completions.create(
                model=model, messages=[{"role": "user", "content": question}], max_tokens=16, temperature=0, seed=1
            )
            yield {"id": f"answer-{number}", "prompt": question, "text": said.choices[0].message.content or ""}


def judged(address: str, items: list[dict[str, str]], cache: ReplyCache, *, explain: bool, max_tokens: int) -> dict[str, object]:
    """The judge. A fifth of failures is usually an error; of this model everything is taken as it comes."""
    judge = make_judge(address, max_tokens=max_tokens)
    return evaluate_expensive(
        items, judge=judge, rubric=RUBRIC, cache=cache, explain=explain, concurrency=1, timeout=240, max_unscored=1.0
    )


def main() -> None:
    with serving() as address, tempfile.TemporaryDirectory() as directory:
        cache = ReplyCache(directory)
        items = list(answers(address))
        scores = judged(address, items, cache, explain=False, max_tokens=40)
        again = judged(address, items, cache, explain=False, max_tokens=40)
        # with room for 20 tokens the reasons are cut off: what comes back is no JSON, and the item is unscored, not zero
        cut = judged(address, items[:1], cache, explain=True, max_tokens=20)
    if "--json" in sys.argv:
        print(json.dumps({"items": items, "scores": scores, "again": again, "cut": cut}))
        return
    for item in items:
        print(f"{item['prompt']}\n  {item['text']!r}")
    for one in (scores, again, cut):
        print(json.dumps({key: value for key, value in one.items() if key != "individual_scores"}, indent=1))


if __name__ == "__main__":
    main()
