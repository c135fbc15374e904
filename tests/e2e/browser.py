# SPDX-License-Identifier: GPL-2.0-only
"""A headless Chromium, driven through its debugging pipe: one page, opened from a file, without a network."""
import base64
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import time

from harness import Skip

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class Browser:
    def __init__(self, folder, width=1280, height=1000, dark=False):
        program = next((found for found in map(shutil.which, NAMES) if found), None)
        if not program:
            raise Skip("there is no Chromium (Debian: chromium)")
        child_reads, self.write_fd = os.pipe()
        self.read_fd, child_writes = os.pipe()
        self.number, self.rest, self.events, self.session = 0, b"", [], None
        arguments = [program, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--hide-scrollbars",
                     "--no-first-run", "--disable-extensions", f"--user-data-dir={folder}/profile",
                     f"--window-size={width},{height}", "--force-device-scale-factor=1"]
        if dark:
            arguments.append("--blink-settings=preferredColorScheme=0")

        def set_up():
            # The browser reads commands from 3 and writes answers to 4; duplicates first, for either may be 3 or 4.
            os.setsid()
            reads, writes = os.dup(child_reads), os.dup(child_writes)
            high_reads, high_writes = os.dup2(reads, 63), os.dup2(writes, 62)
            os.dup2(high_reads, 3)
            os.dup2(high_writes, 4)

        self.process = subprocess.Popen(arguments + ["about:blank"], preexec_fn=set_up, close_fds=False,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(child_reads)
        os.close(child_writes)
        target = next(t for t in self.send("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(domain + ".enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.write_fd)
        os.close(self.read_fd)

    def receive(self, seconds):
        deadline = time.monotonic() + seconds
        while b"\0" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.read_fd], [], [], left)[0]:
                raise AssertionError("the browser does not answer")
            more = os.read(self.read_fd, 1 << 20)
            assert more, "the browser has ended"
            self.rest += more
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def send(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_fd, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive(60)
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.events.append(answer)

    def open(self, path):
        self.events = [event for event in self.events if event.get("method") != "Page.loadEventFired"]
        self.send("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.receive(60))

    def run(self, expression):
        """The value of a JavaScript expression in the page."""
        done = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def click(self, selector):
        """A real click in the middle of an element."""
        box = self.run(f"""(() => {{ const e = document.querySelector({json.dumps(selector)});
            e.scrollIntoView({{block: "center"}}); const r = e.getBoundingClientRect();
            return [r.left + r.width / 2, r.top + r.height / 2]; }})()""")
        self.click_at(*box)

    def click_at(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def wheel(self, x, y, delta):
        self.send("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=delta)

    def key(self, key):
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key,
                  text=key if len(key) == 1 else "\r" if key == "Enter" else "")
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key)

    def problems(self):
        """Errors in the page, and whatever it tried to fetch but itself."""
        found = []
        for event in self.events:
            method, values = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown" or method == "Log.entryAdded" and values["entry"]["level"] == "error":
                found.append(event)
            if method == "Network.requestWillBeSent" and not values["request"]["url"].startswith("file:"):
                found.append(values["request"]["url"])
        return found

    def screenshot(self, path):
        image = self.send("Page.captureScreenshot", format="png")
        pathlib.Path(path).write_bytes(base64.b64decode(image["data"]))
