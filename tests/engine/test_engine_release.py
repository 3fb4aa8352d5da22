"""A release is taken when its checksum is the published one, and over TLS alone."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from tests.support.engine.engine_machine import CHECKSUMS, NAMES, PINNED, TARBALL, checksums, tarball

if TYPE_CHECKING:
    from tests.support.engine.engine_machine import Answer, Files, Machine, Serve

pytestmark = pytest.mark.tools  # each takes a release through tar and TLS


def test_a_release_with_the_published_checksum_is_taken_and_kept(machine: Machine, serve: Serve) -> None:
    files: Files = {TARBALL: tarball(extra=("../../evil/pulumi-python-outside",))}
    files[CHECKSUMS] = checksums(files[TARBALL])
    machine.environ["AMLSTACK_PULUMI_RELEASES"] = serve(files)
    assert machine.found() == ("release", PINNED)
    (folder,) = machine.cached
    content = {path.name for path in (machine.root / "cache" / "engine" / folder).iterdir()}
    # Only what Python needs is unpacked, and by its last name: nothing climbs out of the folder.
    assert content == {*NAMES, "engine.json", "pulumi-python-outside"}

    files.clear()
    assert machine.found() == ("release", PINNED)


def test_a_release_whose_checksum_differs_is_refused_and_nothing_of_it_stays(machine: Machine, serve: Serve) -> None:
    machine.install_go()
    machine.environ["AMLSTACK_PULUMI_RELEASES"] = serve({TARBALL: tarball(), CHECKSUMS: checksums(b"another")})
    done = machine.run()
    assert done.returncode == 1
    assert hashlib.sha256(b"another").hexdigest() in done.stderr
    assert "AMLSTACK_ENGINE=build" in done.stderr
    assert (machine.cached, machine.builds, done.stdout) == ([], [], "")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({TARBALL: (200, {"Content-Length": "999999"}, b"half")}, "broke off"),
        ({TARBALL: (503, {}, b"")}, "HTTP 503"),
        ({CHECKSUMS: (404, {}, b"")}, "HTTP 404"),
        ({CHECKSUMS: b"<html>please log in</html>"}, "names no SHA-256"),
    ],
    ids=["interrupted", "unavailable", "unpublished", "captive-portal"],
)
def test_a_release_that_cannot_be_had_leaves_nothing_and_the_build_is_next(
    machine: Machine,
    serve: Serve,
    change: Files,
    reason: str,
) -> None:
    machine.install_go()
    machine.environ["AMLSTACK_PULUMI_RELEASES"] = serve({TARBALL: tarball(), CHECKSUMS: checksums(tarball()), **change})
    done = machine.run("--json")
    assert reason in done.stderr
    assert json.loads(done.stdout)["source"] == "build"
    assert [name for name in machine.cached if "release" in name] == []


def test_a_release_that_does_not_run_here_is_refused(machine: Machine, serve: Serve) -> None:
    wrong = tarball(version="3.1.0")
    machine.environ["AMLSTACK_PULUMI_RELEASES"] = serve({TARBALL: wrong, CHECKSUMS: checksums(wrong)})
    done = machine.run()
    assert done.returncode == 1
    assert f"did not answer v{PINNED}" in done.stderr
    assert machine.cached == []


@pytest.mark.parametrize("place", ["http://example.org/releases", "ftp://example.org"])
def test_releases_are_fetched_over_tls_only(machine: Machine, place: str) -> None:
    machine.environ["AMLSTACK_PULUMI_RELEASES"] = place
    done = machine.run()
    assert done.returncode == 1
    assert "https only" in done.stderr


def test_a_redirect_does_not_lead_out_of_tls(machine: Machine, serve: Serve) -> None:
    away: Answer = (302, {"Location": "http://example.org/checksums.txt"}, b"")
    machine.environ["AMLSTACK_PULUMI_RELEASES"] = serve({CHECKSUMS: away})
    done = machine.run()
    assert done.returncode == 1
    assert "https only" in done.stderr
