"""The files of /etc that isolated pods see."""

from pathlib import Path

from dlctl.local.node.network.etc_files import machine_hosts, write_etc


def test_hosts_of_the_machine_hold_in_pods_except_its_loopback(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    kept = "192.0.2.7 data.corp # the file server"
    path.write_text(f"127.0.0.1 localhost\n127.0.1.1 laptop\n::1 ip6\n\n# none\n{kept}\nnonsense\n")
    assert machine_hosts(path) == [kept]


def test_names_are_looked_up_outside_only_if_the_outside_is_reachable(tmp_path: Path) -> None:
    for outside, hosts in ((True, "hosts: files dns"), (False, "hosts: files")):
        write_etc(tmp_path, outside_names=outside)
        assert hosts in (tmp_path / "nsswitch.conf").read_text().splitlines()
