"""Record the conversation of `skillshelf demo`, as the real interface shows it, for installations without the agent.

python docs/images/record_demo.py
"""

from pathlib import Path

import skillshelf
from skillshelf.demo import dump_frames
from skillshelf.repl import record_demo

RECORDING = Path(skillshelf.__file__).parent / "demo" / "recording.json"

if __name__ == "__main__":
    RECORDING.write_text(dump_frames(record_demo()), encoding="utf-8")
    print(RECORDING)
