"""Plays the dialogues that every SDK plays."""

from __future__ import annotations

import unittest

from tests.dialogue import dialogues
from tests.player import Player


class TestDialogues(unittest.TestCase):
    def test_all(self) -> None:
        found = dialogues()
        self.assertGreater(len(found), 50)
        self.assertLessEqual({"delegate.txt", "serve.txt"}, {dialogue.title.partition(":")[0] for dialogue in found})
        for dialogue in found:
            with self.subTest(dialogue.title):
                Player().play(dialogue)


if __name__ == "__main__":
    unittest.main()
