"""Every attack that a web site, another program or a wrong link can try: refused, and nothing has happened."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from websockets.exceptions import InvalidStatus

from studio_client import Client, Running

WRITES = [
    ("POST", "/api/fit", {}),
    ("DELETE", "/api/fit", {}),
    ("PUT", "/api/gold", {"sequence": "s00", "start": 0, "end": 1, "label": "+1"}),
    ("DELETE", "/api/gold", {}),
    ("PUT", "/api/sources/high", {"text": "def high(v):\n    return 1\n", "digest": ""}),
    ("POST", "/api/export/csv", {}),
    ("POST", "/api/project", {"sample": "sensor"}),
]
READS = ["/", "/api/project", "/api/sequences", "/api/gold", "/media/s00", "/api/report", "/assets/studio.js"]


def refused(client: Client, method: str, path: str, plain: object = None, **headers: str) -> None:
    body = None if plain is None else json.dumps(plain).encode()
    status, answered, _ = client.raw(method, path, body, **headers)
    assert status == 403, (method, path, headers)
    assert "set-cookie" not in answered


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "localhost:1", "[::1]:{port}", ""]
)
def test_a_foreign_host_is_refused(client: Client, host: str) -> None:
    for path in (*READS, "/open?token=x"):
        refused(client, "GET", path, Host=host.format(port=client.port) or "0.0.0.0")


def test_localhost_is_our_own_name_too(client: Client) -> None:
    status, _, _ = client.raw("GET", "/api/project", Host=f"localhost:{client.port}")
    assert status == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:3000", "https://127.0.0.1:{port}"])
def test_a_foreign_origin_is_refused(client: Client, origin: str) -> None:
    for method, path, plain in WRITES:
        refused(client, method, path, plain, Origin=origin.format(port=client.port))
    refused(client, "GET", "/api/project", Origin=origin.format(port=client.port))


def test_a_write_without_origin_is_refused(client: Client) -> None:
    for method, path, plain in WRITES:
        refused(client, method, path, plain, Origin="")


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_the_browser_calls_another_site_is_refused(client: Client, site: str) -> None:
    # Another port of this machine is "same-site", and its requests bear the cookie.
    for path in READS:
        refused(client, "GET", path, Sec_Fetch_Site=site)
    for method, path, plain in WRITES:
        refused(client, method, path, plain, Sec_Fetch_Site=site)


def test_without_the_cookie_nothing_is_shown(client: Client) -> None:
    stranger = Client(client.port)
    for path in READS:
        refused(stranger, "GET", path)
    for method, path, plain in WRITES:
        refused(stranger, method, path, plain)
    for cookie in (
        f"dugong_{client.port}=",
        f"dugong_{client.port}=x",
        "dugong_1=" + client.cookie.partition("=")[2],
        "=",
    ):
        refused(stranger, "GET", "/api/project", Cookie=cookie)


def test_a_link_works_once_and_is_not_the_cookie(running: Running, client: Client) -> None:
    path = running.link[running.link.index("/open") :]
    refused(Client(client.port), "GET", path)
    assert running.link.partition("token=")[2] not in client.cookie
    for wrong in ("/open", "/open?token=", "/open?token=abc", "/open?token=%ff"):
        refused(Client(client.port), "GET", wrong)


def test_a_form_of_another_site_is_no_json(client: Client) -> None:
    status, _, _ = client.raw("POST", "/api/export/csv", b"{}", Content_Type="text/plain")
    assert status == 400


@pytest.mark.parametrize(
    "changes",
    [
        {"origin": "http://evil.example"},
        {"origin": None},
        {"additional_headers": {}},
        {"additional_headers": {"Cookie": "dugong_1=x"}},
    ],
)
def test_a_foreign_socket_is_refused(client: Client, changes: dict[str, object]) -> None:
    with pytest.raises(InvalidStatus) as error, client.socket(**changes):
        pass
    assert error.value.response.status_code == 403


def test_a_socket_with_a_foreign_host_or_site_is_refused(client: Client) -> None:
    for header in ({"Host": "evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        headers = {"Cookie": client.cookie, **header}
        with pytest.raises(InvalidStatus) as error, client.socket(additional_headers=headers):
            pass
        assert error.value.response.status_code in (400, 403)


def test_every_answer_forbids_what_a_page_does_not_need(client: Client) -> None:
    for path in ("/", "/api/project", "/nowhere/else"):
        _, headers, _ = client.raw("GET", path)
        rules = dict(rule.strip().split(" ", 1) for rule in headers["content-security-policy"].split(";"))
        assert rules["default-src"] == "'none'"
        assert rules["script-src"] == "'self'"
        assert rules["frame-ancestors"] == "'none'"
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers


def test_the_cookie_is_for_us_alone(running: Running, client: Client) -> None:
    # A second link needs the terminal, so the header is looked at where it is made.
    from dugong.studio.app import Keys

    header = Keys(7).set_cookie()
    assert header.startswith("dugong_7=")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= {part.strip() for part in header.split(";")}
    assert client.cookie.startswith(f"dugong_{running.port}=")


def test_only_loopback_listens(running: Running, client: Client) -> None:
    import socket

    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)} - {"127.0.0.1"}
    for address in others:
        with socket.socket() as one:
            one.settimeout(1)
            assert one.connect_ex((address, running.port)) != 0 or address.startswith("127.")


TRAVERSALS = [
    "../../../../etc/passwd",
    "..%2f..%2f..%2fetc%2fpasswd",
    "%2e%2e/%2e%2e/etc/passwd",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "s00/../../project.toml",
    "s00%00",
    "project.toml",
]


@pytest.mark.parametrize("path", TRAVERSALS)
def test_paths_are_no_ids(client: Client, path: str) -> None:
    for address in (
        f"/media/{path}",
        f"/api/sequences/{path}",
        f"/api/sequences/{path}/tracks",
        f"/api/explain/{path}/0",
    ):
        status, _, content = client.raw("GET", address)
        assert status in (400, 404), address
        assert b"root:" not in content
    for address in (f"/assets/{path}", f"/api/export/{path}", f"/api/sources/{path}"):
        status, _, content = client.raw("GET", address)
        assert status in (200, 400, 404), address
        assert b"root:" not in content
        assert b"prior" not in content


def test_an_imported_file_cannot_choose_where_it_lies(client: Client) -> None:
    for name in ("../../evil.csv", "..%2fevil.csv", "", ".", "..", ".bashrc"):
        status, plain = client.json("POST", f"/api/import?name={name}", {})
        assert status in (400, 422), (name, plain)


@pytest.mark.parametrize("package", ["starlette", "uvicorn", "websockets"])
def test_without_its_packages_the_studio_says_what_to_install(package: str) -> None:
    script = (
        f"import sys\nsys.modules[{package!r}] = None\nfrom dugong.cli import exit_code\n"
        "sys.exit(10 * exit_code(['studio', '--help']) + exit_code(['studio', '--no-browser']))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert f"the studio needs the package '{package}'" in done.stderr
    assert "dugong-ws[studio]" in done.stderr
