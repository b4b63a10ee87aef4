"""Tests of the wheel, as it is installed."""

import asyncio
import doctest
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

import fontana
import pytest
from fontana import _fontana

HERE = {"interface": "127.0.0.1"}
CONTENT = bytes(range(256)) * 2000


@pytest.fixture
def file(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "model.bin"
    path.write_bytes(CONTENT)
    return path


def sender(file: pathlib.Path, port: int) -> fontana.Sender:
    return fontana.send([file], to=f"239.255.77.73:{port}", rate=50_000_000, **HERE)


def test_a_directory(file: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with sender(file, 7781) as sending:
        assert sending.description["files"] == 1
        receiver = fontana.recv(sending.ticket, to=tmp_path / "to", timeout=30, **HERE)
        names = [event["event"] for event in receiver]
        report = receiver.join()
    assert "accepted" in names and "object_done" in names
    assert (report["verdict"], report["verified"]) == ("complete", "digest")
    assert (tmp_path / "to" / "model.bin").read_bytes() == CONTENT
    assert sending.join()["verdict"] == "interrupted"


def test_buffers_of_several_receivers(file: pathlib.Path) -> None:
    buffers = [bytearray(len(CONTENT)) for _ in range(3)]
    with sender(file, 7782) as sending:
        receivers = [
            fontana.recv(sending.ticket, into=buffer, timeout=30, **HERE) for buffer in buffers
        ]
        for receiver in receivers:
            receiver.join()
            assert receiver.written == len(CONTENT)
    assert all(bytes(buffer) == CONTENT for buffer in buffers)


class Tensor:
    """What a tensor of torch has, which is no buffer itself."""

    def __init__(self, array: object) -> None:
        self.array = array

    def numpy(self) -> object:
        return self.array


def test_arrays_of_numpy_and_tensors(file: pathlib.Path) -> None:
    numpy = pytest.importorskip("numpy")
    array = numpy.zeros((1000, 128), dtype=numpy.float32)
    with sender(file, 7780) as sending:
        for place in [array, Tensor(numpy.zeros(len(CONTENT) // 2, dtype=numpy.float16))]:
            fontana.recv(sending.ticket, into=place, timeout=30, **HERE).join()
            assert getattr(place, "array", place).tobytes() == CONTENT
        with pytest.raises(fontana.errors.Argument, match="contiguous"):
            fontana.recv(sending.ticket, into=array[:, ::2], **HERE)


def test_layers_of_a_model_arrive_one_after_the_other(tmp_path: pathlib.Path) -> None:
    # In the order of names, as the format stores them: layer 10 before layer 2.
    size, names = 200_000, ["embed", *sorted(f"layer.{number}.w" for number in range(12))]
    described = {
        name: {"dtype": "U8", "shape": [size], "data_offsets": [size * at, size * (at + 1)]}
        for at, name in enumerate(names)
    }
    header = json.dumps({"__metadata__": {"format": "pt"}, **described}).encode()
    path = tmp_path / "model.safetensors"
    start = 8 + len(header)
    beginning = len(header).to_bytes(8, "little") + header
    path.write_bytes(beginning + os.urandom(size * len(names)))
    buffer = bytearray(path.stat().st_size)
    group = "239.255.77.73:7788"
    # It is there before the first layer is sent.
    receiver = fontana.recv(group=group, into=buffer, timeout=30, **HERE)
    with fontana.send(path, to=group, order="safetensors", rate=10_000_000, **HERE):
        assert receiver.wait(0, start)
        layers = fontana.safetensors.layers(buffer[:start])
        used = ["embed", *(f"layer.{number}.w" for number in range(12))]
        places = [[(start + size * at, start + size * (at + 1))] for at in map(names.index, used)]
        assert layers == places
        at = []
        for layer in layers:
            for begin, end in layer:
                assert receiver.wait(begin, end)
            at.append(time.monotonic())
        receiver.join()
    assert bytes(buffer) == path.read_bytes()
    # Not all at the end: half of them in the first three quarters of the time.
    assert at[6] - at[0] < 0.75 * (at[-1] - at[0])
    with pytest.raises(fontana.errors.Argument, match="safetensors"):
        fontana.send(path, order="names", **HERE)
    path.write_bytes(b"no model")
    with pytest.raises(fontana.errors.Argument, match="safetensors"):
        fontana.send(path, order="safetensors", **HERE)


def test_a_wait_ends_with_the_session(tmp_path: pathlib.Path) -> None:
    quiet = {"group": "239.255.77.73:7789", "silence": 0.3}
    assert not fontana.recv(into=bytearray(10), **quiet, **HERE).wait(0, 10)
    with pytest.raises(fontana.errors.Argument, match="no buffer"):
        fontana.recv(to=tmp_path, **quiet, **HERE).wait(0, 10)


def test_a_buffer_that_is_too_small(file: pathlib.Path) -> None:
    small = bytearray(1000)
    with sender(file, 7783) as sending:
        with pytest.raises(fontana.Error) as raised:
            fontana.recv(sending.ticket, into=small, timeout=30, **HERE).join()
    assert "has 1000 bytes" in str(raised.value)
    assert raised.value.code == 6
    with pytest.raises(fontana.errors.Argument):
        fontana.recv(into=b"read-only")


def test_events_without_a_thread_that_waits(file: pathlib.Path, tmp_path: pathlib.Path) -> None:
    async def receive() -> list[str]:
        with sender(file, 7784) as sending:
            receiver = fontana.recv(sending.ticket, to=tmp_path / "to", timeout=30, **HERE)
            return [event["event"] async for event in receiver]

    assert "reception_complete" in asyncio.run(receive())


def test_errors_have_kinds(tmp_path: pathlib.Path) -> None:
    with pytest.raises(fontana.errors.SourceMissing) as raised:
        fontana.send([tmp_path / "missing"], **HERE)
    assert (raised.value.kind, raised.value.code) == ("SourceMissing", 6)
    with pytest.raises(fontana.errors.Argument, match="ticket"):
        fontana.recv("no ticket")
    with pytest.raises(fontana.NotComplete) as incomplete:
        quiet = {"group": "239.255.77.73:7785", "silence": 0.3}
        fontana.recv(to=tmp_path, **quiet, **HERE).join()
    assert incomplete.value.report["verdict"] == "nothing_received"


def test_each_kind_has_its_class() -> None:
    for kind in _fontana.kinds():
        assert fontana.errors.named(kind).__name__ == kind


def test_others_run_while_a_session_waits(tmp_path: pathlib.Path) -> None:
    receiver = fontana.recv(to=tmp_path, group="239.255.77.73:7786", **HERE)
    waiting = threading.Thread(target=receiver.join)
    waiting.start()
    counted, end = 0, time.monotonic() + 0.2
    while time.monotonic() < end:
        counted += 1
    assert counted > 10_000
    receiver.stop()
    waiting.join()


def test_an_interrupt_ends_a_wait() -> None:
    # A shell lets commands in the background ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    receiver = fontana.recv(into=bytearray(1), group="239.255.77.73:7787", **HERE)
    delays = []
    for wait in [receiver.join, lambda: list(receiver), lambda: receiver.wait(0, 1)] * 3:
        sent: list[float] = []

        def interrupt() -> None:
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        with pytest.raises(KeyboardInterrupt):
            threading.Timer(0.05, interrupt).start()
            wait()
        delays.append(time.monotonic() - sent[0])
    receiver.stop()
    assert receiver.join()["verdict"] == "interrupted"
    # The best of three of each wait: a busy host delays some of them.
    assert max(min(delays[at::3]) for at in range(3)) < 0.2


def test_raptorq() -> None:
    oti, packets = fontana.fec.encode(CONTENT, symbol_size=1000, repair=20)
    assert fontana.fec.decode(oti, packets[20:]) == CONTENT
    assert fontana.fec.decode(oti, packets[:10]) is None
    with pytest.raises(fontana.errors.Argument):
        fontana.fec.decode(b"short", packets)


@pytest.mark.parametrize("module", [fontana, fontana.fec, fontana.safetensors])
def test_examples(module) -> None:  # type: ignore[no-untyped-def]
    assert doctest.testmod(module, extraglobs={"fontana": fontana}).failed == 0


def test_the_program_is_in_the_wheel() -> None:
    program = shutil.which("fontana", path=os.path.dirname(sys.executable))
    if os.environ.get("FONTANA_WHEEL") == "without the program":
        pytest.skip("this wheel was built without the program")
    assert program
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert fontana.__version__ in version.stdout
    licenses = pathlib.Path(sys.prefix, "share/doc/fontana/THIRD-PARTY-LICENSES.txt").read_text()
    # A library of the program, and one of the module.
    assert "\nclap " in licenses and "\npyo3 " in licenses
