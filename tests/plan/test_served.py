"""Configurations of servers: what they imply, what a record is told of them, and every combination that is none."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.plan import served
from bench.plan.cells import cells
from bench.plan.compose import compose_points
from bench.run.served.program import check_servers

GGUF = ("model=gguf", "model.path=/models/toy.gguf", "prompts=short", "engine.threads=2")
PAIR = ("engine.server=llama-server", "treatment.engine.server=llama-server --spec-type ngram-mod")


def one(*words):
    (config,) = compose_points([*GGUF, *words])
    return config


def cell_of(config):
    (cell,) = cells([config], Path("r"), "toy", "b", {Path("/models/toy.gguf"): "w"})
    return cell


def test_a_server_implies_what_it_needs() -> None:
    config = one(*PAIR)
    assert (config.model.engine, config.method.name, config.streams) == ("server", "autoregressive", 1)
    assert not config.measure.sharp and not config.profile
    assert one(*PAIR, "streams=4").streams == 4


def test_a_command_is_taken_as_it_stands_and_quoted_ones_are_swept() -> None:
    given = "llama-server --spec-type draft-mtp,ngram-mod -x a=b"
    config = one("engine.server=llama-server", f"treatment.engine.server={given}")
    assert config.treatment.engine.server == given
    found = compose_points([*GGUF, "engine.server=llama-server", "treatment.engine.server='a-server -x','b-server'"])
    assert [config.treatment.engine.server for config in found] == ["a-server -x", "b-server"]
    odd = "llama-server --chat \"it's\""
    assert one("engine.server=llama-server", f"treatment.engine.server={odd}").treatment.engine.server == odd


def test_a_command_gets_the_model_and_the_settings_that_it_does_not_name() -> None:
    config = one("engine.server=llama-server -t 7", "treatment.engine.server=llama-server --ctx-size=99", "streams=2",
                 "engine.type_k=q8_0", "depth=8")  # fmt: skip
    base, other = (shlex.split(cell_of(config).builds[side]) for side in ("baseline", "treatment"))
    assert base[1:3] == ["-t", "7"] and "-c 1040 -np 2" in shlex.join(base) and base.count("-t") == 1
    assert "-c" not in other and "-t 2" in shlex.join(other)
    assert "-m /models/toy.gguf" in shlex.join(base) and "-ctk q8_0" in shlex.join(other)


def test_a_record_has_no_folder_and_no_password() -> None:
    config = one("engine.server=/opt/a/llama-server -md /home/me/d.gguf", *PAIR[1:])
    values = cell_of(config).config
    assert values["engine"]["server"] == "llama-server -md d.gguf"
    assert values["treatment"]["declaration"]["was"] == "llama-server -md d.gguf"
    assert values["engine"]["n_ctx"] == 512 and "flash_attn" not in values["engine"]
    assert served.told("https://me:secret@host:81/v1/?key=1") == "https://host:81/v1"


def test_the_cache_is_a_condition_and_part_of_the_id() -> None:
    plain, cached = (cell_of(one(*PAIR, *more)) for more in ((), ("engine.cache_prompt=true",)))
    assert plain.id != cached.id and cached.config["engine"]["cache_prompt"] is True


def test_draws_and_ends_are_a_cells_conditions() -> None:
    plain, drawn = (cell_of(config) for more in ([], ["temperature=0.7", "top_k=20", "min_p=0.05", "ignore_eos=false"])
                    for config in compose_points([*GGUF, *PAIR, *more]))  # fmt: skip
    assert plain.id != drawn.id and plain.config["temperature"] == 0 and "top_k" not in plain.config
    assert [drawn.config[name] for name in ("temperature", "top_k", "min_p", "ignore_eos")] == [0.7, 20, 0.05, False]


def test_two_addresses_need_no_file() -> None:
    (config,) = compose_points(["engine.server=http://a:1", "treatment.engine.server=http://a:2", "prompts=short",
                                "model.served=org/name"])  # fmt: skip
    assert not served.needs_file(config) and config.model.name == "org/name"
    (cell,) = cells([config], Path("r"), "toy", "b", {Path("org/name"): "w"})
    assert cell.config["model"]["served"] == "org/name"


@pytest.mark.parametrize(("words", "says"), [
    (["engine.server=llama-server"], "both arms are llama-server, so that they differ in nothing"),
    (["engine.server=a-server -x", "treatment.engine.server=a-server -x"], "differ in nothing"),
    (["treatment.engine.server=llama-server"], "engine.server names no server"),
    (["model.engine=server"], "engine.server names no server"),
    ([*PAIR, "method=lookup"], "method=lookup is nothing that a server can be asked for"),
    ([*PAIR, "temperature=0.7", "measure.distribution=9"], "measure.distribution=9 is nothing"),
    ([*PAIR, "measure.chunk=8"], "measure.chunk=8 is nothing"),
    ([*PAIR, "engine.build=other"], "engine.build=other is nothing"),
    ([*PAIR, "model.engine=llama"], "engine.server is a setting of servers, and model.engine=llama"),
    (["engine.kept=true"], "engine.kept is a setting of servers"),
    (["engine.server=http://a:1", "treatment.engine.server=http://a:2"], "model.served=NAME"),
    ([*PAIR, "treatment.engine.type_k=q8_0"], "are 2 differences between the arms"),
    (["engine.server=llama-server 'x", PAIR[1]], "cannot be read as a command"),
])  # fmt: skip
def test_what_no_server_can_be_asked_for_is_a_sentence(words, says) -> None:
    with pytest.raises(UserError, match=says):
        for config in compose_points([*GGUF, *words]):
            cell_of(config)


@pytest.mark.parametrize(("command", "says"), [
    ("no-such-program --x", "'no-such-program' is not a program that can be run"),
    ("true", "is no llama-server: it prints no version"),
    ("python3", "is no llama-server"),
    ("sh -c 'exit 3'", "is no llama-server|refuses its options"),
    ("http://127.0.0.1:9", "start the server there, or mend the address"),
    ("http://", "is no address"),
])  # fmt: skip
def test_what_is_no_server_is_told_before_anything_runs(command, says) -> None:
    config = one("engine.server=" + command, PAIR[1], "model.served=m")
    with pytest.raises(UserError, match=says):
        check_servers(config)
