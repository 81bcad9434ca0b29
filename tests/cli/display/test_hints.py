"""What helps after a failure, by the last lines of a program."""

import pytest

from dlctl.cli.display.hints import hints


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        pytest.param(
            "cannot start the container: train: No such file or directory",
            "file not found: train: is the image mapped? see --image, or --python for a script; "
            "own code needs --mount",
            id="program",
        ),
        pytest.param(
            "python3: can't open file '/opt/app/train.py': [Errno 2] No such file or directory",
            "file not found: /opt/app/train.py: --mount DIR:/opt/app shows a directory of this"
            " machine there",
            id="script",
        ),
        pytest.param(
            "python3: can't open file '/tmp/dlctl-a1/pods/b-2/work/train.py': [Errno 2] No such",
            "file not found: train.py: --workdir DIR is where containers start",
            id="relative script",
        ),
        pytest.param(
            "FileNotFoundError: [Errno 2] No such file or directory: '/data/train.csv'",
            "file not found: /data/train.csv: --mount DIR:/data shows a directory of this"
            " machine there",
            id="file",
        ),
        pytest.param(
            "python3: can't open file '/train.py': [Errno 2] No such file or directory",
            "file not found: /train.py: --mount PATH:/train.py shows a file or directory of"
            " this machine there",
            id="script at the root",
        ),
        pytest.param(
            "FileNotFoundError: [Errno 2] No such file or directory: 'data/train.csv'",
            "file not found: data/train.csv: --workdir DIR is where containers start",
            id="relative file",
        ),
        pytest.param(
            "PermissionError: [Errno 13] Permission denied: '/checkpoints'",
            "no access to /checkpoints: --mount PATH:/checkpoints shows a file or directory"
            " of this machine there",
            id="directory of another user",
        ),
        pytest.param(
            "OSError: [Errno 30] Read-only file system: '/models/a/1.pt'",
            "no access to /models/a/1.pt: --mount DIR:/models/a shows a directory of this"
            " machine there",
            id="read-only directory",
        ),
        pytest.param(
            "cannot start the container: ./train.sh: Permission denied",
            "not executable: ./train.sh: `chmod +x` it, or name its interpreter in the command",
            id="no execute bit",
        ),
        pytest.param(
            "cannot start the container: ./train: Exec format error",
            "no program of this machine: ./train: does a script begin with a line such as"
            " #!/bin/sh?",
            id="no first line",
        ),
        *(
            pytest.param(
                line,
                "program not found: torchrun: is the image mapped? see --image, or --python for a "
                "script",
                id=id_,
            )
            for id_, line in (
                ("dash", "sh: 1: torchrun: not found"),
                ("bash", "bash: line 1: torchrun: command not found"),
                ("script", "/app/run.sh: line 12: torchrun: command not found"),
                (
                    "subprocess",
                    (
                        '  File "/usr/lib/python3.11/subprocess.py", line 1, in _execute_child\n'
                        "    raise child_exception_type(errno_num, err_msg, err_filename)\n"
                        "FileNotFoundError: [Errno 2] No such file or directory: 'torchrun'"
                    ),
                ),
            )
        ),
        pytest.param(
            "ModuleNotFoundError: No module named 'torch.nn'",
            "the container's Python has no module torch.nn: map the image to an environment"
            " that has it, see --image; for a script see --python, or pass its path on with"
            " --env PYTHONPATH",
            id="module",
        ),
        pytest.param(
            "RuntimeError: No CUDA GPUs are available",
            "a container sees only the GPUs that it requests: --gpus N for a script,"
            " resources.limits in a manifest; --ignore-gpus shows all",
            id="GPU",
        ),
        *(
            pytest.param(
                f"  File \"{place}\", line 679, in __getitem__\n{code}KeyError: 'HF_TOKEN'",
                "no variable HF_TOKEN: those of your shell are not passed on: --env HF_TOKEN"
                " for a script, env in a manifest",
                id=id_,
            )
            for id_, place, code in (
                ("variable", "<frozen os>", ""),
                ("variable of 3.10", "/usr/lib/python3.10/os.py", "    raise KeyError(key)\n"),
            )
        ),
        *(
            pytest.param(
                f"  File \"<frozen os>\", line 679, in __getitem__\nKeyError: '{name}'",
                f"no variable {name}: {kind} sets it; choose the kind by what the program reads",
                id=name,
            )
            for name, kind in (
                ("RANK", "a PyTorchJob with a Master"),
                ("TF_CONFIG", "a TFJob of more than one replica"),
            )
        ),
        pytest.param(
            "OSError: [Errno 98] Address already in use",
            "the port is in use by another program of the pod, or on the host network, of"
            " this machine",
            id="port",
        ),
        pytest.param(
            "/usr/bin/python3: No module named my.pkg.__main__; 'my.pkg' is a package and cannot be"
            " directly executed",
            "my.pkg is a package without a __main__.py: name one of its modules, such as"
            " my.pkg.train",
            id="package",
        ),
        pytest.param(
            "There are not enough slots available in the system to satisfy the 4",
            "mpirun starts more processes than the workers have slots: change -np, the number of"
            " workers, or slotsPerWorker",
            id="slots",
        ),
        pytest.param(
            "mpirun has detected an attempt to run as root.",
            "mpirun refuses to run as root, as it does in most images: add --allow-run-as-root"
            " to its arguments",
            id="root",
        ),
        *(
            pytest.param(
                line,
                "programs have no stdin: pass values as arguments or variables; for a"
                " debugger such as debugpy, see dlctl up and dlctl port-forward",
                id=id_,
            )
            for id_, line in (
                ("input", "EOFError: EOF when reading a line"),
                ("breakpoint", "bdb.BdbQuit"),
            )
        ),
        *(
            pytest.param(
                line,
                "killed by SIGKILL: is this machine out of memory? `dmesg` names the"
                " processes that the kernel has killed",
                id=id_,
            )
            for id_, line in (
                ("torchrun", "  traceback : Signal 9 (SIGKILL) received by PID 71"),
                ("mpirun", "mpirun noticed that process rank 1 exited on signal 9 (Killed)."),
                ("data loader", "RuntimeError: DataLoader worker is killed by signal: Killed."),
            )
        ),
    ],
)
def test_known_cause_gets_one_hint(line: str, hint: str) -> None:
    assert list(hints(["before", line])) == [hint]


def test_other_lines_get_no_hint() -> None:
    assert list(hints(["Traceback (most recent call last):", "KeyError: 'x'"])) == []
