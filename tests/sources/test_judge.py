"""Judges: answers become votes once, within the budget, whatever the server does."""

import json
import math
import re
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

import dugong as dg
from dugong.exceptions import SourceError
from dugong.sources.asking import BudgetError

TEXTS = {"a": ["I said hello", "silence", "she said no"], "b": ["silence", "he said yes"]}


class Fake(ThreadingHTTPServer):
    """A chat endpoint that answers "yes" where the text holds "said"; `script` says how it misbehaves, try by try."""

    daemon_threads = True

    def __init__(self, script=()):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script, self.seen, self.keys, self.lock = list(script), [], [], threading.Lock()
        self.tokens, self.delay, self.key, self.chance = 0, 0.0, None, 0.8
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        fake = self.server
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with fake.lock:
            fake.seen.append(body)
            fake.keys.append(self.headers.get("authorization"))
            act = fake.script.pop(0) if fake.script else "answer"
        time.sleep(fake.delay)
        if fake.key and self.headers.get("authorization") != f"Bearer {fake.key}":
            return self.reply(401, {"error": "no such key"})
        if isinstance(act, int):
            return self.reply(act, {"error": f"busy; you said {fake.keys[-1]}"}, {"Retry-After": "0.01"})
        if act == "slow":
            time.sleep(1.5)
        if act == "malformed":
            return self.reply(200, b"{not json")
        if act == "hang up":
            return self.connection.close()
        items = body["messages"][1]["content"]
        texts = [part["text"] for part in items if part["type"] == "text" and not part["text"].startswith("Item ")]
        answers = ["yes" if "said" in text else "no" for text in texts] or ["unsure"]
        if "probability" in str(body["response_format"]):
            answers = [{"answer": one, "probability": 0.9} for one in answers]
        if act == "wrong schema":
            answers = ["perhaps"]
        with fake.lock:
            fake.tokens += 50
        content = json.dumps({"answers": answers})
        message = {"role": "assistant", "content": content}
        reply = {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
            "choices": [
                {"index": 0, "finish_reason": "stop", "message": message, "logprobs": logprobs(body, content, fake)}
            ],
            "usage": {"prompt_tokens": 40, "completion_tokens": 10, "total_tokens": 50},
        }
        return self.reply(200, reply, {"Content-Type": "application/json"})

    def reply(self, status, plain, headers=()):
        data = plain if isinstance(plain, bytes) else json.dumps(plain).encode()
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def logprobs(body, content, fake):
    """Tokens as a real endpoint cuts them: quotation marks stick to what is beside them, answers fall into pieces."""
    if not body.get("logprobs") or fake.chance is None:
        return None
    tokens = re.findall(r'ye|s"|no"|uns|ure"|[^ynu]+|.', content)
    logs = {"ye": math.log(fake.chance), "no": math.log(fake.chance), 'no"': math.log(fake.chance)}
    return {"content": [{"token": one, "logprob": logs.get(one, 0.0), "top_logprobs": []} for one in tokens]}


@pytest.fixture
def fake():
    server = Fake()
    yield server
    server.shutdown()
    server.server_close()


def speaking(fake, tmp_path, **options):
    options = {"model": "tiny", "cache": tmp_path / "answers.sqlite", "name": "speaking"} | options
    return dg.sources.judge("Is somebody speaking?", base_url=fake.url, **options)


def ask(judge, texts=TEXTS, **options):
    return dg.apply([judge], texts, progress=False, **options).column(judge.name).tolist()


def test_answers_become_votes_and_equal_requests_are_asked_once(fake, tmp_path):
    judge = speaking(fake, tmp_path)
    assert fake.seen == []  # nothing is sent before votes are asked for
    assert ask(judge) == [1, -1, 1, -1, 1]
    assert len(fake.seen) == 4
    assert ask(judge) == [1, -1, 1, -1, 1]
    assert len(fake.seen) == 4
    body = fake.seen[0]
    assert (body["temperature"], body["model"]) == (0, "tiny")
    assert body["response_format"]["json_schema"]["schema"]["properties"]["answers"]["items"]["enum"] == [
        "yes",
        "no",
        "unsure",
    ]


def test_a_soft_judge_says_how_likely_its_answer_is(fake, tmp_path):
    judge = speaking(fake, tmp_path, soft=True)
    fake.script = ["wrong schema"]
    votes = dg.apply([judge], TEXTS, progress=False)
    assert votes.column("speaking").tolist() == [1, -1, 1, -1, 1]
    np.testing.assert_allclose(votes.scores["speaking"][:, 1], [0.9, 0.1, 0.9, 0.1, 0.9], rtol=1e-6)
    three = speaking(fake, tmp_path, soft=True, choices={"no": 1, "yes": 2, "song": 3, "unsure": None})
    rows = dg.apply([three], TEXTS, n_classes=3, progress=False).scores["speaking"]
    np.testing.assert_allclose(rows[:2], [[0.05, 0.9, 0.05], [0.9, 0.05, 0.05]], rtol=1e-6)
    with pytest.raises(SourceError, match="soft judge must map answers to votes as numbers"):
        speaking(fake, tmp_path, soft=True, choices={"yes": "speech", "no": "rest"})


def test_the_probability_of_the_tokens_is_a_soft_vote(fake, tmp_path):
    judge = speaking(fake, tmp_path, soft="logprobs", choices={"yes": 1, "no": -1})
    votes = dg.apply([judge], TEXTS, progress=False)
    assert fake.seen[0]["logprobs"] is True
    assert "probability" not in str(fake.seen[0])
    assert votes.column("speaking").tolist() == [1, -1, 1, -1, 1]
    np.testing.assert_allclose(votes.scores["speaking"][:, 1], [0.8, 0.2, 0.8, 0.2, 0.8], rtol=1e-6)
    # The same from the cache, several at once, and with an answer that is no vote: half of the rest would be its own.
    asked = len(fake.seen)
    again = dg.apply([judge], TEXTS, progress=False)
    np.testing.assert_array_equal(again.scores["speaking"], votes.scores["speaking"])
    assert len(fake.seen) == asked
    unsure = speaking(fake, tmp_path, soft="logprobs", batch=3)
    rows = dg.apply([unsure], TEXTS, progress=False).scores["speaking"]
    np.testing.assert_allclose(rows[:, 1], [8 / 9, 1 / 9, 8 / 9, 1 / 9, 8 / 9], rtol=1e-6)


def test_answers_without_logprobs_are_plain_votes_and_said_to_be(fake, tmp_path):
    from dugong.cli.steps import time_table

    fake.chance = None
    judge = speaking(fake, tmp_path, soft="logprobs")
    found = dg.apply_with_report([judge], TEXTS, progress=False)
    assert found.votes.column("speaking").tolist() == [1, -1, 1, -1, 1]
    assert found.votes.scores["speaking"][:, 1].tolist() == [1, 0, 1, 0, 1]
    assert "5 answers came without logprobs: plain votes." in time_table(found.report)
    fake.script = [400]
    with pytest.raises(SourceError, match=r"refused the request \(400\)(.|\n)*soft=True asks the model"):
        ask(judge, {"a": ["another"]})
    with pytest.raises(SourceError, match="soft= must be True, False or 'logprobs'"):
        speaking(fake, tmp_path, soft="lots")


def test_tokens_that_are_not_the_answer_are_not_believed():
    from dugong.sources.judge import token_chances

    text = '{"answers": ["né", "b"]}'
    halves = [{"token": "?", "bytes": [byte], "logprob": -0.1} for byte in text.encode()]
    np.testing.assert_allclose(token_chances(text, {"content": halves}), [np.exp(-0.3), np.exp(-0.1)])
    assert token_chances(text, {"content": halves[1:]}) is None
    for broken in (None, [], {"content": None}, {"content": [{"token": 3, "logprob": "x"}]}):
        assert token_chances(text, broken) is None


def test_prices_give_the_cost_of_a_run(fake, tmp_path):
    from dugong.cli.steps import time_table

    judge = speaking(fake, tmp_path, prices=(1.0, 10.0))
    report = dg.apply_with_report([judge], TEXTS, progress=False).report
    assert report.sources[0].usage["cost"] == pytest.approx(4 * (40 * 1 + 10 * 10) / 1e6)
    assert "used 200 tokens, 0.00056 by the prices given." in time_table(report)
    assert "cost" not in dg.apply_with_report([judge], TEXTS, progress=False).report.sources[0].usage
    for wrong in ((1.0,), (1.0, -1.0), "free", (1.0, float("inf"))):
        with pytest.raises(SourceError, match="prices= must be two numbers"):
            speaking(fake, tmp_path, prices=wrong)


def test_what_was_used_is_in_the_report(fake, tmp_path):
    judge = speaking(fake, tmp_path)
    first = dg.apply_with_report([judge], TEXTS, progress=False).report.sources[0].usage
    again = dg.apply_with_report([judge], TEXTS, progress=False).report.sources[0].usage
    assert first == {"calls": 4, "cached": 1, "tokens": 200}
    assert again == {"cached": 5}


def test_several_elements_share_a_request_and_windows_are_shown_whole(fake, tmp_path):
    assert ask(speaking(fake, tmp_path, batch=3)) == [1, -1, 1, -1, 1]
    assert len(fake.seen) == 2
    window = speaking(fake, tmp_path, resolution=dg.Window(2), name="w")
    assert ask(window) == [1, 1, 1]
    texts = {part["text"] for body in fake.seen for part in body["messages"][1]["content"]}
    assert "I said hello silence" in texts


@pytest.mark.parametrize("trouble", [429, 500, 503, "malformed", "wrong schema", "hang up", "slow"])
def test_trouble_is_met_with_patience(fake, tmp_path, trouble):
    fake.script = [trouble, trouble]
    assert ask(speaking(fake, tmp_path, timeout=1.0)) == [1, -1, 1, -1, 1]
    assert len(fake.seen) == 4 + 2


def test_a_service_that_says_when_to_come_back_is_obeyed(fake, tmp_path, monkeypatch):
    from dugong.sources import asking

    waited, sleep = [], time.sleep
    monkeypatch.setattr(asking.time, "sleep", lambda seconds: waited.append(seconds) or sleep(min(seconds, 0.01)))
    fake.script = [429]
    ask(speaking(fake, tmp_path), {"a": ["they said"]})
    assert 0.01 in waited
    assert 0.5 not in waited  # what it would have waited, had nothing been said

    def patience(said):
        return asking._Reply(status=429, headers={"retry-after": said}, payload=b"", sent=True).patience(7.0)

    assert [patience(one) for one in ("3", "soon", "-1", "99999")] == [3.0, 7.0, 0.0, 600.0]
    later = formatdate(time.time() + 100, usegmt=True)
    assert 90 < patience(later) <= 100


def test_a_server_that_stays_broken_is_named_and_what_is_known_is_kept(fake, tmp_path):
    judge = speaking(fake, tmp_path)
    object.__setattr__(judge.function.service, "retries", 1)
    fake.script = ["answer"] * 3 + [500] * 99
    with pytest.raises(SourceError, match=r"127.0.0.1:\d+ did not answer as it should in 2 tries.*500.*busy"):
        ask(judge)
    seen = len(fake.seen)
    fake.script = []
    assert ask(judge) == [1, -1, 1, -1, 1]
    assert len(fake.seen) == seen + 1


def test_a_wrong_key_is_an_error_that_does_not_show_it(fake, tmp_path, monkeypatch):
    fake.key = "right"
    with pytest.raises(SourceError, match=r"wants a key \(401\)"):
        ask(speaking(fake, tmp_path))
    monkeypatch.setenv("MY_KEY", "secret-and-wrong")
    with pytest.raises(SourceError, match=r"refused the key \(401\); it is read from MY_KEY") as error:
        ask(speaking(fake, tmp_path, key_env="MY_KEY"))
    assert "secret" not in str(error.value)
    monkeypatch.setenv("MY_KEY", "right")
    judge = speaking(fake, tmp_path, key_env="MY_KEY")
    assert ask(judge) == [1, -1, 1, -1, 1]
    assert "right" not in repr(judge.function) + repr(judge)
    assert b"right" not in (tmp_path / "answers.sqlite").read_bytes()


def test_a_key_is_in_no_message_whatever_the_service_or_the_variable_holds(fake, tmp_path, monkeypatch):
    """A service that repeats it, a line end behind it, and letters that no header can carry."""
    import pickle

    monkeypatch.setenv("MY_KEY", "sk-secret\n")
    judge = speaking(fake, tmp_path, key_env="MY_KEY")
    object.__setattr__(judge.function.service, "retries", 0)
    fake.script = [500]
    with pytest.raises(SourceError, match=r"busy; you said Bearer \*\*\*") as error:
        ask(judge, {"a": ["x"]})
    told = "".join(traceback.format_exception(error.value))
    assert fake.keys == ["Bearer sk-secret"]
    assert "secret" not in told
    assert b"secret" not in pickle.dumps(judge.function)
    for wrong in ("sk-secret\nX-Other: 1", "sk-secret-ü"):
        monkeypatch.setenv("MY_KEY", wrong)
        with pytest.raises(SourceError, match="the key in MY_KEY must be letters, digits and signs") as error:
            ask(judge, {"a": ["y"]})
        assert "secret" not in "".join(traceback.format_exception(error.value))
    assert all(b"secret" not in one.read_bytes() for one in tmp_path.iterdir())


def test_the_budget_is_never_exceeded(fake, tmp_path):
    texts = {str(i): [f"{i} said {j}" for j in range(5)] for i in range(20)}
    judge = speaking(fake, tmp_path, max_tokens_total=2500)
    fake.script = ["malformed", "hang up", 500, "wrong schema"] * 2
    with pytest.raises(SourceError, match=r"the budget of 2,500 tokens does not allow"):
        ask(judge, texts)
    assert 0 < fake.tokens <= 2500
    with sqlite3.connect(tmp_path / "answers.sqlite") as book:
        spent = book.execute("select sum(tokens) from spent").fetchone()[0]
        assert book.execute("select count(*) from asking").fetchone()[0] == 0
    assert fake.tokens <= spent <= 2500
    assert issubclass(BudgetError, SourceError)


def test_the_budget_holds_for_several_processes(fake, tmp_path):
    texts = {str(i): [f"{i} said {'so ' * 20}"] for i in range(40)}
    judge = speaking(fake, tmp_path, max_tokens_total=2000)
    with pytest.raises(SourceError, match="the budget of 2,000 tokens does not allow"):
        ask(judge, texts, n_jobs=2)
    assert 0 < fake.tokens <= 2000
    with sqlite3.connect(tmp_path / "answers.sqlite") as book:
        sums = ("select coalesce(sum(tokens), 0) from spent", "select coalesce(sum(tokens), 0) from asking")
        assert sum(book.execute(one).fetchone()[0] for one in sums) <= 2000


def test_the_official_client_accepts_the_same_server(fake, tmp_path):
    """The fake speaks the protocol that it stands for: what a judge sends is answered to OpenAI's own client too."""
    import openai

    judge = speaking(fake, tmp_path)
    assert ask(judge) == [1, -1, 1, -1, 1]
    fake.script = [429, 500]
    with openai.OpenAI(base_url=fake.url, api_key="none", max_retries=3) as client:
        reply = client.chat.completions.create(**fake.seen[0])
    answer = json.loads(reply.choices[0].message.content)
    assert answer["answers"][0] in ("yes", "no")
    assert reply.usage.total_tokens == 50
    assert len(fake.seen) == 4 + 3  # it tried again after a busy and a broken answer


def test_two_processes_share_answers_and_ask_nothing_twice(fake, tmp_path):
    fake.delay = 0.05
    texts = {str(i): ["they said so", f"{i % 3} said"] for i in range(12)}
    judge = speaking(fake, tmp_path)
    assert ask(judge, texts, n_jobs=2) == [1] * 24
    assert len(fake.seen) == 4


def test_a_killed_run_continues_without_a_second_question(fake, tmp_path):
    fake.delay = 0.15
    script = tmp_path / "job.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import dugong as dg
            where = {{"base_url": {fake.url!r}, "cache": {str(tmp_path / "c.sqlite")!r}}}
            judge = dg.sources.judge("?", model="tiny", **where)
            texts = {{str(i): [f"{{i}} said"] for i in range(8)}}
            print(dg.apply([judge], texts, progress=False).column("judge").tolist())
            """
        )
    )
    job = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE)
    while len(fake.seen) < 4:
        time.sleep(0.02)
    job.kill()
    job.communicate()
    asked = len(fake.seen)
    # At once: nobody waits a minute and a half for the answer that the dead process had asked for.
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == str([1] * 8)
    texts = [body["messages"][1]["content"][0]["text"] for body in fake.seen]
    assert len(texts) - len(set(texts)) <= 1  # only the question that was in the air when the process died
    assert len(set(texts)) == 8
    assert asked < 8


def test_a_request_of_another_machine_is_waited_for_until_it_must_be_lost(fake, tmp_path):
    judge = speaking(fake, tmp_path, timeout=0.4)
    assert ask(judge, {"a": ["they said"]}) == [1]
    begun = time.time()
    with sqlite3.connect(tmp_path / "answers.sqlite") as book:
        key = book.execute("select key from answers").fetchone()[0]
        book.execute("delete from answers")
        book.execute("insert into asking values (?, 'tiny', ?, 7)", (key, begun))
        book.execute("insert into askers values (?, 'elsewhere', 1)", (key,))
    assert ask(judge, {"a": ["they said"]}) == [1]
    assert time.time() - begun > 1.5 * 0.4
    assert len(fake.seen) == 2
    with sqlite3.connect(tmp_path / "answers.sqlite") as book:
        assert book.execute("select tokens from spent").fetchone()[0] == 50 + 7 + 50  # what it may have cost counts


def test_pictures_are_sent_as_png(fake, tmp_path):
    from base64 import b64decode

    frames = np.zeros((6, 8, 10, 3), dtype=np.uint8)
    frames[3:] = 200
    judge = speaking(fake, tmp_path, resolution=dg.Window(6))
    assert ask(judge, {"v": frames}) == [0]
    parts = fake.seen[0]["messages"][1]["content"]
    assert [part["type"] for part in parts] == ["image_url"] * 4
    data = b64decode(parts[-1]["image_url"]["url"].split(",")[1])
    av = pytest.importorskip("av")
    import io

    with av.open(io.BytesIO(data), format="png_pipe") as file:
        picture = next(file.decode(video=0)).to_ndarray(format="rgb24")
    np.testing.assert_array_equal(picture, frames[5])
    # A frame by itself, grey or in colours, is one picture.
    for video in (frames[2:4], frames[2:4, :, :, 0]):
        assert ask(speaking(fake, tmp_path), {"v": video}) == [0, 0]
        kinds = [[part["type"] for part in body["messages"][1]["content"]] for body in fake.seen[-2:]]
        assert kinds == [["image_url"]] * 2


def test_what_cannot_be_shown_or_asked_is_refused(fake, tmp_path):
    with pytest.raises(SourceError, match=r"words, numbers, rows of a table and pictures; found dict|ndarray"):
        ask(speaking(fake, tmp_path), {"a": [np.zeros((2, 2, 2, 2))]})
    for options, words in (
        ({"base_url": "ftp://x"}, "must begin with http"),
        ({"base_url": "http://me:pw@x"}, "must not hold a password"),
        ({"base_url": fake.url, "choices": {}}, "must map answers to votes"),
        ({"base_url": fake.url, "batch": 0}, "at least 1 task"),
    ):
        with pytest.raises(SourceError, match=words):
            dg.sources.judge("?", model="tiny", **options)
    assert fake.seen == []


@pytest.fixture
def project(fake, tmp_path):
    """A project with a judge, a plain rule and a soft detector, on texts."""
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "data").mkdir()
    for place in range(6):
        lines = [f"{place} {word}" for word in ("they said so", "silence", "she said no", "rest")]
        (folder / "data" / f"{place}.txt").write_text("\n".join(lines))
    (folder / "sources.py").write_text(
        textwrap.dedent(
            f"""
            import dugong as dg

            asked = dg.sources.judge(
                "Does somebody speak?", base_url={fake.url!r}, model="tiny", key_env="MY_KEY",
                cache={str(folder / "answers.sqlite")!r}, prices=(1, 10),
                name="asked", soft="logprobs",
            )

            @dg.source
            def verb(line):
                return 1 if "said" in line else -1

            @dg.source(soft=True)
            def length(line):
                return min(len(line) / 20, 1.0)
            """
        )
    )
    (folder / "load.py").write_text(
        textwrap.dedent(
            """
            from pathlib import Path


            def load():
                for file in sorted((Path(__file__).parent / "data").glob("*.txt")):
                    yield file.stem, file.read_text().splitlines()
            """
        )
    )
    (folder / "project.toml").write_text(
        'data = "load:load"\nsources = "sources.py"\noutput = "output"\n'
        '[tables.anna]\nfile = "anna.csv"\ncolumn = "says"\nvalues = {speech = 1, rest = -1}\n'
    )
    (folder / "anna.csv").write_text("sequence,element,says\n0,0,speech\n0,1,rest\n3,2,speech\n")
    return folder


def test_a_project_says_who_gets_its_data_before_the_first_run_and_what_it_cost_after_it(
    fake, project, cli, monkeypatch
):
    monkeypatch.setenv("MY_KEY", "sk-secret")
    first = cli("check", project)
    assert first.code == 1
    assert f"- asked sends what it reads to {fake.url.removesuffix('/v1')}" in first.err
    assert fake.seen == []
    run = cli("run", project)
    assert run.code == 0, run.err
    assert "asked asked 24 times, knew 0 answers already, and used 1,200 tokens, 0.00336 by" in run.out + run.err
    assert "anna" in run.out
    checked = cli("check", project)
    assert "These sources send data:" in checked.out
    assert f"- asked sends what it reads to {fake.url.removesuffix('/v1')}" in checked.out
    again = cli("run", project)
    assert again.code == 0, again.err
    assert len(fake.seen) == 24
    # The key was sent, and stands nowhere.
    assert set(fake.keys) == {"Bearer sk-secret"}
    told = "".join(one.out + one.err for one in (first, run, checked, again)).encode()
    files = [one for one in project.rglob("*") if one.is_file()]
    assert len(files) > 12
    assert all(b"sk-secret" not in one for one in [told, *(file.read_bytes() for file in files)])
    votes = dg.Votes.read(project / "output" / "votes.parquet")
    assert set(votes.scores) == {"asked", "length"}


@pytest.mark.parametrize("within", ["", "rules"])
def test_a_relative_cache_counts_from_the_project_wherever_a_run_begins(fake, project, cli, monkeypatch, within):
    sources = project / "sources.py"
    text = sources.read_text().replace(repr(str(project / "answers.sqlite")), "'kept/answers.sqlite'")
    sources.unlink()
    (project / within).mkdir(exist_ok=True)
    (project / within / "sources.py").write_text(text)
    place = project / "project.toml"
    place.write_text(place.read_text().replace('"sources.py"', f'"{within}/sources.py"' if within else '"sources.py"'))
    monkeypatch.setenv("MY_KEY", "sk-secret")
    for folder in (project.parent, project):
        monkeypatch.chdir(folder)
        run = cli("run", project, "--restart")
        assert run.code == 0, run.err
    assert len(fake.seen) == 24
    assert (project / "kept" / "answers.sqlite").is_file()
    assert not (project.parent / "kept").exists()
    assert not (project / "rules" / "kept").exists()
