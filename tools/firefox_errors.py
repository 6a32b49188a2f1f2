"""What goes wrong on pages in Firefox: `python tools/firefox_errors.py PAGE.html ...`.

Every page is served from this machine with a script before all others that tells what the console
would show as errors or warnings. The program prints them, and fails if there are any.
"""

import http.server
import json
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

_WATCH = """<script>
const tell = (kind, text) => fetch("/told", { method: "POST", body: JSON.stringify([kind, text]) });
window.addEventListener("error", (event) => tell("error", event.message));
window.addEventListener("unhandledrejection", (event) => tell("rejection", String(event.reason)));
for (const kind of ["error", "warn"]) console[kind] = (...words) => tell(kind, words.join(" "));
window.addEventListener("load", () => setTimeout(() => {
  const ready = performance.getEntriesByName("retrax-ready").length;
  const drawn = document.getElementById("scene") ? "drawn in 3-D" : "without WebGL";
  tell("done", `${ready} ${document.getElementById("clock")?.textContent ?? ""} ${drawn}`);
}, 4000));
</script>"""


def told_by(page: Path, seconds: float = 60.0) -> list[tuple[str, str]]:
    """What a page tells in Firefox, the last of it when it is done."""
    text = page.read_text(encoding="utf-8").replace("<head>", "<head>" + _WATCH, 1)
    heard: list[tuple[str, str]] = []
    done = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(text.encode() if self.path == "/" else b"")

        def do_POST(self) -> None:
            kind, words = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            heard.append((kind, words))
            self.send_response(204)
            self.end_headers()
            if kind == "done":
                done.set()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing is said of requests."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as profile:
        # Pictures without a graphics card.
        (Path(profile) / "user.js").write_text('user_pref("webgl.force-enabled", true);\n')
        address = f"http://127.0.0.1:{server.server_port}/"
        command = ["firefox", "--headless", "--no-remote", "--profile", profile, address]
        browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        done.wait(seconds)
        browser.terminate()
        browser.wait(20)
    server.shutdown()
    return heard


if __name__ == "__main__":
    bad = False
    for name in sys.argv[1:]:
        heard = told_by(Path(name))
        wrong = [one for one in heard if one[0] != "done"]
        bad = bad or bool(wrong) or len(wrong) == len(heard)
        print(f"{name}: {wrong or 'nothing wrong'}; {[w for kind, w in heard if kind == 'done']}")
    sys.exit(bad)
