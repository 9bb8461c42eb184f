"""What stands beside overrides on a sweep's command line, and what `--help`, `--cfg` and `--info` say."""

from __future__ import annotations

import pytest
import yaml

from bench.cli import main
from bench.errors import UserError
from bench.plan.compose import compose_points
from bench.plan.config import CONFIGS
from bench.plan.manual import manual
from bench.plan.options import OTHERS, Asked, asked
from bench.plan.settings import KEYS, MeasureConfig, settings
from bench.plan.shown import configurations, information
from pti_loop.parameters import declared


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["streams=1"], Asked(("streams=1",))),
        (["--plan", "streams=1"], Asked(("streams=1",), "plan")),
        (["streams=1", "--cfg", "job", "seed=2"], Asked(("streams=1", "seed=2"), "cfg")),
        (["-c", "job", "-p", "engine", "--resolve"], Asked((), "cfg", "engine")),
        (["--cfg=all", "--package=model.name"], Asked((), "cfg", "model.name")),
        (["--info", "streams=1"], Asked(("streams=1",), "info")),
        (["-i", "defaults-tree"], Asked((), "info")),
    ],
)
def test_options_and_overrides_come_apart(words: list[str], found: Asked) -> None:
    assert asked(words) == found


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-m", "streams=1,2"], "launcher=ray has other machines measure; write `python -m bench sweep streams=1,2`"),
        (["--plna"], "did you mean '--plan'"), (["--cfg"], "choose from: all, hydra, job"),
        (["--cfg", "jop"], "did you mean 'job'"), (["--cfg", "hydra"], "write --cfg job"),
        (["--package", "model"], "write both"), (["--info=default"], "did you mean 'defaults'"),
        (["hydra/launcher=submitit_local", "streams=1"], "write launcher=submitit in its place"),
        (["hydra/launcher=ray"], "write launcher=ray in its place"),
        (["hydra.launcher.n_jobs=4"], "write launcher=local in its place"),
        (["+hydra.run.dir=x"], "results=FOLDER"), *(([word], OTHERS[word]) for word in OTHERS),
    ],
)  # fmt: skip
def test_an_option_that_there_is_not_is_one_sentence_with_what_to_do(words: list[str], sentence: str, capsys) -> None:
    assert main(["sweep", *words]) == 2
    printed = capsys.readouterr()
    assert sentence in printed.err and printed.err.count("\n") == 1 and printed.out == ""


def test_help_has_every_key_with_its_words() -> None:
    text = " ".join(manual().split())
    groups = {name.rpartition(".")[0] for name, _ in settings()} | {"method", "points", "treatment"}
    for name, item in settings():
        if name not in groups and not name.startswith("treatment."):
            assert f" {name}=" in text and " ".join(item.metadata["help"].split()[:4]) in text
    for spec in declared().values():
        assert all(f"method.{one.name}=" in text and " ".join(one.help.split()[:3]) in text for one in spec.parameters)


def test_every_setting_has_words() -> None:
    bare = [name for name, item in settings() if not item.metadata.get("help") and not name.startswith("treatment.")]
    assert bare == []
    assert set(KEYS) == {name for name, _ in settings()} | {"method.name", "experiment"}


def test_help_of_some_words_has_their_keys_alone(capsys) -> None:
    assert main(["sweep", "--help", "until"]) == 0
    printed = capsys.readouterr().out
    assert "measure.until=0" in printed and "streams" not in printed.split("measure.until")[0]
    with pytest.raises(UserError, match=r"did you mean 'measure\.until'"):
        manual(["measure.untill"])


def test_the_configuration_that_is_shown_is_the_one_that_is_composed() -> None:
    words = ["streams=1,2", "measure=quick"]
    shown = list(yaml.safe_load_all("\n".join(configurations(compose_points(words)))))
    assert [one["streams"] for one in shown] == [1, 2] and "points" not in shown[0]
    assert shown[0]["method"]["name"] == "stagger" and shown[0]["method"]["emission"] == "published"
    assert MeasureConfig(**shown[1]["measure"]) == compose_points(words)[1].measure
    part = list(configurations(compose_points(words), "engine.n_ctx"))
    assert [line.splitlines()[-1] for line in part] == ["512", "512"] and "# point 2 of 2: streams=2" in part[1]
    with pytest.raises(UserError, match="no such part; did you mean 'engine'"):
        list(configurations(compose_points([]), "engin"))


def test_information_names_points_and_choices() -> None:
    text = "\n".join(information(compose_points(["seed=range(0,50)"])))
    assert text.startswith("50 points\n  1: seed=0\n") and "and 10 more" in text
    experiments = ", ".join(sorted(path.stem for path in (CONFIGS / "experiment").glob("*.yaml")))
    assert f"experiment: {experiments}" in text and "model: gemma3-270m, gguf" in text
