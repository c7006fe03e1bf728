"""Where architectures' graphs differ in what is alive at once (src/models/*.cpp)."""

EVERY_ROW = frozenset(
    {
        "gemma3n",
        "gemma4",
        "glm4moe",
        "gpt-oss",
        "mamba",
        "mamba2",
        "mimo2",
        "nemotron_h",
        "nemotron_h_moe",
        "qwen35",
        "qwen35moe",
        "qwen3next",
    }
)
"""Their last block works on every row; the rows for the logits are chosen behind what is wide."""

ROWS_LATE = EVERY_ROW - {"mamba", "mamba2"}
"""Of these, the ones that choose them behind the last block, where the output layer is."""

STATES_LATE = frozenset({"qwen3next", "qwen35", "qwen35moe"})
"""Their recurrent blocks collect the states where they are needed, the others' early."""
