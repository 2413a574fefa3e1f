"""Conversations for chat_template_oracle.py: the variables a template gets."""

NOW = 1751981445  # 2025-07-08 13:30:45 UTC

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a place, today.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Name of the city", "minLength": 1},
                "unit": {"type": ["string", "null"], "enum": ["°C", "°F"]},
            },
            "required": ["city"],
        },
        "strict": True,
    },
}
SEARCH = {
    "type": "function",
    "function": {"name": "search", "description": " Looks \"things\" up <fast> & well. ", "parameters": {}},
}
SYSTEM = {"role": "system", "content": "You are terse."}
QUESTION = {"role": "user", "content": "What is the weather in Zürich?"}


def call(arguments, **extra):
    function = {"name": "get_weather", "arguments": arguments}
    return {"id": "abcdef123", "type": "function", "function": function, **extra}


def result(content):
    return {"role": "tool", "tool_call_id": "abcdef123", "name": "get_weather", "content": content}


OBJECT_CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [call({"city": "Zürich", "days": 3, "exact": 0.5, "list": [1, "a", None, True]})],
}
TEXT_CALL = {"role": "assistant", "content": None, "tool_calls": [call('{"city": "Zürich"}')]}
THOUGHT = {"role": "assistant", "content": "<think>\nhm\n</think>\n\nIt rains."}
MANY = [
    SYSTEM,
    {"role": "user", "content": "  Hello!\n"},
    {"role": "assistant", "content": "\n\nHi there.  "},
    {"role": "user", "content": "Bye."},
]

CONVERSATIONS = [
    {"name": "user", "messages": [QUESTION], "add_generation_prompt": True},
    {"name": "user, no prompt", "messages": [QUESTION], "add_generation_prompt": False},
    {"name": "system and user", "messages": [SYSTEM, QUESTION], "add_generation_prompt": True},
    {"name": "turns", "messages": MANY, "add_generation_prompt": True},
    {"name": "turns, no prompt", "messages": MANY + [THOUGHT], "add_generation_prompt": False},
    {"name": "ends with assistant", "messages": MANY + [THOUGHT], "add_generation_prompt": True},
    {"name": "thinking on", "messages": MANY, "add_generation_prompt": True, "enable_thinking": True},
    {"name": "thinking off", "messages": MANY, "add_generation_prompt": True, "enable_thinking": False},
    {"name": "thinking", "messages": MANY + [THOUGHT, QUESTION], "add_generation_prompt": True, "thinking": True},
    {
        "name": "reasoning in a field",
        "messages": [QUESTION, {"role": "assistant", "reasoning_content": "hm", "content": "It rains."}],
        "add_generation_prompt": False,
    },
    {
        "name": "reasoning before a last question",
        "messages": [QUESTION, {"role": "assistant", "reasoning": "hm", "content": "Rain."}, QUESTION],
        "add_generation_prompt": True,
    },
    {
        "name": "no_think in the system message",
        "messages": [{"role": "system", "content": "Be kind. /no_think"}, QUESTION],
        "add_generation_prompt": True,
    },
    {"name": "no messages", "messages": [], "add_generation_prompt": True},
    {"name": "no tools", "messages": [QUESTION], "tools": [], "add_generation_prompt": True},
    {"name": "tools", "messages": [QUESTION], "tools": [WEATHER, SEARCH], "add_generation_prompt": True},
    {"name": "tools and system", "messages": [SYSTEM, QUESTION], "tools": [WEATHER], "add_generation_prompt": True},
    {
        "name": "call with an object",
        "messages": [SYSTEM, QUESTION, OBJECT_CALL, result('{"temp": 20}')],
        "tools": [WEATHER],
        "add_generation_prompt": True,
    },
    {
        "name": "call with a string",
        "messages": [QUESTION, TEXT_CALL, result("20 °C")],
        "tools": [WEATHER],
        "add_generation_prompt": True,
    },
    {
        "name": "call and answer",
        "messages": [QUESTION, OBJECT_CALL, result("20"), THOUGHT, QUESTION],
        "tools": [WEATHER],
        "add_generation_prompt": True,
    },
    {
        "name": "two calls, two results",
        "messages": [
            QUESTION,
            {"role": "assistant", "content": "Let me see.", "tool_calls": [call({"city": "Bern"}), call({})]},
            result("1"),
            result("2"),
        ],
        "add_generation_prompt": True,
    },
    {"name": "call without an id", "messages": [QUESTION, {"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {}}}]}], "add_generation_prompt": False},
    {"name": "null content", "messages": [QUESTION, {"role": "assistant", "content": None}], "add_generation_prompt": True},
    {"name": "empty content", "messages": [{"role": "user", "content": ""}], "add_generation_prompt": True},
    {"name": "missing content", "messages": [{"role": "user"}], "add_generation_prompt": True},
    {"name": "unicode", "messages": [{"role": "user", "content": "日本語 🙂 é\u0301 \u2028 \u00a0x"}], "add_generation_prompt": True},
    {"name": "control tokens in content", "messages": [{"role": "user", "content": "<|im_end|>\n<|im_start|>system\n</s>[INST]"}], "add_generation_prompt": True},
    {
        "name": "parts",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Look: "}, {"type": "image"}, {"type": "text", "text": "what?"}]}],
        "add_generation_prompt": True,
    },
    {
        "name": "system in parts",
        "messages": [{"role": "system", "content": [{"type": "text", "text": "Be kind."}]}, {"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
        "add_generation_prompt": True,
    },
    {"name": "unknown part", "messages": [{"role": "user", "content": [{"type": "audio"}]}], "add_generation_prompt": True},
    {"name": "unknown role", "messages": [{"role": "ghost", "content": "boo"}], "add_generation_prompt": True},
    {"name": "two users", "messages": [QUESTION, QUESTION], "add_generation_prompt": True},
    {"name": "assistant first", "messages": [THOUGHT, QUESTION], "add_generation_prompt": True},
    {"name": "late system", "messages": [QUESTION, SYSTEM], "add_generation_prompt": True},
    {"name": "number as content", "messages": [{"role": "user", "content": 5}], "add_generation_prompt": True},
]
