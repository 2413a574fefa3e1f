"""Expected outputs of chat templates and template snippets, from Jinja2 itself.

Writes two fixtures that the unit tests of src/tokenizer compare with:
  jinja_cases.json    snippets of our own, each with its text or "error"
  chat_expected.json  for each template file and conversation, the length and
                      the FNV-1a hash of the prompt, or "error"
The environment is the one in which Hugging Face transformers renders chat
templates. The template files themselves belong to others and stay outside the
repository.

Run from the repository root, with the packages of tools/oracles/requirements.txt:
  python tools/oracles/chat_template_oracle.py --templates ../shared/chat-templates
"""

import argparse
import json
import pathlib

from chat_conversations import CONVERSATIONS, NOW
from jinja_environment import make_environment, normalize
from jinja_snippets import DATA, SNIPPETS

TESTDATA = pathlib.Path("src/tokenizer/testdata")


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def render(environment, source, variables):
    """The text, or None when Jinja2 raises anything at all."""
    try:
        return environment.from_string(source).render(**variables)
    except Exception:
        return None


def snippet_cases(environment):
    cases = []
    for name, source in SNIPPETS:
        text = render(environment, source, DATA)
        case = {"name": name, "template": source}
        case |= {"error": True} if text is None else {"text": text}
        cases.append(case)
    return {"variables": DATA, "cases": cases}


def conversation_variables(conversation):
    variables = {"bos_token": "<s>", "eos_token": "</s>", "tools": None, "documents": None}
    variables |= {k: v for k, v in conversation.items() if k != "name"}
    variables["messages"] = normalize(variables["messages"])
    return variables


def chat_cases(environment, folder):
    cases = []
    for path in sorted(folder.glob("*.jinja")):
        source = path.read_text(encoding="utf-8")
        for conversation in CONVERSATIONS:
            text = render(environment, source, conversation_variables(conversation))
            case = {"template": path.name, "conversation": conversation["name"]}
            if text is None:
                case["error"] = True
            else:
                data = text.encode("utf-8")
                case |= {"size_bytes": len(data), "fnv1a": fnv1a(data)}
            cases.append(case)
    return cases


def write(name, value):
    TESTDATA.mkdir(parents=True, exist_ok=True)
    text = json.dumps(value, ensure_ascii=False, indent=1)
    (TESTDATA / name).write_text(text + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--templates", type=pathlib.Path, required=True)
    args = parser.parse_args()
    environment = make_environment(NOW)
    write("jinja_cases.json", snippet_cases(environment))
    expected = chat_cases(environment, args.templates)
    write("chat_expected.json", {"conversations": CONVERSATIONS, "now": NOW, "expected": expected})
    errors = sum("error" in case for case in expected)
    print(f"{len(SNIPPETS)} snippets, {len(expected)} prompts, {errors} of which are errors")


if __name__ == "__main__":
    main()
