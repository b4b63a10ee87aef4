"""A mirror outside, its name server, and a proxy. outside.py MODE INSIDE

MODE: what its names and redirects do. INSIDE: ADDRESS:PORT that it wants requests to go to.
Writes a line for each request to it to standard output."""
import http.server, socket, struct, sys, threading

mode, inside = sys.argv[1:3]
address, port = inside.split(':')
OUTSIDE = '8.8.4.4'
asked = {}

def say(text):
    print(text, flush=True)

def records(name):
    asked[name] = asked.get(name, 0) + 1
    if mode == 'mixed':
        return [OUTSIDE, '10.77.0.77']
    if mode == 'rebinds' and name.startswith('mirror') and asked[name] > 1:
        return [address]
    if mode == 'redirect' and name.startswith('other') and asked[name] > 1:
        return [address]
    return [OUTSIDE]

def name_server():
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((OUTSIDE, 53))
    while True:
        query, client = server.recvfrom(512)
        question, at, labels = query[12:], 0, []
        while question[at]:
            labels.append(question[at + 1:at + 1 + question[at]].decode())
            at += question[at] + 1
        is_v4 = question[at + 1:at + 3] == b'\0\1'
        found = records('.'.join(labels)) if is_v4 else []
        answers = b''.join(b'\xc0\x0c\0\1\0\1\0\0\0\0\0\4' + socket.inet_aton(r) for r in found)
        head = query[:2] + b'\x84\0\0\1' + struct.pack('>H', len(found)) + b'\0\0\0\0'
        server.sendto(head + question[:at + 5] + answers, client)

class Mirror(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_CONNECT(self):
        say('CONNECT ' + self.path)
        to = self.path.replace('mirror.test', OUTSIDE).split(':')
        try: server = socket.create_connection((to[0], int(to[1])), 2)
        except OSError: return self.send_error(502)
        self.wfile.write(b'HTTP/1.1 200 OK\r\n\r\n')
        def copy(source, sink):
            try:
                while data := source.recv(65536): sink.sendall(data)
                sink.shutdown(socket.SHUT_WR)
            except OSError: pass
        back = threading.Thread(target=copy, args=(server, self.connection))
        back.start(); copy(self.connection, server); back.join()
    def do_GET(self):
        say('GET ' + self.path)
        to = {'mixed': f'http://{inside}', 'proxy': f'http://{inside}',
              'redirect': f'http://other.test:{port}'}.get(mode)
        # The other name leads here, until it leads inside.
        if self.headers['host'].startswith('other'):
            body = b'x'
            self.send_response(206)
            self.send_header('Content-Range', 'bytes 0-0/1000')
        else:
            body = b''
            self.send_response(302 if to else 503)
            if to: self.send_header('Location', to + '/latest/meta-data?x=1')
        self.send_header('Content-Length', str(len(body)))
        self.send_header('Connection', 'close')
        self.end_headers()
        self.wfile.write(body)

threading.Thread(target=name_server, daemon=True).start()
server = http.server.ThreadingHTTPServer((OUTSIDE, int(port)), Mirror)
say('ready')
server.serve_forever()
