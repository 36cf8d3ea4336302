"""PDF files for tests and evals, written by hand so that each can be wrong in its own way."""

import hashlib
import tempfile
import zlib
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from skillshelf_skills.pdf_extraction import ReadLimits
from skillshelf_skills.pdf_extraction.skill import PdfExtractionSkill

_PADDING = bytes.fromhex("28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a")
A4 = (595, 842)


def write_line(text: str, x: float = 72, y: float = 760, size: float = 12) -> str:
    """Return the page content that shows a line of text."""
    escaped = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    return f"BT /F1 {size} Tf {x} {y} Td ({escaped}) Tj ET\n"


def write_table(rows: Sequence[Sequence[str]], *, lined: bool) -> str:
    """Return the page content that shows a table, with lines around its cells or without any."""
    content = ""
    for row_number, row in enumerate(rows):
        y = 700 - 20 * row_number
        for column, text in enumerate(row):
            content += write_line(text, 80 + 150 * column, y)
            if lined:
                content += f"{75 + 150 * column} {y - 5} 150 20 re S\n"
    return content


def make_pdf(*pages: str, size: tuple[float, float] = A4, extra: Sequence[bytes] = (), trailer: str = "") -> bytes:
    """Return a PDF of pages with this content. `extra` are further objects; the first is number 10 + 2 * pages."""
    kids = " ".join(f"{10 + 2 * index} 0 R" for index in range(len(pages)))
    objects = {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        3: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        4: b"<< /Title (Quarterly report) /Author (Finance) >>",
    }
    for index, content in enumerate(pages):
        number = 10 + 2 * index
        objects[number] = (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {size[0]} {size[1]}] /Contents {number + 1} 0 R "
            f"/Resources << /Font << /F1 3 0 R >> /XObject << /Scan {10 + 2 * len(pages)} 0 R >> >> >>"
        ).encode()
        objects[number + 1] = make_stream(content.encode("latin-1"))
    objects.update(zip(count(10 + 2 * len(pages)), extra))
    return join_objects(objects, trailer)


def make_stream(data: bytes, entries: str = "") -> bytes:
    return f"<< /Length {len(data)} {entries} >>\nstream\n".encode() + data + b"\nendstream"


def join_objects(objects: dict[int, bytes], trailer: str = "") -> bytes:
    """Return a file of objects, with a table that says where each lies."""
    data = b"%PDF-1.7\n"
    offsets = {}
    for number, body in objects.items():
        offsets[number] = len(data)
        data += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    table = len(data)
    size = max(objects) + 1
    data += f"xref\n0 {size}\n0000000000 65535 f \n".encode()
    for number in range(1, size):
        data += f"{offsets[number]:010} 00000 n \n".encode() if number in offsets else b"0000000000 65535 f \n"
    data += f"trailer\n<< /Size {size} /Root 1 0 R /Info 4 0 R {trailer} >>\nstartxref\n{table}\n%%EOF\n".encode()
    return data


def make_scan(text: str) -> bytes:
    """Return a PDF whose only page is a picture of a line of text."""
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("L", (1200, 300), 255)
    ImageDraw.Draw(picture).text((60, 100), text, fill=0, font=ImageFont.load_default(72))
    entries = "/Type /XObject /Subtype /Image /Width 1200 /Height 300 /ColorSpace /DeviceGray /BitsPerComponent 8"
    image = make_stream(zlib.compress(picture.tobytes()), f"{entries} /Filter /FlateDecode")
    return make_pdf("q 500 0 0 125 50 600 cm /Scan Do Q", extra=[image])


def make_encrypted(text: str, password: str) -> bytes:
    """Return a PDF that opens with a password: RC4 with 40 bits, the oldest method."""
    padded = (password.encode() + _PADDING)[:32]
    owner_key = hashlib.md5(padded).digest()[:5]
    owner = _rc4(owner_key, padded)
    permissions = -4
    identifier = bytes(range(16))
    seed = padded + owner + permissions.to_bytes(4, "little", signed=True) + identifier
    key = hashlib.md5(seed).digest()[:5]
    user = _rc4(key, _PADDING)

    content = _rc4(_object_key(key, 11), write_line(text).encode())
    objects = {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: b"<< /Type /Pages /Kids [10 0 R] /Count 1 >>",
        3: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        4: b"<< >>",
        10: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 11 0 R "
        b"/Resources << /Font << /F1 3 0 R >> >> >>",
        11: make_stream(content),
    }
    rule = f"/Filter /Standard /V 1 /R 2 /P {permissions} /O <{owner.hex()}> /U <{user.hex()}>"
    return join_objects(objects, f"/Encrypt << {rule} >> /ID [<{identifier.hex()}> <{identifier.hex()}>]")


def _object_key(key: bytes, number: int) -> bytes:
    return hashlib.md5(key + number.to_bytes(3, "little") + bytes(2)).digest()[:10]


def _rc4(key: bytes, data: bytes) -> bytes:
    state = list(range(256))
    j = 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    result = bytearray()
    i = j = 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        result.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(result)


SALES = [["Region", "Sales"], ["North", "120"], ["South", "95"]]


def open_for_evals() -> PdfExtractionSkill:
    """Return the skill on a folder with a report and a scan."""
    folder = Path(tempfile.mkdtemp(prefix="reports-"))
    report = make_pdf(write_line("Sales by region, in thousands"), write_table(SALES, lined=False))
    (folder / "report.pdf").write_bytes(report)
    (folder / "invoice.pdf").write_bytes(make_scan("Invoice 4711"))
    return PdfExtractionSkill(str(folder), limits=ReadLimits(seconds=300))
