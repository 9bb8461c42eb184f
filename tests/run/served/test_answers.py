"""Answers over HTTP, from a small server that can go wrong in every way: a whole answer, or one sentence."""

from __future__ import annotations

import socket

import pytest

from bench.run.served.answers import NATIVE, OPENAI, ask, ask_whole, fill, request
from bench.run.served.client import Client, ServerFault, Stream, events
from bench.run.served.draws import Draws
from pti_loop.chain import Chain

PROMPT = (5, 17, 40)


def asked(url, count=12, patience=5.0, way=NATIVE, prompt=PROMPT):
    return ask(Client(url, patience), way, request(way, prompt, count, 1, False, "m"))


def test_an_answer_has_ids_times_and_what_the_server_says(small) -> None:
    answer = asked(small("--guesses"))
    assert len(answer.ids) == len(answer.times) == answer.told == 12 and None not in answer.ids
    assert answer.sent_ns < answer.first_ns < answer.last_ns <= answer.finish_ns
    assert answer.times == sorted(answer.times)
    assert answer.timings["predicted_n"] == 12 and answer.timings["draft_n"] == 8
    assert (answer.n_prompt, answer.n_cached) == (3, 0)


def test_a_server_that_made_no_guess_says_nothing_of_any(small) -> None:
    assert "draft_n" not in asked(small()).timings


def test_ids_that_a_stream_leaves_out_are_filled_in_from_the_answer_in_one_piece(small) -> None:
    url = small("--wrong", "leaves_out")
    answer = asked(url)
    assert answer.ids[2] is None and answer.lacks and len(answer.ids) == 12
    body = request(NATIVE, PROMPT, 12, 1, False)
    fill(answer, *ask_whole(Client(url, 5.0), body))
    assert answer.ids == asked(small()).ids


ENDING = Draws(ends=True)


def ending(url: str, way: str = NATIVE, draws: Draws = ENDING):
    prompt = PROMPT if way == NATIVE else "abc"
    return ask(Client(url, 5.0), way, request(way, prompt, 12, 1, False, "m", draws))


def test_an_answer_may_end_by_itself_where_it_was_asked_to(small) -> None:
    answer = ending(small("--wrong", "stops"))
    assert answer.ended and answer.tokens == 5 and not asked(small()).ended
    assert ending(small()).tokens == 12, "or have its full length"
    with pytest.raises(ServerFault, match="with the first token, so that it has no rate"):
        ending(small("--wrong", "stops:1"))
    with pytest.raises(ServerFault, match="before its last event"):
        ending(small("--wrong", "ends"))


CHAIN = Chain(top_k=20, top_p=0.9, min_p=0.05, repeat_penalty=1.1, repeat_last_n=-1)


def test_what_a_request_says_of_its_draws() -> None:
    greedy = request(NATIVE, PROMPT, 12, 1, False)
    assert (greedy["temperature"], greedy["ignore_eos"]) == (0.0, True) and "samplers" not in greedy
    drawn = request(NATIVE, PROMPT, 12, 7, False, "", Draws(0.7, CHAIN, True))
    assert {name: drawn[name] for name in CHAIN.as_dict()} == CHAIN.as_dict()
    assert (drawn["seed"], drawn["temperature"], drawn["ignore_eos"]) == (7, 0.7, False)
    assert drawn["samplers"] == ["penalties", "top_k", "top_p", "min_p", "temperature"]
    other = request(OPENAI, "abc", 12, 7, False, "m", Draws(0.7, CHAIN))
    assert (other["top_k"], other["repetition_penalty"]) == (20, 1.1) and "samplers" not in other
    assert "frequency_penalty" not in other, "what is usual is not sent to a server that may not know it"
    with pytest.raises(ServerFault, match="takes no window of penalties; set repeat_last_n=-1"):
        request(OPENAI, "abc", 12, 7, False, "m", Draws(0.0, Chain(repeat_penalty=1.1)))


@pytest.mark.parametrize(("draws", "followed"), [
    (Draws(), True), (Draws(0.0, Chain(top_k=3), True), True), (Draws(0.1), False),
    (Draws(0.0, Chain(presence_penalty=0.5)), False),
])  # fmt: skip
def test_a_difference_can_be_followed_where_the_likeliest_token_comes_out(draws: Draws, followed: bool) -> None:
    assert draws.followed is followed


@pytest.mark.parametrize(("ids", "text", "says"), [
    ([1, 2, 3], "", "streams 12 tokens and gives 3"),
    (None, "something else", "loses text"),
    ([9] * 12, "", "streams token"),
])  # fmt: skip
def test_an_answer_in_one_piece_that_does_not_fit_fills_nothing(small, ids, text, says) -> None:
    url = small("--wrong", "leaves_out")
    answer = asked(url)
    whole, told = ask_whole(Client(url, 5.0), request(NATIVE, PROMPT, 12, 1, False))
    with pytest.raises(ServerFault, match=says):
        fill(answer, ids or whole, text or told)


@pytest.mark.parametrize(("way", "says"), [
    ("refuses", "HTTP 503: 'no slot is free'"),
    ("page", "ends its stream|what is no event"),
    ("closes", "after 5 tokens, before its last event"),
    ("ends", "after 5 tokens, before its last event"),
    ("rubbish", "streams what is no event"),
    ("json", "streams an event that is no JSON"),
    ("form", "streams an event of another form"),
    ("error", "ends its answer with an error: the context is full"),
    ("stops", r"after 5 of 12 tokens \(eos\)"),
    ("miscounts", "says that it made 11 tokens and sends 12"),
    ("twice", "says that it made 12 tokens and sends 13|loses or adds"),
    ("hangs", "said nothing for 0.4 s"),
    ("drips", "said nothing for 0.4 s"),
])  # fmt: skip
def test_a_server_that_goes_wrong_is_a_sentence(small, way, says) -> None:
    with pytest.raises(ServerFault, match=says):
        asked(small("--wrong", way), patience=0.4)


def test_nobody_and_nonsense_at_a_port_are_sentences() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ServerFault, match="refused"):
        asked(f"http://127.0.0.1:{port}")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        import threading

        def speak() -> None:
            connection, _ = other.accept()
            connection.recv(65536)
            connection.sendall(b"SSH-2.0-OpenSSH_9.9\r\n")
            connection.close()

        threading.Thread(target=speak, daemon=True).start()
        with pytest.raises(ServerFault, match="no HTTP"):
            asked(f"http://127.0.0.1:{other.getsockname()[1]}")


@pytest.mark.parametrize("url", ["127.0.0.1:80", "ftp://127.0.0.1", "http://", ""])
def test_what_is_no_address_is_told(url) -> None:
    with pytest.raises(ValueError, match="is no address"):
        Client(url, 1.0)


def test_an_openai_compatible_server_without_ids_is_counted_by_its_own_word(small) -> None:
    answer = asked(small("--openai"), way=OPENAI, prompt="abc")
    assert answer.ids == [] and answer.told == answer.tokens == 12 and len(answer.text) == 12
    assert answer.n_prompt == 3 and answer.n_cached is None and answer.timings == {}


def test_events_may_come_in_any_pieces() -> None:
    content = b': hello\n\ndata: {"a": 1}\r\n\r\nevent: x\ndata: [1,\ndata: 2]\n\n'
    whole = list(events(Stream(0, [(7, content)])))
    assert [data for _, data in whole] == [b'{"a": 1}', b"[1,\n2]"]
    single = [(place, content[place : place + 1]) for place in range(len(content))]
    assert [data for _, data in events(Stream(0, single))] == [data for _, data in whole]
    times = [when for when, _ in events(Stream(0, single))]
    assert times == sorted(times) and times[-1] == len(content) - 1


def test_a_stream_that_ends_inside_an_event_is_told() -> None:
    with pytest.raises(ServerFault, match="in the middle of an event"):
        list(events(Stream(0, [(1, b'data: {"content": "x"')])))
