#!/usr/bin/env python3
"""A small llama-server of its own: the same addresses and events, tokens by a rule, and ways to go wrong.

    python small_server.py [--port N] [--wrong WAY[:TOKENS]] [--guesses] [--nap SECONDS] [..options of llama-server]
"""

import argparse
import json
import os
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

VOCABULARY = 49152
LETTERS = "abcdefgh"


def rule(prefix):
    """The next token behind a prefix."""
    return (7 * sum(prefix[-3:]) + 11 * len(prefix)) % 997


def options(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", action="store_true")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--wrong", default="")
    parser.add_argument("--guesses", action="store_true", help="say that tokens were guessed, and be quick again")
    parser.add_argument("--nap", type=float, default=0.001)
    parser.add_argument("--model", "-m", default="model.gguf")
    parser.add_argument("--openai", action="store_true", help="an OpenAI-compatible server that gives no ids")
    parser.add_argument("--names", default="", help="names of the models at an address")
    known, rest = parser.parse_known_args(argv)
    if any(word == "--bogus" for word in rest):
        sys.exit("error: invalid argument: --bogus")
    return known


class Small(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    given = None
    seen = None

    def log_message(self, *words):
        pass

    @property
    def way(self):
        return self.given.wrong.partition(":")[0]

    @property
    def after(self):
        return int(self.given.wrong.partition(":")[2] or 5)

    def names(self):
        return self.given.names.split(",") if self.given.names else [os.path.basename(self.given.model)]

    def answer(self, value, code=200):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/health":
            if self.way == "loads":
                return self.answer({"error": {"message": "Loading model"}}, 503)
            return self.answer({"status": "ok"})
        if self.path == "/v1/models":
            size = VOCABULARY + (1 if self.way == "vocabulary" else 0)
            return self.answer({"data": [{"id": name, "meta": {"n_vocab": size}} for name in self.names()]})
        if self.path == "/props" and not self.given.openai:
            model = "other.gguf" if self.way == "model" else self.given.model
            return self.answer({"total_slots": 1, "model_path": model, "build_info": "b1-0c1e57098",
                                "default_generation_settings": {"n_ctx": 512}})
        return self.answer({"error": {"message": "not found"}}, 404)

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/tokenize":
            return self.answer({"tokens": [ord(letter) % 500 for letter in asked["content"]]})
        if self.way == "refuses":
            return self.answer({"error": {"message": "no slot is free"}}, 503)
        if self.way == "page":
            return self.answer(b"<html>It works!</html>")
        prompt = asked["prompt"]
        prefix = list(prompt) if not isinstance(prompt, str) else [ord(letter) % 500 for letter in prompt]
        count = asked.get("n_predict", asked.get("max_tokens"))
        tokens = []
        for _ in range(count):
            tokens.append(rule(prefix + tokens))
        if self.way == "differs" and count > self.after:
            tokens[self.after :] = [one + 1 for one in tokens[self.after :]]
        if not asked.get("stream"):
            rows = [{"top_logprobs": [{"id": one, "logprob": -0.1}, {"id": one + 1, "logprob": -3.0}]}
                    for one in tokens]
            return self.answer({"content": self.text(tokens), "tokens": tokens, "tokens_predicted": count,
                                "completion_probabilities": rows})
        self.stream(asked, prefix, tokens)

    def text(self, tokens):
        return "".join(LETTERS[one % len(LETTERS)] for one in tokens)

    def stream(self, asked, prefix, tokens):
        again = tuple(prefix) in self.seen
        self.seen.add(tuple(prefix))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        nap = self.given.nap / 4 if again and self.given.guesses else self.given.nap
        began = time.perf_counter()
        for place, token in enumerate(tokens):
            if place == self.after and not self.go_wrong(place):
                return
            time.sleep(nap)
            if not (self.way == "leaves_out" and place % 4 == 2 and place < len(tokens) - 1):
                self.event(self.of_token(token, place, tokens))
        spent = 1e3 * (time.perf_counter() - began)
        told = len(tokens) - (1 if self.way == "miscounts" else 0)
        timings = {"cache_n": 0, "prompt_n": len(prefix), "prompt_ms": 0.5, "predicted_n": told,
                   "predicted_ms": spent}
        if self.given.guesses:
            timings |= {"draft_n": 40 if again else 8, "draft_n_accepted": 11 if again else 1}
        if self.given.openai:
            self.event({"model": self.names()[0], "choices": [{"text": "", "finish_reason": "length"}]})
            self.event({"model": self.names()[0], "choices": [], "usage": {
                "prompt_tokens": len(prefix), "completion_tokens": len(tokens)}})
            self.chunk(b"data: [DONE]\n\n")
        else:
            model = "another" if self.way == "renamed" and len(self.seen) > 1 else os.path.basename(self.given.model)
            self.event({"index": 0, "content": "", "tokens": [], "stop": True, "model": model,
                        "tokens_predicted": told, "tokens_evaluated": len(prefix), "stop_type": "limit",
                        "timings": timings})
        self.chunk(b"")

    def of_token(self, token, place, tokens):
        if self.given.openai:
            return {"model": self.names()[0], "choices": [{"text": self.text([token])}]}
        said = self.text(tokens[: place + 1])
        left_out = self.way == "leaves_out" and place % 4 == 3
        sent = self.text(tokens[: place - 1 if left_out else place])
        return {"index": 0, "content": said[len(sent):], "tokens": [token], "stop": False,
                "tokens_predicted": place + 1, "tokens_evaluated": 1}

    def go_wrong(self, place):
        """Whether the answer goes on."""
        if self.way == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.way == "closes":
            self.wfile.flush()
            self.connection.close()
            self.close_connection = True
            return False
        if self.way == "ends":
            self.chunk(b"")
            return False
        if self.way == "hangs":
            time.sleep(3600)
        if self.way == "drips":
            while True:
                self.chunk(b": still here\n\n")
                time.sleep(0.05)
        if self.way == "rubbish":
            self.chunk(b"\x00\xff\xfe!!\n\n")
        if self.way == "json":
            self.chunk(b"data: {\"content\": \n\n")
        if self.way == "form":
            self.event({"index": 0, "content": 5, "tokens": "many", "stop": False})
        if self.way == "error":
            self.event({"error": {"code": 500, "message": "the context is full"}})
        if self.way == "stops":
            self.event({"index": 0, "content": "", "tokens": [], "stop": True, "tokens_predicted": place,
                        "tokens_evaluated": 1, "stop_type": "eos"})
            self.chunk(b"")
            return False
        if self.way == "twice":
            self.event(self.of_token(1, place, [1] * (place + 1)))
        return True

    def event(self, value):
        self.chunk(b"data: " + json.dumps(value).encode() + b"\n\n")

    def chunk(self, content):
        self.wfile.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")
        self.wfile.flush()


def main(argv):
    Small.given = options(argv)
    Small.seen = set()
    if Small.given.version:
        print("version: 1 (0c1e57098)")
        return
    if Small.given.wrong == "exits":
        sys.exit("error: failed to load model")
    server = ThreadingHTTPServer((Small.given.host, Small.given.port), Small)
    server.daemon_threads = True
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
