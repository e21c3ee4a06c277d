"""Planning: which hardware, how much of it, and which policy, for a model, a target and a budget."""

from analysis.plan.answering import Answered, answer
from analysis.plan.question import Question
from analysis.plan.reading import read_question

__all__ = ["Answered", "Question", "answer", "read_question"]
