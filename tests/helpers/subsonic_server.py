"""supysonic on loopback, with music that it has scanned; and a server made of answers."""

import json
import logging
import tempfile
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

USER, PASSWORD = "ann", "se cret&+"
DEEP = b'{"subsonic-response": {"status": "ok", "x": ' + b"[" * 10**5 + b"]" * 10**5 + b"}}"
ODD = {  # answers of another shape than the protocol's
    "null": {"searchResult3": None},
    "no songs": {"searchResult3": {"song": None}},
    "a text": {"searchResult3": "many"},
    "a text as songs": {"searchResult3": {"song": "many"}},
    "songs of text": {"searchResult3": {"song": ["Blue", None, 3]}},
    "error of null": {"status": "failed", "error": None},
    "error of text": {"status": "failed", "error": "no"},
    "error code of text": {"status": "failed", "error": {"code": "forty", "message": ["x"]}},
    "status of a list": {"status": ["ok"]},
    "playlists of null": {"playlists": None},
    "playlists of text": {"playlists": {"playlist": "Loud"}},
    "playlists of numbers": {"playlists": {"playlist": [1, 2]}},
    "playlist without id": {"playlists": {"playlist": [{"name": "Loud"}]}},
    "scan of text": {"scanStatus": "yes"},
    "a list": (200, {}, b"[]"),
    "a list inside": (200, {}, b'{"subsonic-response": []}'),
    "null inside": (200, {}, b'{"subsonic-response": null}'),
    "a number of 5,000 digits": (200, {}, b'{"subsonic-response": {"x": ' + b"9" * 5000 + b"}}"),
    "deep": (200, {}, DEEP),
    "not text": (200, {}, b"\xff\xfe\x00"),
    "nothing": (200, {}, b""),
    "no header": (302, {"Location": "http://[x"}, b""),
    "escape sequences": {"status": "failed", "error": {"message": "\x1b[2J\u202e" * 99}},
}


@contextmanager
def supysonic(music, work):
    """A server of the music in a folder; gives its address with the user, and its port."""
    from supysonic import db
    from supysonic.config import DefaultConfig
    from supysonic.daemon.server import Daemon
    from supysonic.managers.folder import FolderManager
    from supysonic.managers.user import UserManager
    from supysonic.scanner import Scanner
    from supysonic.web import create_application
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    config, sockets = DefaultConfig(), tempfile.TemporaryDirectory()  # a path that is not too long
    config.BASE = config.BASE | {"database_uri": f"sqlite:///{work / 'supysonic.db'}"}
    config.WEBAPP = config.WEBAPP | {"cache_dir": str(work), "log_file": None}
    config.DAEMON = config.DAEMON | {"socket": f"{sockets.name}/s", "run_watcher": False}
    app = create_application(config)
    db.open_connection()
    UserManager.add(USER, PASSWORD, admin=True)
    FolderManager.add("music", str(music))
    scanner = Scanner()
    scanner.queue_folder("music")
    scanner.run()
    db.close_connection()
    daemon = Daemon(config)
    server = make_server("127.0.0.1", 0, app, threaded=True)
    threads = [threading.Thread(target=work) for work in (daemon.run, server.serve_forever)]
    for thread in threads:
        thread.start()
    try:
        yield f"http://{USER}@127.0.0.1:{server.port}", server.port
    finally:
        daemon.terminate()
        server.shutdown()
        for thread in threads:
            thread.join()
        server.server_close()
        db.release_database()
        sockets.cleanup()


@contextmanager
def answering(answer):
    """A server that answers (method, form) with a record, or (status, headers, bytes)."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            given = answer(Path(self.path).stem, form)
            if isinstance(given, dict):
                body = json.dumps({"subsonic-response": {"status": "ok"} | given}).encode()
                given = (200, {}, body)
            self.send_response(given[0])
            for pair in given[1].items():
                self.send_header(*pair)
            self.end_headers()
            self.wfile.write(given[2])

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://{USER}@127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
