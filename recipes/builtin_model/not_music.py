"""Sounds that are not music: speech, noise, tones and silence, for training and testing.

The two parts share no voice, no text and no kind of noise. Training speech is by espeak-ng, in many
languages; test speech is by flite, by espeak-ng in other languages and, if Asterisk's prompts are
installed (Debian: asterisk-core-sounds-en-g722 and -es-g722), by people. Speech is dry, in a room,
over a telephone or in noise. The volume varies.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import signal

Samples = NDArray[np.float64]
Part = Literal["learn", "test"]
Rng = np.random.Generator

RATE, SECONDS = 16_000, 12.0
N = int(RATE * SECONDS)
N_EXAMPLES: dict[Part, int] = {"learn": 300, "test": 200}
PROMPTS = Path("/usr/share/asterisk/sounds")
PEOPLE = ("en_US_f_Allison", "es_MX_f_Allison")
SHARES: dict[str, float] = {"speech": 0.55, "noise": 0.25, "tones": 0.13, "silence": 0.07}

ENGLISH = (
    "Good morning, and welcome back to the programme. Today we talk about the price of bread.",
    "The train on platform four leaves at a quarter past nine and calls at every station.",
    "She opened the letter, read it twice, and put it back into the drawer without a word.",
    "Chapter seven. Nobody in the village had expected the old man to return before winter.",
    "In our next example, the second number is always a little larger than the first one.",
    "You have three new messages. To listen to them, press one after the tone.",
)
"""Half of them are for training, half for testing."""
OTHERS: dict[Part, dict[str, str]] = {
    "learn": {
        "de": "Guten Abend, meine Damen und Herren. Das Wetter bleibt morgen trocken und kühl.",
        "fr": "Bonjour à tous. Nous parlons aujourd'hui de l'histoire de cette petite ville.",
        "es": "Buenas tardes. El tren con destino a Sevilla sale dentro de quince minutos.",
        "it": "Il professore aprì il libro e cominciò a leggere la prima pagina ad alta voce.",
        "pl": "Dzień dobry państwu. Zaczynamy od najważniejszych wiadomości dnia.",
        "nl": "Goedemiddag, u luistert naar het nieuws van drie uur en het weerbericht.",
        "sv": "Det var en gång en gammal man som bodde ensam vid skogens kant.",
        "ru": "Добрый вечер. Сегодня мы расскажем о новой книге известного писателя.",
    },
    "test": {
        "hu": "Jó napot kívánok. A vonat öt perc múlva indul a második vágányról.",
        "tr": "İyi akşamlar. Haberlerden önce kısa bir hava durumu özeti dinleyeceksiniz.",
        "pt": "Bom dia. A reunião começa às dez horas na sala do segundo andar.",
        "cs": "Dobrý den. Dnes budeme mluvit o tom, jak se pečou domácí koláče.",
    },
}


def make_examples(part: Part, folder: Path, n: int | None = None) -> list[Path]:
    """Write a part's sounds, or some of them, to a folder; the same each time."""
    import soundfile

    n = n or N_EXAMPLES[part]
    rng = np.random.default_rng({"learn": 0, "test": 1}[part])
    folder.mkdir(parents=True, exist_ok=True)
    counts = {kind: round(share * n) for kind, share in SHARES.items()}
    counts["speech"] += n - sum(counts.values())
    files = []
    for kind, number in counts.items():
        sounds = _speech(part, rng) if kind == "speech" else _made(MAKERS[part, kind], rng)
        for i, (name, sound) in zip(range(number), sounds, strict=False):
            level = 10 ** (rng.uniform(-30, -3) / 20)
            peak = np.abs(sound).max()
            if kind != "silence" and peak > 0:
                sound = sound * level / peak
            files.append(folder / f"{kind}-{i:03d}-{name}.wav")
            soundfile.write(files[-1], sound.astype(np.float32), RATE, subtype="PCM_16")
    return files


# Speech. ------------------------------------------------------------------------------------------


def _speech(part: Part, rng: Rng) -> Iterator[tuple[str, Samples]]:
    """An endless stream of voices, dry and otherwise."""
    voices = _voices(part)
    while True:
        for name, say in voices:
            spoken = say(rng)
            dry = _filled(spoken, rng.uniform(0.2, 1.5), rng)
            way = rng.choice([*PLACES])
            yield f"{name}-{way}", PLACES[way](dry, rng)


def _voices(part: Part) -> list[tuple[str, Callable[[Rng], Samples]]]:
    english = ENGLISH[:3] if part == "learn" else ENGLISH[3:]
    variants = {"learn": ("m1", "m3", "m7", "f1", "f3"), "test": ("m2", "m5", "f2", "f4")}[part]
    accents = {"learn": ("en-us", "en-gb"), "test": ("en-gb-scotland",)}[part]
    texts = [(accent, text) for text in english for accent in accents]
    texts += list(OTHERS[part].items())
    found = [
        (f"{voice}-{variant}", _by_espeak(f"{voice}+{variant}", text))
        for k, (voice, text) in enumerate(texts)
        for variant in (variants[k % len(variants)], variants[(k + 2) % len(variants)])
    ]
    if part == "test":
        found += [(f"flite-{v}", _by_flite(v, t)) for t in english for v in ("rms", "slt", "awb")]
        prompts = [sorted((PROMPTS / name).glob("*.g722")) for name in PEOPLE]
        people = [(f"person-{k}", _prompts(files)) for k, files in enumerate(prompts) if files]
        found += 4 * people
    return found


def _by_espeak(voice: str, text: str) -> Callable[[Rng], Samples]:
    def say(rng: Rng) -> Samples:
        speed, pitch = rng.integers(120, 215), rng.integers(30, 75)
        return _recorded(["espeak-ng", "-v", voice, "-s", str(speed), "-p", str(pitch), "-w"], text)

    return say


def _by_flite(voice: str, text: str) -> Callable[[Rng], Samples]:
    return lambda _: _recorded(["flite", "-voice", voice, "-o"], text)


def _recorded(command: list[str], text: str) -> Samples:
    """What a speech program writes to a file, its last argument before the text."""
    if shutil.which(command[0]) is None:
        raise FileNotFoundError(f"{command[0]} must be installed to make examples of speech.")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "speech.wav"
        words = ["-t", text] if command[0] == "flite" else [text]
        order = [*command, str(file), *words]
        subprocess.run(order, check=True, capture_output=True)
        return _read(file)


def _prompts(files: list[Path]) -> Callable[[Rng], Samples]:
    """Some sentences by a person, one after another."""
    long = [file for file in files if file.stat().st_size > 12_000]

    def say(rng: Rng) -> Samples:
        return np.concatenate([_read(long[k]) for k in rng.integers(len(long), size=6)])

    return say


def _read(file: Path) -> Samples:
    import av

    from harmonium.audio import decode

    if file.suffix == ".g722":  # has no header
        with av.open(str(file), format="g722") as container:
            pieces = [frame.to_ndarray() for frame in container.decode(audio=0)]
        return np.concatenate(pieces, axis=1)[0] / 2.0**15
    return decode(file, rate=RATE, seconds=60.0).samples.astype(np.float64)


def _filled(spoken: Samples, pause: float, rng: Rng) -> Samples:
    """The same sound repeated with pauses, starting somewhere."""
    whole = np.concatenate([spoken, np.zeros(int(pause * RATE))])
    many = np.tile(whole, N // len(whole) + 2)
    start = rng.integers(len(whole))
    return many[start : start + N]


def _in_a_room(sound: Samples, rng: Rng) -> Samples:
    length = int(rng.uniform(0.15, 0.6) * RATE)
    echo = rng.normal(size=length) * np.exp(-6 * np.arange(length) / length)
    wet = signal.fftconvolve(sound, echo)[: len(sound)]
    return sound / _level(sound) + rng.uniform(0.3, 1.0) * wet / _level(wet)


def _by_telephone(sound: Samples, rng: Rng) -> Samples:
    return _band(sound, 300, rng.uniform(2800, 3400))


def _beside_noise(sound: Samples, rng: Rng) -> Samples:
    noise = _coloured(rng, rng.uniform(0.5, 2))
    return sound / _level(sound) + 10 ** (-rng.uniform(10, 30) / 20) * noise / _level(noise)


PLACES: dict[str, Callable[[Samples, Rng], Samples]] = {
    "dry": lambda sound, _: sound,
    "room": _in_a_room,
    "telephone": _by_telephone,
    "noise": _beside_noise,
}


# Noise, tones and silence. ------------------------------------------------------------------------


def _made(makers: dict[str, Callable[[Rng], Samples]], rng: Rng) -> Iterator[tuple[str, Samples]]:
    while True:
        for name, make in makers.items():
            yield name, make(rng)


def _time() -> Samples:
    return np.arange(N) / RATE


def _level(sound: Samples) -> float:
    return float(np.sqrt(np.mean(sound**2))) + 1e-9


def _coloured(rng: Rng, slope: float) -> Samples:
    """Noise whose power falls as f^-slope: 0 white, 1 pink, 2 brown."""
    spectrum = np.fft.rfft(rng.normal(size=N))
    f = np.maximum(np.fft.rfftfreq(N, 1 / RATE), 20)
    return np.fft.irfft(spectrum * f ** (-slope / 2), N)


def _band(sound: Samples, low: float, high: float) -> Samples:
    return signal.sosfilt(signal.butter(4, [low, high], "band", fs=RATE, output="sos"), sound)


def _narrow(rng: Rng) -> Samples:
    centre = np.exp(rng.uniform(np.log(200), np.log(4000)))
    return _band(rng.normal(size=N), centre / 1.5, centre * 1.5)


def _hum(rng: Rng) -> Samples:
    mains = rng.choice([50, 60])
    tones = [np.sin(2 * np.pi * mains * k * _time()) / k**1.5 for k in range(1, 12)]
    return np.sum(tones, axis=0) + 0.3 * _coloured(rng, 1) / _level(_coloured(rng, 1))


def _gusts(rng: Rng) -> Samples:
    slow = np.interp(np.arange(N), np.linspace(0, N, 12), rng.uniform(0.1, 1, 12))
    return _coloured(rng, 2) * slow


def _clicks(rng: Rng, rate: float, length: float) -> Samples:
    hits = rng.random(N) < rate / RATE
    click = np.exp(-np.arange(int(5 * length * RATE)) / (length * RATE))
    click = click * rng.normal(size=len(click))
    return signal.fftconvolve(hits * rng.uniform(0.2, 1, N), click)[:N]


def _rain(rng: Rng) -> Samples:
    drops, hiss = _clicks(rng, 300, 0.002), _coloured(rng, 0)
    return drops / _level(drops) + hiss / _level(hiss)


def _motor(rng: Rng) -> Samples:
    turns = rng.uniform(15, 40) * (1 + 0.05 * np.sin(2 * np.pi * rng.uniform(0.05, 0.3) * _time()))
    phase = np.cumsum(turns) / RATE
    return _coloured(rng, 1.5) * (0.4 + np.maximum(0, np.sin(2 * np.pi * phase)) ** 4)


def _bursts(rng: Rng) -> Samples:
    on = signal.square(2 * np.pi * rng.uniform(0.3, 3) * _time(), rng.uniform(0.2, 0.7)) > 0
    return _coloured(rng, rng.uniform(0, 1)) * on


def _crickets(rng: Rng) -> Samples:
    trill = np.maximum(0, np.sin(2 * np.pi * rng.uniform(15, 30) * _time()))
    return np.sin(2 * np.pi * rng.uniform(3500, 5500) * _time()) * trill + 0.02 * rng.normal(size=N)


def _sine(rng: Rng) -> Samples:
    return np.sin(2 * np.pi * np.exp(rng.uniform(np.log(100), np.log(4000))) * _time())


def _saw(rng: Rng) -> Samples:
    return signal.sawtooth(2 * np.pi * rng.uniform(60, 600) * _time(), rng.uniform(0.2, 1))


def _buzz(rng: Rng) -> Samples:
    return signal.square(2 * np.pi * rng.uniform(60, 600) * _time())


def _sweep(rng: Rng) -> Samples:
    period = rng.uniform(2, 12)
    return signal.chirp(_time() % period, 60, period, rng.uniform(3000, 7000), "logarithmic")


def _beeps(rng: Rng) -> Samples:
    on = signal.square(2 * np.pi * rng.uniform(0.5, 3) * _time(), 0.4) > 0
    return np.sin(2 * np.pi * rng.uniform(400, 2500) * _time()) * on


def _siren(rng: Rng) -> Samples:
    f = rng.uniform(500, 900) * (1 + 0.4 * np.sin(2 * np.pi * rng.uniform(0.2, 1.5) * _time()))
    return np.sin(2 * np.pi * np.cumsum(f) / RATE)


def _keypad(rng: Rng) -> Samples:
    found = np.zeros(N)
    for start in range(0, N - RATE // 2, RATE // 4):
        low, high = rng.choice([697, 770, 852, 941]), rng.choice([1209, 1336, 1477])
        t = _time()[: RATE // 8]
        found[start : start + len(t)] = np.sin(2 * np.pi * low * t) + np.sin(2 * np.pi * high * t)
    return found


def _quiet(rng: Rng, loudest: float, slope: float) -> Samples:
    """Noise so soft that it counts as silence; in decibels of full scale."""
    noise = _coloured(rng, slope)
    return 10 ** (rng.uniform(loudest - 20, loudest) / 20) * noise / _level(noise)


MAKERS: dict[tuple[Part, str], dict[str, Callable[[Rng], Samples]]] = {
    ("learn", "noise"): {
        "white": lambda rng: _coloured(rng, 0),
        "pink": lambda rng: _coloured(rng, 1),
        "brown": lambda rng: _coloured(rng, 2),
        "violet": lambda rng: _coloured(rng, -2),
        "narrow": _narrow,
        "hum": _hum,
        "gusts": _gusts,
        "crackle": lambda rng: _clicks(rng, rng.uniform(5, 40), 0.001),
        "knocks": lambda rng: _clicks(rng, rng.uniform(1, 4), 0.02),
    },
    ("test", "noise"): {
        "blue": lambda rng: _coloured(rng, -1),
        "between": lambda rng: _coloured(rng, rng.uniform(0.3, 1.7)),
        "rain": _rain,
        "motor": _motor,
        "bursts": _bursts,
        "typing": lambda rng: _clicks(rng, rng.uniform(4, 9), 0.005),
    },
    ("learn", "tones"): {"sine": _sine, "saw": _saw, "sweep": _sweep, "beeps": _beeps},
    ("test", "tones"): {"buzz": _buzz, "siren": _siren, "keypad": _keypad, "crickets": _crickets},
    ("learn", "silence"): {
        "nothing": lambda _: np.zeros(N),
        "dither": lambda rng: _quiet(rng, -85, 0),
        "room": lambda rng: _quiet(rng, -55, 1),
    },
    ("test", "silence"): {
        "nothing": lambda _: np.zeros(N),
        "room": lambda rng: _quiet(rng, -60, 1.5),
    },
}
