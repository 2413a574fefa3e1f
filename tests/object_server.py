#!/usr/bin/env python3
"""A small object store with faults, for tests. Standard library only.

usage: object_server.py        prints its port; ends when its input does

GET only, with ranges, ETags and If-Match. An object's path says everything:
SESSION/FAULTS/SIZE.bin, behind one of these prefixes:

  /o/PATH                              plain HTTP
  /s3/BUCKET/PATH                      AWS Signature V4, except of bucket "public"
  /az/ACCOUNT/CONTAINER/PATH           shared key or SAS, except of "public"
  /hf/ORG/REPO/resolve/REV/PATH        bearer token if ORG is "private"; then a
                                       redirect to localhost, another host
  /f/SESSION/FAULTS/ABSOLUTE/PATH      a file of the source tree or /tmp/muster-*
  /seen/SESSION                        what was asked: a line per request
  /served/SESSION                      bytes of objects that were sent
  /connections                         how many there have been

FAULTS: "-" or NAME[=ARGUMENT][,TIMES] joined by "+", the argument with percent
codes; TIMES: of the first so many requests. "flip=NAME:OFFSET" flips a bit of that file once. Requests of bytes 0-0,
the first look, are spared unless the name
begins with "!". See `Faults`.
"""
import base64
import hashlib
import hmac
import http.server
import os
import re
import sys
import threading
import urllib.parse

ACCESS_KEY, SECRET_KEY, SESSION_TOKEN = "AKIDTEST", "secret-key/test", "session-token"
REGION = "test-region-1"
AZURE_KEY = base64.b64encode(b"azure test key").decode()
SAS_SIGNATURE = "sas/signature="
HF_TOKEN = "hf_test"

PERIOD = 65521  # prime: no two ranges of round offsets look alike
PATTERN = bytes(i * i % 251 for i in range(PERIOD))

lock = threading.Lock()
seen = {}  # session -> lines
served = {}  # (session, fault) -> times
sent_bytes = {}  # session -> number
SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
num_connections = 0


def content(begin, end):
    first = begin // PERIOD
    return (PATTERN * (end // PERIOD - first + 1))[begin - first * PERIOD:end - first * PERIOD]


def sha256_of(size):
    return hashlib.sha256(content(0, size)).hexdigest()


class Faults:
    """Those of one request."""

    def __init__(self, session, spec, is_look):
        self.active = {}
        for part in spec.split("+") if spec != "-" else []:
            call, _, times = part.partition(",")
            name, _, argument = call.partition("=")
            if is_look and not name.startswith("!"):
                continue
            with lock:
                count = served.get((session, part), 0)
                served[session, part] = count + 1
            if not times or count < int(times):
                self.active[name.lstrip("!")] = urllib.parse.unquote(argument)

    def __contains__(self, name):
        return name in self.active

    def __getitem__(self, name):
        return self.active[name]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    file = None  # whose bytes are sent; None: the pattern's
    session = None
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, *_):
        pass

    def setup(self):
        global num_connections
        with lock:
            num_connections += 1
        super().setup()

    def do_GET(self):
        path, _, query = self.path.partition("?")
        parts = path.split("/")[1:]
        if parts[0] == "seen":
            return self.send_text("".join(line + "\n" for line in seen.get(parts[1], [])))
        if parts[0] == "connections":
            return self.send_text(f"{num_connections}\n")
        if parts[0] == "served":
            return self.send_text(f"{sent_bytes.get(parts[1], 0)}\n")
        if parts[0] == "f":
            return self.send_file(parts[1], parts[2], "/" + "/".join(parts[3:]))
        skip = {"o": 1, "s3": 2, "az": 3, "hf": 5}.get(parts[0])
        if skip is None or len(parts) != skip + 3:
            return self.send_error_page(404, "NoSuchKey")
        session, spec, name = parts[skip:]
        if parts[0] != "o":  # names there are literal: the client encoded them
            session, spec, name = map(urllib.parse.unquote, (session, spec, name))
        with lock:
            seen.setdefault(session, []).append(
                f"{path} host={self.headers['host']} range={self.headers['range']} "
                f"if-match={self.headers['if-match']} authorization={self.headers['authorization']} "
                f"token={self.headers['x-amz-security-token']}")
        if name == "missing":
            return self.send_error_page(404, "NoSuchKey")
        refusal = getattr(self, "check_" + parts[0])(parts, query)
        if refusal:
            return self.send_error_page(403, refusal)
        if parts[0] == "hf":
            return self.send_hub_redirect(session, spec, name)
        return self.send_object(session, spec, int(name.removesuffix(".bin")))

    def send_file(self, session, spec, path):
        real = os.path.realpath(path)
        if not real.startswith((SOURCE + "/", "/tmp/muster-")) or not os.path.isfile(real):
            return self.send_error_page(404, "NoSuchKey")
        with lock:
            seen.setdefault(session, []).append(f"{path} range={self.headers['range']} ")
        self.file = real
        self.session = session
        try:
            self.send_object(session, spec, os.path.getsize(real))
        finally:
            self.file = None

    # ---- Who may.

    def check_o(self, parts, query):
        return None

    def check_hf(self, parts, query):
        wanted = f"Bearer {HF_TOKEN}"
        return "GatedRepo" if parts[1] == "private" and self.headers["authorization"] != wanted else None

    def check_s3(self, parts, query):
        if parts[1] == "public":
            return None if self.headers["authorization"] is None else "UnexpectedSignature"
        match = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, "
                             r"SignedHeaders=([^,]+), Signature=([0-9a-f]{64})", self.headers["authorization"] or "")
        if not match:
            return "AccessDenied"
        key_id, day, region, names, signature = match.groups()
        if key_id != ACCESS_KEY or region != REGION:
            return "InvalidAccessKeyId"
        if not {"host", "range", "x-amz-date"} <= set(names.split(";")):
            return "HeadersNotSigned"
        if self.headers["x-amz-security-token"] not in (None, SESSION_TOKEN):
            return "InvalidToken"
        canonical = "\n".join(
            ["GET", urllib.parse.quote(urllib.parse.unquote_to_bytes(self.path.partition("?")[0]), safe="/~"), query] +
            [f"{n}:{self.headers[n].strip()}" for n in names.split(";")] +
            ["", names, self.headers["x-amz-content-sha256"]])
        time = self.headers["x-amz-date"]
        to_sign = "\n".join(["AWS4-HMAC-SHA256", time, f"{day}/{region}/s3/aws4_request",
                             hashlib.sha256(canonical.encode()).hexdigest()])
        key = ("AWS4" + SECRET_KEY).encode()
        for part in (day, region, "s3", "aws4_request", to_sign):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return None if key.hex() == signature and time.startswith(day) else "SignatureDoesNotMatch"

    def check_az(self, parts, query):
        if parts[2] == "public":
            return None
        fields = urllib.parse.parse_qs(query)
        if "sig" in fields:
            good = fields["sig"] == [SAS_SIGNATURE] and self.headers["authorization"] is None
            return None if good else "AuthenticationFailed"
        lines = ["GET"] + [self.headers[n] or "" for n in (
            "content-encoding", "content-language", "content-length", "content-md5", "content-type", "date",
            "if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range")]
        lines += [f"{n}:{self.headers[n]}" for n in sorted(map(str.lower, self.headers)) if n.startswith("x-ms-")]
        lines += [f"/{parts[1]}{self.path}"]
        mac = hmac.new(base64.b64decode(AZURE_KEY), "\n".join(lines).encode(), hashlib.sha256)
        wanted = f"SharedKey {parts[1]}:{base64.b64encode(mac.digest()).decode()}"
        return None if self.headers["authorization"] == wanted else "AuthenticationFailed"

    # ---- What comes back.

    def send_text(self, text):
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send_error_page(self, status, code, headers=()):
        body = f"<?xml?><Error><Code>{code}</Code></Error>".encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send_redirect(self, location, status=302, headers=()):
        self.send_error_page(status, "Moved", [("Location", location), *headers])

    def send_hub_redirect(self, session, spec, name):
        size = int(name.removesuffix(".bin"))
        sha256 = sha256_of(size if "lie" not in spec else size + 1)
        port = self.server.server_address[1]
        self.send_redirect(f"http://localhost:{port}/o/{session}/{spec}/{name}?signed=1",
                           headers=[("X-Linked-Etag", f'"{sha256}"'), ("X-Linked-Size", str(size))])

    def send_object(self, session, spec, size):
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["range"] or "")
        first, last = map(int, wanted.groups()) if wanted else (0, size - 1)
        faults = Faults(session, spec, is_look=(first, last) == (0, 0) and wanted is not None)
        etag = '"changed"' if "etag" in faults else f'"v1-{size}"'
        if "weak" in faults:
            etag = "W/" + etag
        if "redirect" in faults:
            return self.send_redirect(faults["redirect"].replace("PORT", str(self.server.server_address[1])))
        if "status" in faults:
            return self.send_error_page(int(faults["status"]), "Injected",
                                        [("Retry-After", "7")] if faults["status"] == "503" else ())
        if "drop" in faults:
            return self.drop()
        if "412" in faults or (self.headers["if-match"] not in (None, etag) and "etag" not in faults):
            return self.send_error_page(412, "PreconditionFailed")
        if "noranges" in faults or "whole" in faults or not wanted:
            return self.send_whole(size, etag, faults)
        if first >= size:
            return self.send_error_page(416, "InvalidRange", [("Content-Range", f"bytes */{size}")])
        self.send_range(first, min(last, size - 1), size, etag, faults)

    def send_whole(self, size, etag, faults):
        self.send_response(200)
        self.send_header("ETag", etag)
        if "nolength" in faults:
            self.close_connection = True
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(size))
        self.end_headers()
        self.write_quietly(self.content(0, size))

    def send_range(self, first, last, size, etag, faults):
        body = self.content(first, last + 1)
        if "flip" in faults:
            body = self.flip_once(body, first, faults["flip"])
        shift = 1 if "range" in faults else 0
        total = size + 1 if "grown" in faults else size
        self.send_response(206)
        self.send_header("ETag", etag)
        self.send_header("Content-Range", f"bytes {first + shift}-{last + shift}/{total}")
        if "gzip" in faults:
            self.send_header("Content-Encoding", "gzip")
        if "long" in faults:  # no length: the connection's end is the body's
            body += b"more"
            self.close_connection = True
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if "truncate" in faults:
            self.write_quietly(body[:len(body) // 2])
            return self.drop()
        if "stall" in faults:
            self.write_quietly(body[:len(body) // 2])
            self.connection.recv(1)  # until the client hangs up
            return self.drop()
        self.write_quietly(body)

    def flip_once(self, body, first, where):
        name, _, offset = where.partition(":")
        at = int(offset) - first
        if os.path.basename(self.file) != name or not 0 <= at < len(body):
            return body
        with lock:
            count = served.get((self.session, "flip"), 0)
            served[self.session, "flip"] = count + 1
        return body if count else body[:at] + bytes([body[at] ^ 1]) + body[at + 1:]

    def content(self, begin, end):
        if self.file is None:
            return content(begin, end)
        with lock:
            sent_bytes[self.session] = sent_bytes.get(self.session, 0) + end - begin
        with open(self.file, "rb") as file:
            file.seek(begin)
            return file.read(end - begin)

    def write_quietly(self, body):
        try:
            self.wfile.write(body)
            self.wfile.flush()
        except OSError:
            self.close_connection = True  # the client hung up, as it may

    def drop(self):
        self.close_connection = True


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def main():
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
