"""What a program of the tests looks for: words that must be nowhere within its reach."""

__all__ = ["SEARCH"]

SEARCH = """
import glob, os, pathlib, tempfile

HERE = pathlib.Path(__file__).parent
WANTED = {one.stem: one.read_bytes() for one in sorted(HERE.glob("*.backwards"))}
TEMPORARY = tempfile.gettempdir()
PATTERNS = ["/proc/[0-9]*/cmdline", "/proc/[0-9]*/environ", "/proc/[0-9]*/comm", "/proc/[0-9]*/fd/*",
            "/proc/[0-9]*/cwd/*", "/proc/[0-9]*/task/*/cmdline", f"{HERE}/*", f"{HERE}/*/*", f"{HERE}/*/*/*",
            f"{TEMPORARY}/../*", f"{TEMPORARY}/../*/*", f"{TEMPORARY}/../../*/*", f"{os.environ['HOME']}/*",
            "/dev/shm/*"]

def names(blob):
    turned = blob[::-1]
    return {name for name, backwards in WANTED.items() if backwards in turned}

def memory():
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", buffering=0) as mem:
        for line in maps:
            span, rights = line.split()[:2]
            if rights.startswith("rw"):
                first, last = (int(end, 16) for end in span.split("-"))
                mem.seek(first)
                try:
                    yield mem.read(last - first)
                except OSError:
                    pass

def found():
    looked = 0
    for blob in memory():
        looked += len(blob)
        yield from (f"{name} in memory" for name in names(blob))
    for file in {file for pattern in PATTERNS for file in glob.glob(pattern, include_hidden=True)}:
        try:
            if os.path.isfile(file) or file.startswith("/proc"):
                with open(file, "rb", buffering=0) as opened:
                    os.set_blocking(opened.fileno(), False)
                    yield from (f"{name} in {os.path.basename(file)}" for name in names(opened.read(1 << 20) or b""))
        except OSError:
            pass
    if looked > 1_000_000:
        yield "its memory read"
"""
"""Source of ``found()``, which yields the names of the files ``*.backwards`` beside it, and where what they hold turned
round is: in memory, processes or files.  Forwards its own copy would be found."""
