"""A web server with one defect: web.py MODE PORT DIR [ARGUMENT].

missing  files whose names contain ARGUMENT are not there (404)
gz       files are labelled Content-Encoding: x-gzip, although their bytes are those of the file
down     from ARGUMENT seconds after the first request on, it is away for a minute (503)
html     a login page takes the place of every file
"""

import http.server
import os
import re
import sys
import time
import urllib.parse

mode, port, root = sys.argv[1], int(sys.argv[2]), sys.argv[3]
argument = sys.argv[4] if len(sys.argv) > 4 else "0"
first_request = None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *arguments):
        sys.stderr.write(f"{self.path} {self.headers.get('Range')} {format % arguments}\n")

    def fail(self, code):
        self.send_response(code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def login(self):
        page = b"<html>please log in</html>"
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(page), page))

    def do_GET(self):
        global first_request
        first_request = first_request or time.time()
        name = urllib.parse.unquote(self.path.split("?")[0]).lstrip("/")
        describes = name.endswith((".fontana", "fontana.head", ".shelf"))
        path = os.path.join(root, name)
        if mode == "down" and 0 <= time.time() - first_request - float(argument) < 60:
            return self.fail(503)
        if not os.path.isfile(path) or (mode == "missing" and argument in name):
            return self.fail(404)
        if mode == "html" and not describes:
            return self.login()
        with open(path, "rb") as file:
            data = file.read()
        begin, end, code = 0, len(data), 200
        if asked := re.match(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or ""):
            begin, end, code = int(asked[1]), min(int(asked[2] or end - 1) + 1, end), 206
        self.send_response(code)
        self.send_header("ETag", '"one"')
        if code == 206:
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(data)}")
        if mode == "gz" and not describes:
            self.send_header("Content-Encoding", "x-gzip")
        self.send_header("Content-Length", str(end - begin))
        self.end_headers()
        try:
            self.wfile.write(data[begin:end])
        except OSError:
            self.close_connection = True


http.server.ThreadingHTTPServer.request_queue_size = 128
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
