"""What makes two cells one cell, and what makes them two."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.errors import UserError
from bench.plan.cells import cells
from bench.plan.compose import compose_points
from bench.plan.model_files import model_path
from bench.records.cell_shape import fault_in
from bench.records.cells import write_cell

MODEL = ["model=gguf", "model.path=/models/a.gguf", "prompts=short"]


def plan(*overrides: str, weights: str = "w", build: str = "b", root: Path = Path("results"), profile: bool = False):
    configs = compose_points([*MODEL, f"profile={str(profile).lower()}", *overrides])
    for config in configs:
        config.engine.threads = 2
    return cells(configs, root, "box", build, {model_path(config): weights for config in configs})


def test_an_id_is_a_hash_of_what_is_measured():
    (cell,) = plan("streams=2")
    assert len(cell.id) == 12
    assert [c.id for c in plan("streams=2")] == [cell.id]
    for other in (plan("streams=3"), plan("streams=2", weights="v"), plan("streams=2", build="c"),
                  plan("streams=2", "temperature=0.5"), plan("streams=2", "engine.kv_unified=true"),
                  plan("streams=2", "n_predict=8"), plan("streams=2", "measure.control_blocks=0")):  # fmt: skip
        assert other[0].id != cell.id


@pytest.mark.parametrize("extra", ["results=/elsewhere", "reports=x", "claims=y", "machine=z", "peers.pairs=9",
                                   "measure.step_widths=3", "profile=true"])  # fmt: skip
def test_what_is_not_measured_does_not_change_a_contrast(extra):
    ids = [cell.id for cell in plan("streams=2", extra) if cell.kind == "contrast"]
    assert ids == [plan("streams=2")[0].id]


def test_counting_draws_makes_a_cell_of_its_own_only_where_draws_are_counted():
    assert plan("streams=2", "measure.distribution=0")[0].id == plan("streams=2")[0].id
    assert plan("streams=2", "measure.distribution=9")[0].id == plan("streams=2")[0].id, "greedy draws nothing"
    warm = plan("streams=2", "temperature=0.7")[0].id
    assert plan("streams=2", "temperature=0.7", "measure.distribution=9")[0].id != warm
    assert plan("streams=2", "temperature=0.7", "measure.distribution=0")[0].id == warm


def test_one_stream_is_plain_decoding_whatever_the_method():
    assert len({cell.id for cell in plan("streams=1", "method=stagger,packed,autoregressive")}) == 1


def test_a_method_that_has_no_streams_is_itself_at_one():
    (cell,) = plan("streams=1", "method=jacobi")
    assert cell.config["method"]["name"] == "jacobi"


def test_parameters_that_say_nothing_make_no_new_cell():
    assert len(plan("streams=2", "method.draws=independent,coupled")) == 1, "greedy draws nothing"
    assert len(plan("streams=2", "temperature=0.7", "method.draws=independent,coupled")) == 2


def test_one_profile_for_all_contrasts_of_a_model():
    planned = plan("streams=1,2,3", "temperature=0,0.5", profile=True)
    assert [cell.kind for cell in planned] == ["profile"] + ["contrast"] * 6


def test_a_profile_does_not_depend_on_the_prompts():
    ids = {plan("streams=2", f"prompts={name}", profile=True)[0].id for name in ("short", "default")}
    assert len(ids) == 1


def test_a_profile_is_the_same_for_all_seeds_and_a_contrast_is_not():
    planned = plan("streams=2", "seed=1,2,3", profile=True)
    assert [cell.kind for cell in planned] == ["profile"] + ["contrast"] * 3
    assert "seed" not in planned[0].config


def test_a_profile_depends_on_its_own_settings_only():
    ids = {name: plan("streams=2", name, profile=True)[0].id for name in
           ("seed=1", "measure.per_class=2", "measure.step_widths=3", "peers.llama_bench=/a/llama-bench",
            "peers.llama_bench=/b/llama-bench")}  # fmt: skip
    assert ids["measure.per_class=2"] == ids["seed=1"] != ids["measure.step_widths=3"]
    assert ids["peers.llama_bench=/a/llama-bench"] == ids["peers.llama_bench=/b/llama-bench"] != ids["seed=1"]


def test_the_widths_of_a_program_beside_count_where_it_runs_and_they_are_not_the_usual_ones():
    def planned(*overrides: str):
        return plan("streams=2", *overrides, profile=True)[0]

    batched = "peers.llama_batched_bench=b"
    assert planned("peers.widths=[1,8]").id == planned().id, "no such program runs"
    assert planned(batched, "peers.widths=[1,2,4]").id == planned(batched).id
    wide = planned(batched, "peers.widths=[1,8]")
    assert wide.id != planned(batched).id
    assert wide.config["peers"]["widths"] == [1, 8]
    assert fault_in("cell.yaml", wide.config) == "", "a planned cell can be read once it is stored"
    assert planned(batched, "peers.widths=[1]").work < planned(batched).work < wide.work, "eight rows beside four"


def test_a_cell_knows_its_folder_its_machine_and_the_programs_beside_it(tmp_path):
    (cell,) = plan("streams=2", "peers.llama_bench=/a/llama-bench", root=tmp_path)
    assert cell.folder == tmp_path / "box" / cell.id
    assert cell.config["machine"] == "box"
    assert cell.peers == {"llama_bench": "/a/llama-bench", "llama_batched_bench": None}
    assert "peers" not in cell.config


def test_plain_decoding_by_name_has_one_stream():
    (cell,) = plan("method=autoregressive", "streams=1")
    assert (cell.config["streams"], cell.config["method"]["name"]) == (1, "autoregressive")


def test_only_groups_of_independent_prompts_take_more_than_their_share_of_a_class():
    def count(*overrides: str) -> int:
        (cell,) = plan("prompts=default", "measure.classes=[prose,question]", *overrides)
        return len(cell.config["prompts"]["items"])

    assert count("streams=8") == 2
    assert count("streams=2", "measure.per_class=3") == 6
    assert count("method=packed", "streams=2") == 4


def test_labels_tell_cells_apart():
    warm = plan("streams=2", "temperature=0.5", "method.draws=coupled")[0]
    assert warm.label == "a stagger x2 emission=published draws=coupled T=0.5"
    assert plan("streams=2")[0].label == "a stagger x2 emission=published T=0"
    assert plan("streams=2", profile=True)[0].label == "a step cost, bandwidth, memory"


def test_work_grows_with_what_has_to_be_decoded():
    def work(*overrides: str, **more: bool) -> float:
        return plan(*overrides, **more)[0].work

    assert work("streams=4") > work("streams=2") > work("streams=1")
    assert work("streams=4", "method=packed") > work("streams=4"), "its baseline decodes every answer"
    assert work("streams=2", "n_predict=40") > work("streams=2")
    profile = work("streams=2", profile=True)
    assert profile > work("streams=2", "measure.step_widths=4", profile=True)
    assert work("streams=2", "peers.llama_batched_bench=b", profile=True) > 1.5 * profile
    lookups = [work("method=lookup", f"method.draft={draft}") for draft in (3, 15)]
    assert lookups[0] < lookups[1], "wider decodes cost more"


def test_a_model_that_no_configuration_names_goes_by_its_file():
    (cell,) = plan("streams=2")
    assert cell.config["model"]["name"] == "a"
    (part,) = plan("streams=2", "model.path=/m/Big-27B-Q6_K-00001-of-00003.gguf")
    assert part.config["model"]["name"] == "Big-27B-Q6_K"
    assert part.id == cell.id, "the weights' hash says what a model is, its file's name does not"
    (named,) = plan("streams=2", "model.name=mine")
    assert named.config["model"]["name"] == "mine"
    assert named.id != cell.id


def test_a_link_to_a_model_keeps_the_name_that_a_person_gave_it(tmp_path, monkeypatch):
    """Hugging Face's download folder links names to files that are called by their hash."""
    (tmp_path / "0a1b2c").write_text("")
    (tmp_path / "Big.gguf").symlink_to(tmp_path / "0a1b2c")
    monkeypatch.setenv("HOME", str(tmp_path))
    (config,) = compose_points(["model=gguf", "model.path='~/Big.gguf'"])
    assert model_path(config) == tmp_path / "Big.gguf"


def test_records_do_not_tell_where_the_model_lay():
    (cell,) = plan("streams=2")
    assert cell.config["model"]["path"] == "a.gguf"


def test_a_group_of_independent_prompts_keeps_the_prompts_it_needs():
    (cell,) = plan("method=packed", "streams=3")
    assert len(cell.config["prompts"]["items"]) == 6, "the short set has one a class, so groups mix classes"


def test_an_unknown_class_names_the_nearest():
    with pytest.raises(UserError, match="did you mean 'prose'"):
        plan("streams=2", "measure.classes=[pros]")


def test_a_set_without_prompts_is_a_sentence():
    with pytest.raises(UserError, match="'short' has no prompts"):
        plan("streams=2", "prompts.items=[]")


def test_state_is_read_from_the_folder(tmp_path):
    (cell,) = plan("streams=2", root=tmp_path)
    assert cell.state == "missing"
    write_cell(cell.folder, config=cell.config, env={}, status={"state": "failed", "reason": "x"})
    assert cell.state == "failed"


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [(["model=gguf"], "give it with model.path=FILE"),
     (["model=gguf", "model.package=no-such-package", "model.file=x"], "is not installed; run `make setup`"),
     (["model.file=other.gguf"], "has no file other.gguf")],
)  # fmt: skip
def test_a_model_that_cannot_be_found(overrides, sentence):
    (config,) = compose_points(overrides)
    with pytest.raises(UserError, match=sentence):
        model_path(config)


def test_a_file_without_a_package_is_in_this_repository():
    (point,) = compose_points(["model=pti-tiny"])
    assert model_path(point) == Path(__file__).resolve().parents[2] / "models" / "pti-tiny" / "pti-tiny.Q8_0.gguf"
    with pytest.raises(UserError, match=r"nowhere.gguf of model=pti-tiny is not in this checkout; run `git checkout"):
        model_path(*compose_points(["model=pti-tiny", "model.file=nowhere.gguf"]))


def test_a_domain_is_kept_where_a_set_names_one():
    (cell,) = plan("method=jacobi", "prompts=pydoc")
    assert cell.config["prompts"]["domain"] == "pydoc"
    (other,) = plan("method=jacobi")
    assert other.config["prompts"]["domain"] == ""


def test_a_domain_that_is_no_class_is_a_sentence():
    with pytest.raises(UserError, match=r"prompts\.domain=pose is no class.*did you mean 'prose'"):
        plan("streams=2", "prompts.domain=pose")


def test_files_beside_the_model_are_told_by_what_they_hold(tmp_path):
    for folder, content in (("a", b"1"), ("b", b"1"), ("c", b"2")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "small.gguf").write_bytes(content)
    same, moved, other = (plan("method=draft", f"method.draft_model={tmp_path / name}/small.gguf")[0] for name in "abc")
    assert same.id == moved.id != other.id
    assert same.config["method"]["parameters"]["draft_model"] == "small.gguf", "records travel, folders do not"
    assert same.files == {"draft_model": tmp_path / "a" / "small.gguf"}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [("method=draft", "method=draft needs a file; give it with method.draft_model=FILE"),
     ("method.adapter=/nowhere.gguf", "method.adapter=/nowhere.gguf is no file")],
)  # fmt: skip
def test_a_drafter_without_its_file_is_one_sentence(given, sentence):
    with pytest.raises(UserError, match=sentence):
        plan("method=adapter", given) if given.startswith("method.") else plan(given)


def test_parameters_of_a_drafter_are_those_of_a_packed_answer_too():
    plain, drafted, longer = (plan("method=packed", "streams=2", *more)[0] for more in (
        (), ("method.drafter=mtp", "method.draft=1"), ("method.drafter=mtp", "method.draft=2")))  # fmt: skip
    assert len({plain.id, drafted.id, longer.id}) == 3
    with pytest.raises(UserError, match="method=packed with drafter=none has no parameter 'draft'"):
        plan("method=packed", "streams=2", "method.draft=5")
    assert drafted.label == "a packed x2 drafter=mtp draft=1 T=0"


def test_a_rollback_counts_where_it_was_asked_for():
    found = [plan("method=lookup", f"method.rollback={name}")[0] for name in ("auto", "checkpoint")]
    assert found[0].id == plan("method=lookup")[0].id != found[1].id
    with pytest.raises(UserError, match="method=stagger has no parameter 'rollback'"):
        plan("streams=2", "method.rollback=checkpoint")


def test_counters_take_the_place_of_a_contrast_and_are_the_same_for_all_methods():
    (cell,) = plan("counters=auto", "method=stagger,packed", "streams=1,2", profile=True)
    assert (cell.kind, cell.label) == ("counters", "a counters of a decode")
    assert cell.config["measure"] == {"step_depth": 32, "counted_widths": [1, 2, 4, 8]}
    assert plan("counters=ncu")[0].id != cell.id != plan("counters=auto", "measure.counted_widths=[1,4]")[0].id
    assert plan("measure.counted_widths=[1]", "streams=2")[0].id == plan("streams=2")[0].id


def test_a_profile_comes_before_the_first_cell_that_it_prices():
    kinds = [cell.kind for cell in plan("streams=2", "engine.type_k=f16,q8_0", profile=True)]
    assert kinds == ["profile", "contrast"] * 2


def test_each_host_of_a_make_has_a_profile_and_shares_the_rest(tmp_path: Path):
    def planned(host: str):
        configs = compose_points([*MODEL, "streams=2"])
        configs[0].engine.threads = 2
        return cells(configs, tmp_path, "box", "b", {model_path(configs[0]): "w"}, host=host)

    def finish(cell, host: str, state: str = "done"):
        env = {"machine": {"name": "box"}, "engine": {"build": "b"}, "host": host}
        write_cell(cell.folder, config=cell.config, env=env, status={"state": state, "reason": "", "seconds": 1.0})

    first, contrast = planned("1a")
    assert [cell.id for cell in planned("2b")] == [first.id, contrast.id], "nobody has measured one yet"
    finish(first, "1a", "failed")
    assert planned("2b")[0].id == first.id
    finish(first, "1a")
    assert planned("1a")[0].id == planned("")[0].id == first.id
    own, same = planned("2b")
    assert own.id != first.id and same.id == contrast.id and own.config == {**first.config, "host": "2b"}
    finish(own, "2b")
    assert planned("2b")[0].id == own.id and planned("2b")[0].state == "done" and planned("1a")[0].id == first.id
    finish(first, "")
    assert planned("2b")[0].id == first.id, "whose it is nobody knows, so that it is taken for this host's"


def test_a_trial_asks_for_no_measurement_that_it_does_not_make():
    """It is graded by a rule of its own, and to the process of one arm the other arm's work is somebody else's."""
    plain = plan("streams=2")[0].config["measure"]
    assert plain["sharp"] and plain["repeats"]
    setting = plan("treatment.engine.type_k=q8_0")[0].config["measure"]
    assert "sharp" not in setting and setting["repeats"]
    apart = plan("treatment.engine.repack=false")[0].config["measure"]
    assert not {"sharp", "repeats"} & apart.keys()


def test_a_turn_that_nobody_set_is_in_no_id():
    assert "chunk" not in plan("streams=2")[0].config["measure"]
    assert plan("streams=2", "measure.chunk=0")[0].id == plan("streams=2")[0].id
    assert plan("streams=2", "measure.chunk=8")[0].id != plan("streams=2")[0].id
