"""Broken inputs of every kind: number and seed decide which is broken how, so that each comes back."""

import gzip
import random
from pathlib import Path

from mutations import Rand, break_bytes, break_text, change_json, change_yaml
from seeds import BYTES, JSON, PLACE, TEXT, WORD, YAML, ZIPPED, Seed, seeds, write_seeds


class Mutants:
    """Seeds in a folder, from which any number of broken inputs is made."""

    def __init__(self, folder: Path) -> None:
        """Write the seeds into `folder`, which must be the working folder when commands are run."""
        self.folder = folder
        write_seeds(folder)
        self.seeds = seeds()
        files = [seed.file for seed in self.seeds if seed.form != WORD]
        self._sound = {file: (folder / file).read_bytes() for file in files}

    def words(self, number: int) -> list[str]:
        """Write broken input `number`, and return the command line that reads it."""
        seed = self.seeds[number % len(self.seeds)]
        rand = random.Random(f"{seed.name} {number}")
        command = seed.commands[number // len(self.seeds) % len(seed.commands)]
        if seed.form == WORD:
            place = broken_word(seed.file, rand)
        else:
            place = self._file(seed)
            (self.folder / place).write_bytes(broken(self._sound[seed.file], seed.form, rand))
        return [word.replace(PLACE, place) for word in command]

    def restore(self, number: int) -> None:
        """Put back what `words` broke, and take away what the command wrote."""
        seed = self.seeds[number % len(self.seeds)]
        if seed.form != WORD:
            (self.folder / self._file(seed)).write_bytes(self._sound[seed.file])
        remove(self.folder / "swept")

    @staticmethod
    def _file(seed: Seed) -> str:
        """The broken file: beside the sound one, or in its place where the command names the folder alone."""
        named = any(PLACE in word for command in seed.commands for word in command)
        return str(Path(seed.file).with_name(f"broken_{Path(seed.file).name}")) if named else seed.file


def remove(folder: Path) -> None:
    """Take away a folder of files, if there is one."""
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    if folder.is_dir():
        folder.rmdir()


def broken(content: bytes, form: str, rand: Rand) -> bytes:
    """Break a file: its values or its letters if it is a text, else its bytes; seldom, both are cut."""
    if form == BYTES or rand.random() < 0.1:
        return break_bytes(content, rand)
    if form == ZIPPED:
        text = gzip.decompress(content)
        whole = gzip.compress(broken(text, TEXT, rand), mtime=0)
        return break_bytes(whole, rand) if rand.random() < 0.3 else whole
    text, changes = content.decode("utf-8"), rand.choice([1, 1, 1, 2, 4])
    if form in (YAML, JSON) and rand.random() < 0.6:
        text, changes = (change_yaml if form == YAML else change_json)(text, rand), rand.choice([0, 0, 0, 1])
    return break_text(text, rand, changes).encode("utf-8", "surrogatepass")


def broken_word(word: str, rand: Rand) -> str:
    """Break a word as a shell could pass it on: without a zero byte."""
    return break_text(word, rand, rand.choice([1, 1, 2, 4])).replace("\0", "")[:100_000]
