"""Prompts that people wrote: named for their prompt, and refused before anything is spent on them."""

from pathlib import Path

import pytest

from experiments.running.run_parts import read_rewrites, rewrite_files
from experiments.systems.rag import Rag
from tracing.errors import ContractError, RunError

TEXT = "Short.\n{context}\n{question}"


def write(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        path = folder / f"{name.replace('__', '/').replace('_', '.')}.txt"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
    return folder


def test_a_folder_gives_all_its_rewrites_and_a_file_one(tmp_path: Path) -> None:
    write(
        tmp_path,
        answer=TEXT,
        answer_short=f"Very short. {TEXT}",
        sub__answer=TEXT,
        answer_seed=Rag.prompts["answer"].text,
    )
    found = read_rewrites(tmp_path, Rag.prompts)
    assert [(each.prompt, each.text, each.source) for each in found] == [
        ("answer", f"Very short. {TEXT}", "hand"),
        ("answer", TEXT, "hand"),
    ]
    assert found[0].reason == "written by hand: answer.short.txt"
    (one,) = read_rewrites(tmp_path / "answer.txt", Rag.prompts)
    assert one.text == TEXT


def test_what_a_run_keeps_of_them_is_found_again_in_the_same_order(tmp_path: Path) -> None:
    write(tmp_path / "mine", b__answer=TEXT, a__answer_mine=f"Very short. {TEXT}", c__answer=f"Shorter. {TEXT}")
    found = read_rewrites(tmp_path / "mine", Rag.prompts)
    for name, text in rewrite_files(found).items():
        path = tmp_path / "kept" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    assert read_rewrites(tmp_path / "kept", Rag.prompts) == found


def test_a_prompt_with_a_dot_in_its_name_has_files_too(tmp_path: Path) -> None:
    specs = dict.fromkeys(("answer", "answer.again", "search.nodes"), Rag.prompts["answer"])
    write(tmp_path, answer=TEXT, answer_again_x=f"Again. {TEXT}", search_nodes=f"Search. {TEXT}")
    found = {each.prompt: each.text.partition(".")[0] for each in read_rewrites(tmp_path, specs)}
    assert found == {"answer": "Short", "answer.again": "Again", "search.nodes": "Search"}


def test_what_cannot_be_tried_is_refused_with_the_file(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"answer\.txt: the placeholder \{context\} is missing"):
        read_rewrites(write(tmp_path / "a", answer="{question}"), Rag.prompts)
    with pytest.raises(RunError, match=r"'anwser'; did you mean 'answer'\?; name the file for one of answer"):
        read_rewrites(write(tmp_path / "b", anwser=TEXT), Rag.prompts)
    with pytest.raises(RunError, match="holds no rewrite"):
        read_rewrites(write(tmp_path / "c", answer=Rag.prompts["answer"].text), Rag.prompts)
    with pytest.raises(RunError, match="cannot be read"):
        read_rewrites(tmp_path / "answer.txt", Rag.prompts)
