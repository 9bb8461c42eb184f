"""Which points of a sweep can run here, and what is said of the others before anything runs."""

import pytest

from bench.errors import UserError
from bench.plan.compose import compose_points
from bench.run import prepared


def points(folder, *names):
    return [config for name in names for config in
            compose_points(["model=gguf", f"model.name={name}", f"model.path={folder / name}.gguf"])]  # fmt: skip


def test_a_campaign_leaves_out_the_lines_whose_model_is_not_here_and_names_it(tmp_path, capsys):
    (tmp_path / "small.gguf").touch()
    asked = points(tmp_path, "large", "small")
    kept = prepared._that_can_run(asked, campaign=True)
    assert [config.model.name for config in kept] == ["small"]
    said = capsys.readouterr().out
    assert said.startswith("left out, 1 of 2 points: model=large needs large.gguf, which is not here; ")


def test_a_campaign_with_no_model_at_all_is_refused_with_the_first_one_s_sentence(tmp_path):
    with pytest.raises(UserError, match=r"model=a needs a\.gguf, which is not here; .*model.path=FILE"):
        prepared._that_can_run(points(tmp_path, "a", "b"), campaign=True)


def test_elsewhere_a_file_that_is_not_there_is_refused_however_many_others_are(tmp_path):
    (tmp_path / "small.gguf").touch()
    asked = ["model=gguf", f"model.path={tmp_path / 'smal.gguf'},{tmp_path / 'small.gguf'}",
             f"results={tmp_path / 'results'}"]  # fmt: skip
    with pytest.raises(UserError, match=r"smal\.gguf"):
        prepared.prepare(asked)
