"""A small HTTP server with range requests, lists of objects and faults, for tests: an own one, since Python's gives whole
files only."""
import html
import http.server
import os
import socket
import struct
import threading
import time
import urllib.parse


class RangeServer:
    """Serves a folder. `fault(n, path)` is asked for each request, n counting from 1: None, or what goes wrong.

    503, 500, 403, 404   that answer; later: 503 with Retry-After: 1
    cut, stall, reset    half of the body and the end of the connection; nothing more for 3 s; a reset
    whole, range         200 and the whole file; bytes from elsewhere
    changed, silent      another ETag; the same, whatever If-Match says
    hang, slow           no answer for half a minute; a body of 2 kB a second
    moved                301, as S3 does where a bucket lies in another region

    `list_period`: lists of objects never end, and come to the same token after N parts.
    `seen`: a list that takes the headers of each request."""

    def __init__(self, folder, fault=None, latency_s=0, seen=None, list_period=0):
        outer = self
        self.list_period = list_period
        self.seen = seen
        self.folder, self.fault, self.latency_s = folder, fault, latency_s
        self.requests, self.n_bytes, self.lock = [], 0, threading.Lock()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                outer.answer(self)

            def log_message(self, *args):
                pass

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, *args):
                pass  # clients that were killed

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, request):
        path = os.path.join(self.folder, urllib.parse.unquote(request.path).lstrip("/"))
        wanted_list = urllib.parse.parse_qs(request.path.partition("?")[2])
        with self.lock:
            self.requests.append((request.path, request.headers.get("Range")))
            n = len(self.requests)
            if self.seen is not None:
                self.seen.append(request.headers)
        fault = self.fault(n, request.path) if self.fault else None
        time.sleep(30 if fault == "hang" else self.latency_s)
        if fault == "503":
            return self.send(request, 503, b"busy")
        if fault == "reset":
            request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            request.close_connection = True
            request.connection.close()
            return None
        if fault == "later":
            return self.send(request, 503, b"later", {"Retry-After": "1"})
        if fault in ("500", "403"):
            return self.send(request, int(fault), b"fault")
        if fault == "moved":
            return self.send(request, 301, b"", {"x-amz-bucket-region": "eu-west-3"})
        if fault == "404" or not (wanted_list or os.path.isfile(path)):
            return self.send(request, 404, b"nothing")
        if wanted_list:
            return self.list(request, wanted_list)
        with open(path, "rb") as f:
            body = f.read()
        etag = '"other"' if fault in ("changed", "silent") else f'"{len(body)}-{os.stat(path).st_mtime_ns}"'
        wanted = request.headers.get("If-Match")
        if wanted and wanted != etag and fault != "silent":
            return self.send(request, 412, b"")
        first, last = request.headers.get("Range", "bytes=0-").split("=")[1].split("-")
        if fault == "whole" or "Range" not in request.headers:
            return self.send(request, 200, body)
        if int(first) >= len(body):
            return self.send(request, 416, b"", {"Content-Range": f"bytes */{len(body)}"})
        last = min(int(last or len(body)), len(body) - 1)
        part = body[int(first):last + 1]
        if fault == "range":
            first = int(first) + 1
        headers = {"Content-Range": f"bytes {first}-{last}/{len(body)}", "ETag": etag}
        self.send(request, 206, part, headers, fault)

    def list(self, request, wanted):
        """What S3 answers to ListObjectsV2, three objects at a time; the first folder of the path is the bucket."""
        bucket = os.path.join(self.folder, urllib.parse.unquote(request.path.split("?")[0]).strip("/"))
        prefix, start = wanted.get("prefix", [""])[0], int(wanted.get("continuation-token", ["0"])[0])
        found = [os.path.relpath(os.path.join(at, name), bucket) for at, _, names in os.walk(bucket) for name in names]
        found = sorted(name for name in found if name.startswith(prefix))
        if "delimiter" in wanted:
            found = [name for name in found if "/" not in name[len(prefix):]]
        parts = []
        for name in found[start:start + 3]:
            info = os.stat(os.path.join(bucket, name))
            parts.append(f"<Contents><Key>{html.escape(name)}</Key><ETag>&quot;{info.st_size}-{info.st_mtime_ns}&quot;</ETag>"
                         f"<Size>{info.st_size}</Size></Contents>")
        if self.list_period:
            next_token = (start + 1) % self.list_period
            parts.append(f"<IsTruncated>true</IsTruncated><NextContinuationToken>{next_token}</NextContinuationToken>")
        elif start + 3 < len(found):
            parts.append(f"<IsTruncated>true</IsTruncated><NextContinuationToken>{start + 3}</NextContinuationToken>")
        self.send(request, 200, f"<ListBucketResult>{''.join(parts)}</ListBucketResult>".encode())

    def send(self, request, code, body, headers=None, fault=None):
        request.send_response(code)
        for name, value in (headers or {}).items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if fault in ("cut", "stall"):
            body = body[:len(body) // 2]
            request.close_connection = True
        try:
            for at in range(0, 60000 if fault == "slow" else 0, 200):
                request.wfile.write(body[at:at + 200])
                request.wfile.flush()
                time.sleep(0.1)
            request.wfile.write(body if fault != "slow" else body[60000:])
            if fault == "stall":
                request.wfile.flush()
                time.sleep(3)
        except OSError:
            pass
        with self.lock:
            self.n_bytes += len(body)

    def forget(self):
        with self.lock:
            self.requests, self.n_bytes = [], 0

    def close(self):
        self.server.shutdown()
        self.server.server_close()
