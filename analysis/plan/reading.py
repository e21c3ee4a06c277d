"""Reading a planning question: the file, the scenario that it names, and what each option makes of that."""

from pathlib import Path

from analysis.asked import read_asked, read_base
from analysis.plan.checking import check_options
from analysis.plan.question import Question, QuestionSpec


def read_question(path: Path) -> Question:
    """Read and check the question at `path`, the scenario it names, and everything that it offers.

    Raises InputError with file, line and path for anything wrong with any of them.
    """
    spec, document = read_asked(path, QuestionSpec, "question")
    question = Question(spec, document, read_base(path, spec, document))
    check_options(question)
    return question
