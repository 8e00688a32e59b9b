"""Every format by its published shape, in values made at random; and what is no secret stays.

No value stands here: each is made when the test runs, so that no scanner takes this file for a leak.
"""

from __future__ import annotations

import random
import re
import string
import sysconfig
from pathlib import Path

import pytest

from jumar.core.redaction import Redactor

LETTERS = {
    "a": string.ascii_letters + string.digits,
    "b": string.ascii_letters + string.digits + "+/",
    "c": string.ascii_letters,
    "d": string.digits,
    "h": "0123456789abcdef",
    "l": string.ascii_lowercase + string.digits,
    "u": string.ascii_uppercase + "234567",
    "w": string.ascii_letters + string.digits + "_-",
}
# {w22} is 22 of the letters w
TOKENS = {
    "1Password": "ops_eyJ{b260}",
    "Adafruit": "aio_{a28}{a8}",
    "Age": "AGE-SECRET-KEY-1{u58}",
    "Alibaba": "LTAI{a20}",
    "Anthropic": "sk-ant-api03-{w93}AA",
    "Artifactory": "AKCp{a69}",
    "Atlassian": "ATATT3{w186}",
    "AWS": "AKIA{u16}",
    "AWS, temporary": "ASIA{u16}",
    "AWS Bedrock": "ABSKQmVkcm9ja0FQSUtleS{b100}",
    "Azure, client secret": "{a3}8Q~{w34}",
    "Bitbucket": "ATBB{a32}",
    "Buildkite": "bkua_{h40}",
    "CircleCI": "CCIPAT_{a22}_{h40}",
    "Clojars": "CLOJARS_{l60}",
    "Contentful": "CFPAT-{w43}",
    "crates.io": "cio{a32}",
    "Databricks": "dapi{h32}",
    "DigitalOcean": "dop_v1_{h64}",
    "DigitalOcean, OAuth": "doo_v1_{h64}",
    "Discord, bot": "M{a23}.{w6}.{w27}",
    "Docker Hub": "dckr_pat_{w27}",
    "Doppler": "dp.pt.{a43}",
    "Duffel": "duffel_live_{w43}",
    "Dynatrace": "dt0c01.{u24}.{u64}",
    "EasyPost": "EZAK{a54}",
    "Facebook": "EAAM{a100}",
    "Figma": "figd_{w40}",
    "Fly.io": "fm2_{b120}",
    "GitHub, classic": "ghp_{a36}",
    "GitHub, OAuth": "gho_{a36}",
    "GitHub, server": "ghs_{a36}",
    "GitHub, fine-grained": "github_pat_{a22}_{a59}",
    "GitLab": "glpat-{w20}",
    "GitLab, deploy": "gldt-{w20}",
    "GitLab, runner": "glrt-{w20}",
    "Google, API key": "AIza{w35}",
    "Google, client secret": "GOCSPX-{w28}",
    "Google, OAuth": "ya29.{w120}",
    "Google, refresh": "1//0{w60}",
    "Grafana": "glsa_{a32}_{h8}",
    "Grafana Cloud": "glc_eyJ{b60}",
    "Groq": "gsk_{a52}",
    "Heroku": "HRKU-AA{w58}",
    "Hugging Face": "hf_{c34}",
    "JWT": "eyJ{a20}.eyJ{a40}.{w43}",
    "LangSmith": "lsv2_pt_{h32}_{h10}",
    "Linear": "lin_api_{a40}",
    "Mailchimp": "{h32}-us12",
    "Mailgun": "key-{h32}",
    "Netlify": "nfp_{a36}",
    "New Relic": "NRAK-{u27}",
    "Notion": "ntn_{d11}{a35}",
    "npm": "npm_{a36}",
    "NuGet": "oy2{l43}",
    "NVIDIA": "nvapi-{w64}",
    "OpenAI": "sk-proj-{w74}T3BlbkFJ{w74}",
    "OpenAI, older": "sk-{a20}T3BlbkFJ{a20}",
    "OpenRouter": "sk-or-v1-{h64}",
    "Perplexity": "pplx-{a48}",
    "Pinecone": "pcsk_{a6}_{a63}",
    "PlanetScale": "pscale_tkn_{w43}",
    "Postman": "PMAK-{h24}-{h34}",
    "Prefect": "pnu_{a36}",
    "Pulumi": "pul-{h40}",
    "PyPI": "pypi-AgEIcHlwaS5vcmc{w150}",
    "ReadMe": "rdme_{l70}",
    "Replicate": "r8_{a37}",
    "Resend": "re_{a8}_{a24}",
    "RubyGems": "rubygems_{h48}",
    "SendGrid": "SG.{w22}.{w43}",
    "Sendinblue": "xkeysib-{h64}-{a16}",
    "Sentry": "sntrys_eyJ{b120}_{b43}",
    "Shippo": "shippo_live_{h40}",
    "Shopify": "shpat_{h32}",
    "Shopify, shared secret": "shpss_{h32}",
    "Slack, app": "xapp-1-{u11}-{d13}-{h64}",
    "Slack, bot": "xoxb-{d12}-{d13}-{a24}",
    "Slack, user": "xoxp-{d12}-{d12}-{d12}-{h32}",
    "SonarQube": "squ_{h40}",
    "Square": "sq0atp-{w22}",
    "Stripe": "sk_live_{a24}",
    "Stripe, restricted": "rk_test_{a24}",
    "Stripe, webhook": "whsec_{a32}",
    "Supabase": "sbp_{h40}",
    "Tailscale": "tskey-auth-{a12}-{a32}",
    "Tavily": "tvly-{a32}",
    "Telegram": "{d9}:{w35}",
    "Terraform": "{a14}.atlasv1.{w67}",
    "Twilio": "SK{h32}",
    "Typeform": "tfp_{w59}",
    "Vault": "hvs.{w95}",
    "xAI": "xai-{a80}",
}
NAMES_OF_FILES = ("notes-{}.txt", "backup_{}.tar.gz", "dir/{}/file", "a.{}", "\\n{}", "%3D{}")
AROUND = (
    *("{}", "export X={}", 'the token "{}" was refused', '{{\\"x\\": \\"{}\\"}}', "https://example.com/?x={}&y=1"),
    *("see {}.", "({})", "\x1b[1;32m{}\x1b[0m", "é{}\n", *NAMES_OF_FILES),
)
# between the bars is the secret; ¦ keeps scanners of this file quiet
NAMED = (
    *("password=|{a6}{d4}|", "DB_PASSWORD: |{a10}{d2}|", "PGPASSWORD=|{c16}|", "password = '|{c12}|'", "passwd: |{a5}{d1}!{a5}|"),
    *("client_secret: |{a24}|", 'client_secret="|{c9}{d1}|"', "x-api-key: |{a32}|", "X-Api-Key: |{h32}|", "API_KEY=|{a20}|"),
    *("KEY=|{h32}|", "key: |{a32}|", "key: |{b40}=|", '"apiKey": "|{a40}|"', "api_key='|{h8}-{h4}-{h4}-{h4}-{h12}|'"),
    *("SECRET_KEY_PROD=|{a32}|", "AWS_SECRET_ACCESS_KEY=|{b40}|", "aws_secret_access_key = |{b40}|", "DD_API_KEY=|{h32}|"),
    *('"SecretAccessKey": "|{b40}|"', "access_token: |{a32}|", "Authorization: Bearer |{w40}|", "authorization: basic |{a12}|"),
    *("Authorization: |{a32}|", "bearer |{h40}|", "curl -u user:|{a4}{d2}| x", "curl --user me@x.org:|{c8}| https://x.org"),
    *(
        '["curl", "-u", "user:|{a8}|"]',
        "curl -uuser:|pass|",
        "curl -s -uuser:|{a8}| https://x.org",
        "curl -fsSu user:|{a8}| https://x.org",
        '["curl", "-uuser:|{a8}|", "https://x.org"]',
        "postgres:¦//app:|{a4}@{a3}#{a3}|@db/x",
        "redis:¦//:|{a12}|@cache:6379",
        "https:¦//|{a40}|@x.org",
    ),
    *("https:¦//user:|{c8}|@example.com/x", "https://hooks.slack.com/services/|T{u8}/B{u10}/{a24}|", "--token |{a24}|"),
    *(
        "https://discord.com/api/webhooks/{d18}/|{w68}|",
        "AccountKey=|{b86}==|;EndpointSuffix=x",
        "?sv=2022&sig=|{a40}%3D|",
        "&X-Amz-Signature=|{h64}|&x=1",
    ),
    *("https://a.webhook.office.com/|webhookb2/{h32}@{h32}/IncomingWebhook/{h32}/{h36}|", "--password |{a6}{d2}|"),
    *("login me password |{a6}{d2}|", "_auth=|{a32}|", '\\"password\\": \\"|{a6}{d2}|\\"', "<password>|{a6}{d2}|</password>"),
    *("config['api_key'] = '|{a24}|'", "password: str = '|{c12}|'", "passphrase=`|{c9}|`", "password=|{d8}|", 'key: "|{a24}|'),
    "|-----BEGIN RSA PRIVATE¦ KEY-----\n{b64}\n{b64}\n{b20}==\n-----END RSA PRIVATE¦ KEY-----|",
    *(
        "|-----BEGIN PRIVATE¦ KEY-----\\n{b64}\\n{b64}\\n-----END PRIVATE¦ KEY-----|\\n",
        "|-----BEGIN OPENSSH PRIVATE¦ KEY-----\n{b70}|",
    ),
    "|-----BEGIN PGP PRIVATE¦ KEY BLOCK-----\nVersion: 1\n\n{b64}\n={b4}\n-----END PGP PRIVATE¦ KEY BLOCK-----|",
)
PLAIN = (
    *(
        "the task-force-of-the-unknown and disk-usage-statistics-per-project-folder",
        "basic misunderstandings, bearer of many names",
    ),
    *(
        "sk-this-is-a-long-class-name-without-any-number-in-it",
        "https://user@example.com/path, https://example.com:8080/a/b?c=d@e",
    ),
    *(
        "commit 2d1568b0c6f4a9b7d3e2f1a0b9c8d7e6f5a4b3c2 sha256:" + "0123456789abcdef" * 4,
        "uuid 123e4567-e89b-12d3-a456-426614174000",
    ),
    *(
        "ghp_short AKIA_NOT eyJhbGciOiJIUzI1NiJ9 hf_hub_download xoxo-hugs",
        "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
    ),
    *(
        "def test_a_function_with_a_very_long_name_indeed_for_42_reasons(): ...",
        "api_key = None  # the secret_access_key is read",
    ),
    *(
        "key: value, KEY=1, key: my-cache-key-for-2024-in-test, keyboard: qwertz1234567890",
        "token: str = self.next_token(parser2)",
    ),
    *(
        "password: str | None = None",
        "password=getpass.getpass()",
        "password=self.password2",
        "password = os.environ['PASSWORD']",
    ),
    *(
        "password: required, secret: ${SECRET}, token: {{ token }}",
        "PWD=/home/user1/work",
        "password: <your password>",
        "pass: 1234567",
    ),
    *('{"tokens": 12345678, "password": 12345678}', "docker run -u 1000:1000 -u node:node x", "git push -u origin main:main"),
    *(
        "key: models/vision/resnet-50/epoch-12/model.safetensors",
        "sort key=lambda item: item.created_at_2",
        "primary key (user_id_1, item_id_2)",
    ),
)


def made(shape: str, source: random.Random) -> str:
    """Return a random value of a shape; what is long and may hold digits holds one."""

    def letters(match: re.Match[str]) -> str:
        while True:
            text = "".join(source.choices(LETTERS[match[1]], k=int(match[2])))
            if len(text) < 16 or match[1] == "c" or re.search("[0-9]", text):
                return text

    return re.sub(r"\{([a-z])(\d+)\}", letters, shape).replace("¦", "")


def longest_piece(text: str) -> int:
    return max(map(len, re.findall("[A-Za-z0-9]+", text)), default=0)


@pytest.mark.parametrize("kind", TOKENS)
def test_tokens_of_every_format_go_wherever_they_stand(kind: str) -> None:
    source, redactor = random.Random(kind), Redactor()
    for around in AROUND:
        if kind in {"Telegram", "Google, refresh"} and around in NAMES_OF_FILES:
            continue  # they have a colon, or slashes
        for _ in range(10):
            token = made(TOKENS[kind], source)
            text = around.format(token)
            done = redactor.redact(text)
            assert "[redacted]" in done, text
            assert token.rpartition(":")[2] not in done, text
            assert longest_piece(done.replace(token.partition(":")[0], "")) < 12, (text, done)
            assert redactor.redact(done) == done


@pytest.mark.parametrize("line", NAMED)
def test_values_go_and_what_leads_to_them_stays(line: str) -> None:
    source, redactor = random.Random(line), Redactor()
    for _ in range(20):
        lead, value, rest = made(line, source).split("|")
        done = redactor.redact(f"before {lead}{value}{rest}")
        assert done == f"before {lead}[redacted]{rest}", (value, done)
        assert redactor.redact(done) == done


@pytest.mark.parametrize("text", PLAIN)
def test_what_is_no_secret_comes_back_as_it_is(text: str) -> None:
    assert Redactor().redact(text) is text


def test_a_stream_finds_every_format_at_every_split() -> None:
    source, redactor, tried = random.Random(4711), Redactor(), 0
    for shape in [*TOKENS.values(), *NAMED]:
        raw = f"first\nlog {made(shape.replace('|', ''), source)}, done\nnext\n".encode()
        whole = redactor.redact_bytes(raw)
        assert whole != raw
        for split in range(len(raw) + 1):
            stream = redactor.stream()
            assert stream.feed(raw[:split]) + stream.feed(raw[split:]) + stream.finish() == whole, (raw, split)
            tried += 1
        stream = redactor.stream()
        assert b"".join([stream.feed(raw[at : at + 1]) for at in range(len(raw))]) + stream.finish() == whole
    print(f"splits tried: {tried}")


@pytest.mark.parametrize("before", [60_000, 65_500, 70_000, 130_000])
def test_a_token_in_a_line_longer_than_is_held_back_goes_too(before: int) -> None:
    source, redactor = random.Random(before), Redactor()
    for shape in [*TOKENS.values(), *(line for line in NAMED if "BEGIN" not in line)]:
        secret = made(shape.replace("|", ""), source)
        raw = (f"{'some words ' * (before // 11)} {secret} " + "and more " * 9_000).encode()
        stream = redactor.stream()
        done = b"".join([stream.feed(raw[at : at + 4_096]) for at in range(0, len(raw), 4_096)]) + stream.finish()
        assert done == redactor.redact_bytes(raw) != raw, secret


def test_formats_that_are_known() -> None:
    print(f"formats: {len(TOKENS)} by what they begin with, {len(NAMED)} by what leads to them")
    assert len(TOKENS) > 62


def test_ordinary_code_and_prose_is_left_alone() -> None:
    """The standard library without its tests, which are full of passwords; what installed packages say of themselves."""
    redactor = Redactor()
    library, packages = Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("purelib"))
    skipped = {"site-packages", "test", "tests", "idlelib", "lib2to3"}
    kinds = {
        "code": [path for path in sorted(library.rglob("*.py")) if not skipped & set(path.parts)],
        # without apprise's, which has an address with its password for each of a hundred services
        "prose": sorted({*packages.glob("*.dist-info/METADATA")} - {*packages.glob("apprise-*/METADATA")}),
    }
    for kind, paths in kinds.items():
        words = masked = 0
        for path in paths:
            data = path.read_bytes()
            words += len(data.split())
            masked += redactor.redact_bytes(data).count(b"[redacted]") - data.count(b"[redacted]")
        print(f"{kind}: {masked} of {words:,} words masked, 1 in {words // max(1, masked):,}")
        assert words > 20_000
        assert masked * 10_000 <= words
