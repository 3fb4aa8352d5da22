"""A command without quotes and operators is split at its blanks: the same words that the shell's lexer gives."""

from __future__ import annotations

import shlex

from hypothesis import given
from hypothesis import strategies as st

from amlstack.code_reading.shell import steps

WORDS = st.text(alphabet=st.one_of(st.sampled_from("abc-_.=/$#{}[]*?!~%@:,+ \t\r\x0b\xa0é"), st.characters()))


@given(WORDS.filter(lambda text: not set(text) & set(";&|()<>\n'\"\\")))
def test_the_words_are_those_of_the_lexer(command: str) -> None:
    lexer = shlex.shlex(command, posix=True, punctuation_chars=";&|()<>\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    bound = "[[" in command or "]]" in command or "${{" in command
    words = list(lexer)
    assert bound or [list(step) for step in steps(command)] == ([words] if words else [])
