"""C libraries are silenced, and nothing else is."""

import ctypes
import os
import subprocess
import sys
import threading

import pytest

from harmonium.audio import libsndfile
from harmonium.audio.libsndfile import quiet_c_libraries

libc = ctypes.CDLL(None)


def c_library_says(text):
    """What a library written in C does: fputs to whatever ``stderr`` is at that moment."""
    stderr = ctypes.c_void_p.in_dll(libc, "stderr")
    libc.fputs(text.encode(), stderr)
    libc.fflush(stderr)


def test_only_c_libraries_are_silenced(capfd):
    c_library_says("before ")
    with quiet_c_libraries():
        c_library_says("inside ")
        os.write(2, b"Python ")
        code = "import sys; sys.stderr.write('process ')"
        subprocess.run([sys.executable, "-c", code], check=True)
    c_library_says("after ")
    assert capfd.readouterr().err == "before Python process after "


def test_an_error_ends_the_silence(capfd):
    with pytest.raises(ValueError, match="wrong"), quiet_c_libraries():
        raise ValueError("wrong")
    c_library_says("after an error")
    assert capfd.readouterr().err == "after an error"


def test_without_a_variable_of_c_all_is_heard(capfd, monkeypatch):
    monkeypatch.setattr(libsndfile, "_STREAMS", None)
    with quiet_c_libraries():
        c_library_says("heard")
    assert capfd.readouterr().err == "heard"


def test_threads_do_not_end_the_silence_of_others(capfd):
    inside = threading.Event()
    leave = threading.Event()

    def stay():
        with quiet_c_libraries():
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=stay)
    thread.start()
    assert inside.wait(60)
    with quiet_c_libraries(), quiet_c_libraries():
        c_library_says("not heard")
    c_library_says("not heard: the other thread is inside still")
    leave.set()
    thread.join(60)
    c_library_says("heard")
    assert capfd.readouterr().err == "heard"
