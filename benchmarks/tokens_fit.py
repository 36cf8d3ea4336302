"""Fit the prices of `skillshelf.text.tokens.estimate` to the exact counts and measure how far off it is.

    python benchmarks/tokens_fit.py FOLDER

FOLDER holds one folder per repository. Every .md file below is a body, the description of every SKILL.md a text of its
own. Needs numpy and the `tokens` extra. Prints the prices to paste into tokens.py, and the error with each repository
estimated by prices that were fitted without it.
"""

import argparse
import random
import re
import timeit
from pathlib import Path
from typing import NamedTuple

import numpy as np
import yaml

from skillshelf.text.tokens import PRICES, RUN, UNIT, count, estimate

FOLDS = 10

# A corpus of mostly English leaves rare scripts to chance, so these always take part in the fit, never in the error.
ANCHORS = (
    "Überprüfe vor jeder Änderung, ob die Dateien geöffnet und vollständig übertragen wurden.",
    "Před každou změnou ověřte, že je soubor otevřený a že všechny příkazy proběhly úspěšně.",
    "Przed każdą zmianą sprawdź, czy plik został zapisany, a wszystkie polecenia zakończyły się powodzeniem.",
    "Her değişiklikten önce dosyanın açık olduğunu ve tüm komutların başarıyla çalıştığını doğrulayın.",
    "Antes de cada alteração, verifique se o ficheiro está aberto e se todas as instruções foram concluídas.",
    "Avant chaque modification, vérifiez que le fichier a été enregistré et que les étapes précédentes ont réussi.",
    "Πριν από κάθε αλλαγή, ελέγξτε ότι το αρχείο έχει αποθηκευτεί και ότι όλες οι εντολές ολοκληρώθηκαν με επιτυχία.",
    "Перед каждым изменением проверьте, что файл сохранён и все команды завершились успешно.",
    "Перед кожною зміною перевірте, що файл збережено, а всі команди завершилися успішно.",
    "לפני כל שינוי יש לוודא שהקובץ נשמר ושכל הפקודות הסתיימו בהצלחה. שינויים גדולים דורשים אישור.",
    "قبل كل تغيير، تأكد من حفظ الملف ومن أن جميع الأوامر قد اكتملت بنجاح. التغييرات الكبيرة تحتاج إلى موافقة.",
    "हर बदलाव से पहले जाँच लें कि फ़ाइल सहेजी गई है और सभी आदेश सफलतापूर्वक पूरे हुए हैं।",
    "ஒவ்வொரு மாற்றத்திற்கும் முன் கோப்பு சேமிக்கப்பட்டுள்ளதா என்று சரிபார்க்கவும்.",
    "ก่อนการเปลี่ยนแปลงทุกครั้ง ให้ตรวจสอบว่าไฟล์ถูกบันทึกแล้วและคำสั่งทั้งหมดทำงานสำเร็จ",
    "Trước mỗi thay đổi, hãy kiểm tra xem tệp đã được lưu và mọi lệnh đã hoàn tất thành công chưa.",
    "每次修改之前，请确认文件已经保存，并且所有命令都已成功执行。较大的改动需要得到确认。",
    "每次修改之前，請確認檔案已經儲存，而且所有指令都已成功執行。",
    "変更のたびに、ファイルが保存され、すべてのコマンドが正常に終了したことを確認してください。",
    "변경하기 전에 파일이 저장되었고 모든 명령이 성공적으로 끝났는지 확인하세요. 큰 변경은 승인을 받아야 합니다.",
    "이 스킬은 사용자가 보고서를 만들거나 표를 정리해 달라고 요청할 때 사용합니다.",
    "✅ 🚀 📦 🔧 📝 ⚠️ 🎯 💡 🔍 📊 🧪 🛠️ ❌",
    "→ ← ↑ ↓ • … “ ” ‘ ’ – — ™ € ≤ ≥ ≠ § · ✓ ✗",
)

_FRONTMATTER = re.compile(r"\A\ufeff?---\s*\n(.*?)\n---\s*\n", re.DOTALL)
_CJK = re.compile("[\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff]")
_DAMAGED = re.compile("[\ue000-\uf8ff\ufffd]")


class Text(NamedTuple):
    repository: str
    kind: str
    language: str
    text: str


def language(text: str) -> str:
    letters = [char for char in text if char.isalpha()]
    if len(_CJK.findall(text)) > 0.1 * len(letters):
        return "CJK"
    return "other" if sum(not char.isascii() for char in letters) > 0.01 * len(letters) else "English"


def split(path: Path) -> dict[str, str]:
    """The texts of one file, by kind; a description that is not valid YAML is left out."""
    text = path.read_text(encoding="utf-8", errors="replace")
    found = _FRONTMATTER.match(text) if path.name == "SKILL.md" else None
    if not found:
        return {"body": text}
    try:
        description = yaml.safe_load(found[1])["description"]
    except (yaml.YAMLError, KeyError, TypeError):
        description = ""
    return {"body": text[found.end() :], "description": str(description)}


def read(folder: Path) -> list[Text]:
    """Every text once: skills are copied between repositories. What was decoded wrongly is no language and left out."""
    texts: dict[str, Text] = {}
    for path in sorted(folder.rglob("*.md")):
        if path.is_file():
            for kind, text in split(path).items():
                clean = text.strip()
                if clean and not _DAMAGED.search(clean):
                    repository = path.relative_to(folder).parts[0]
                    texts.setdefault(clean, Text(repository, kind, language(clean), clean))
    return list(texts.values())


def features(text: str) -> list[int]:
    """How many bytes of each line of PRICES, a run as one; the further bytes of characters have no price to fit."""
    lines = bytearray(256)
    for line, (first, last, _) in enumerate(PRICES):
        lines[first : last + 1] = bytes([line]) * (last - first + 1)
    data = text.encode().translate(bytes(lines))
    counts = [data.count(bytes([line])) for line, (_, _, price) in enumerate(PRICES) if price]
    return [counts[0] - (RUN - 1) * data.count(bytes(RUN)), *counts[1:]]


def fit(rows: np.ndarray, exact: np.ndarray, importance: np.ndarray) -> np.ndarray:
    """The prices, in whole units, with the least sum of relative errors, by reweighted least squares.

    The cheapest is rounded first, being changed most by it, and the others are fitted again to make up for that.
    Nothing is free, even where that fits best: a megabyte of it would be one token.
    """
    relative = rows / exact[:, None] / UNIT
    prices, free = np.zeros(rows.shape[1]), np.ones(rows.shape[1], dtype=bool)
    while free.any():
        target, error = 1 - relative[:, ~free] @ prices[~free], np.ones(len(exact))
        for _ in range(20):
            scale = np.sqrt(importance / np.maximum(np.abs(error), 0.01))
            prices[free] = np.linalg.lstsq(relative[:, free] * scale[:, None], target * scale, rcond=None)[0]
            error = relative @ prices - 1
        cheapest = np.flatnonzero(free)[np.argmin(prices[free])]
        prices[cheapest], free[cheapest] = max(1, round(prices[cheapest])), False
    return prices


def held_out(texts: list[Text], rows: np.ndarray, exact: np.ndarray, importance: np.ndarray) -> np.ndarray:
    """The estimate of each text by prices fitted without its repository."""
    repositories = sorted({text.repository for text in texts})
    random.Random(0).shuffle(repositories)
    fold_of = {name: index % FOLDS for index, name in enumerate(repositories)}
    folds = np.array([fold_of[text.repository] for text in texts] + [-1] * len(ANCHORS))
    guesses = np.zeros(len(rows))
    for fold in set(fold_of.values()):
        test = folds == fold
        guesses[test] = rows[test] @ fit(rows[~test], exact[~test], importance[~test]) / UNIT
    return np.maximum(1, np.round(guesses[: len(texts)]))


def print_prices(prices: np.ndarray) -> None:
    fitted = iter(prices)
    for first, last, price in PRICES:
        print(f"    (0x{first:02X}, 0x{last:02X}, {next(fitted) if price else 0:.0f}),")
    print()


def print_errors(texts: list[Text], errors: np.ndarray) -> None:
    print("| texts | language | number | median | p90 | p95 | max | bias |\n|---|---|--:|--:|--:|--:|--:|--:|")
    for kind in ("body", "description"):
        for group in ("English", "CJK", "other"):
            chosen = errors[[text.kind == kind and text.language == group for text in texts]]
            if len(chosen):
                spread = " | ".join(f"{value:.1%}" for value in np.percentile(np.abs(chosen), (50, 90, 95, 100)))
                print(f"| {kind} | {group} | {len(chosen)} | {spread} | {chosen.mean():+.1%} |")


def print_speed(texts: list[Text]) -> None:
    samples = [text.text[:4096] for text in texts if text.kind == "body" and len(text.text) >= 4096]
    groups = {
        "ASCII": [text for text in samples if text.isascii()],
        "English with other characters": [t for t in samples if not t.isascii() and language(t) == "English"],
        "CJK": [text for text in samples if language(text) == "CJK"],
    }
    for name, group in groups.items():
        for counter in (estimate, count):
            if group:
                best = min(timeit.repeat(lambda c=counter, g=group: [c(t) for t in g], number=1, repeat=9)) / len(group)
                print(f"{counter.__name__} of 4096 characters, {name}: {best * 1e6:.1f} µs")


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit and measure the token estimate on a folder of skills.")
    parser.add_argument("folder", type=Path, help="one folder per repository, with SKILL.md and other .md files below")
    texts = read(parser.parse_args().folder)
    sizes: dict[str, int] = {}
    for text in texts:
        sizes[text.repository] = sizes.get(text.repository, 0) + 1
    if len(sizes) < 2:
        raise SystemExit("Texts of at least two repositories are needed to hold one out.")
    everything = [text.text for text in texts] + list(ANCHORS)
    rows = np.array([features(text) for text in everything], dtype=float)
    exact = np.array([count(text) for text in everything], dtype=float)
    # A repository of four hundred skills written alike says more than one of ten, but not forty times as much.
    importance = np.array([sizes[text.repository] ** -0.5 for text in texts] + [1.0] * len(ANCHORS))
    print_prices(fit(rows, exact, importance))
    print(f"{len(texts)} texts of {len(sizes)} repositories, each repository held out:\n")
    guesses = held_out(texts, rows, exact, importance)
    print_errors(texts, guesses / exact[: len(texts)] - 1)
    print()
    print_speed(texts)


if __name__ == "__main__":
    main()
