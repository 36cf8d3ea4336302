"""Another judge for the trials of a finished run, to compare judges on the same evidence."""

from __future__ import annotations

import asyncio
from functools import partial

from skillshelf.evals._labels import JudgedSentence, SentenceKey, find_sentences
from skillshelf.evals._results import Outcome, Run
from skillshelf.evals.check import judge, judged_by, look_at_all
from skillshelf.evals.engine._models import Options, RunModels
from skillshelf.evals.engine._store import open_file_store


async def judge_again(run: Run, options: Options, path: str) -> list[JudgedSentence]:
    """Ask the judge of these options about every sentence that a judge of the run was asked about.

    Its answers are stored in the file `path`, so that none is paid for twice. Raises RunStoppedError.
    """
    store = open_file_store(path, run.id)
    models = RunModels(options, store)
    turn = asyncio.Semaphore(options.parallel)

    async def judge_trial(outcome: Outcome) -> list[JudgedSentence]:
        sentences = find_sentences(outcome)
        name = f"{outcome.case}#{outcome.arm}#{outcome.repeat}/judge"
        async with turn:
            with judged_by(partial(models.model_for_judge, name=name)):
                verdicts = await look_at_all([judge(sentence) for sentence in sentences], outcome.trace)
        judged = []
        for sentence, verdict in zip(sentences, verdicts, strict=True):
            key = SentenceKey(outcome.case, outcome.arm, outcome.repeat, sentence)
            holds = None if verdict.error else verdict.passed
            judged.append(JudgedSentence(key, holds, verdict.error or verdict.reason))
        return judged

    try:
        trials = await asyncio.gather(*(judge_trial(outcome) for outcome in run.outcomes if find_sentences(outcome)))
    finally:
        store.close()
    if models.guard.stopped:
        raise models.guard.stopped
    return [sentence for trial in trials for sentence in trial]
