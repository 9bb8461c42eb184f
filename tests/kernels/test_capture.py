"""The profiler is asked for one case a file, and what it prints is kept as it is."""

import pytest

from kernels import capture


@pytest.fixture
def ncu(monkeypatch, tmp_path):
    def install(script):
        fake = tmp_path / "bin" / "ncu"
        fake.parent.mkdir()
        fake.write_text("#!/bin/sh\n" + script)
        fake.chmod(0o755)
        monkeypatch.setenv("PATH", f"{fake.parent}:/bin:/usr/bin")

    return install


def test_output_is_kept_unedited(ncu, tmp_path):
    ncu('echo "==PROF== Connected"\necho \'"ID","Metric"\'\necho \'"0","1,024"\'\necho noise >&2\n')
    asked = ["--formats", "Q6_K", "--streams", "4", "--shapes", "16x256"]
    assert capture.main(["--out", str(tmp_path / "c"), *asked]) == 0
    path = tmp_path / "c" / "ncu_packed_mma_Q6_K_n4_16x256.csv"
    assert path.read_text() == '==PROF== Connected\n"ID","Metric"\n"0","1,024"\n'
    assert list((tmp_path / "c").iterdir()) == [path]


def test_a_profiler_that_fails_is_quoted(ncu, tmp_path, capsys):
    ncu('echo "==ERROR== no permission" >&2\nexit 1\n')
    assert capture.main(["--out", str(tmp_path / "c"), "--streams", "1"]) == 2
    assert "ncu failed on packed_mma Q8_0 n=1 17408 x 5120: ==ERROR== no permission" in capsys.readouterr().err
    assert not (tmp_path / "c").exists()


def test_no_profiler(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert capture.main(["--out", str(tmp_path / "c")]) == 2
    assert "ncu is not on the PATH" in capsys.readouterr().err


def test_the_peer_is_profiled_by_its_own_name(tmp_path):
    command = capture.command(capture.PEER_NAME, "Q6_K", 4, 17408, 5120, tmp_path)
    assert command[command.index("--kernel-name") + 1] == "regex:mul_mat_vec_q"
    assert command[command.index("--peer") + 1] == str(tmp_path)
    assert "--clock-control" in command and command[command.index("--clock-control") + 1] == "none"
